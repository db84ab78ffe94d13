//! Datagrams that wait to be received, bounded in bytes.

use super::{Received, Run};
use crate::fifo::{ByteFifo, Ring};
use tables::PagedQueue;

/// What a datagram costs beyond its data, as in Linux, whose smallest buffer is as large (`truesize`): bytes. A flood of
/// empty ones is bounded too.
pub(super) const COST: usize = 768;

/// Datagrams in order of arrival: what each is, and one behind the other their bytes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heads: PagedQueue<Received>,
    bytes: Ring,
}

impl Queue {
    /// Takes a datagram in when there is room within `limit` bytes, or none waits. Gives whether it did.
    pub(crate) fn push(&mut self, head: Received, data: &[u8], limit: u32) -> bool {
        let used = self.used();
        // __udp_enqueue_schedule_skb: the first is taken even if it alone is too much.
        if used > 0 && used + data.len() + COST > limit as usize {
            return false;
        }
        let needed = data.len().max(limit as usize);
        if self.bytes.capacity() < needed {
            self.bytes.resize(needed);
        }
        self.heads.push_back(head);
        self.bytes.append(data) == data.len()
    }

    /// Bytes that they count in the receive buffer.
    pub(crate) fn used(&self) -> usize {
        self.bytes.len() + self.heads.len() * COST
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Bytes of memory that it has, which it keeps when it is empty.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heads.memory_bytes() + self.bytes.memory_bytes()
    }

    /// The first, as much of it as `target` holds, without taking it.
    pub(crate) fn peek(&self, target: &mut [u8]) -> Option<Received> {
        let head = *self.heads.front()?;
        let count = head.length.min(target.len());
        self.bytes.peek(0, target.get_mut(..count)?);
        Some(head)
    }

    /// Takes the first out, as much of it as `target` holds.
    pub(crate) fn pop(&mut self, target: &mut [u8]) -> Option<Received> {
        let head = self.peek(target)?;
        self.heads.pop_front();
        self.bytes.consume(head.length);
        Some(head)
    }

    /// Takes the first out and those behind it that are of its flow and size and fit into `target` whole; a
    /// shorter one is the last.
    pub(crate) fn pop_run(&mut self, target: &mut [u8]) -> Option<Run> {
        let first = *self.heads.front()?;
        let (mut count, mut length) = (1, first.length);
        for head in self.heads.iter().skip(1) {
            let alike = Received { length: first.length, at: first.at, ..*head } == first;
            let fits = head.length <= first.length && length + head.length <= target.len();
            if !alike || !fits || head.length == 0 {
                break;
            }
            (count, length) = (count + 1, length + head.length);
            if head.length < first.length {
                break;
            }
        }
        let copied = length.min(target.len());
        self.bytes.peek(0, target.get_mut(..copied)?);
        self.bytes.consume(length);
        for _ in 0..count {
            self.heads.pop_front();
        }
        Some(Run { first, count, copied })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(length: usize) -> Received {
        let address = ([10, 0, 0, 1], 5).into();
        Received { from: address, to: address, length, ttl: 1, service: 0, at: 0 }
    }

    #[test]
    fn keeps_borders_and_order() {
        let mut queue = Queue::default();
        for data in [&b"one"[..], b"", b"three"] {
            assert!(queue.push(head(data.len()), data, 4000));
        }
        let mut target = [0; 4];
        assert_eq!(queue.peek(&mut []).unwrap().length, 3);
        assert_eq!(queue.peek(&mut target).unwrap().length, 3);
        assert_eq!(queue.pop(&mut target).unwrap().length, 3);
        assert_eq!(&target[..3], b"one");
        assert_eq!(queue.pop(&mut target).unwrap().length, 0);
        assert_eq!(queue.pop(&mut target).unwrap().length, 5);
        assert_eq!(&target, b"thre");
        assert!(queue.pop(&mut target).is_none() && queue.bytes.is_empty());
    }

    #[test]
    fn is_bounded_even_by_empty_ones() {
        let mut queue = Queue::default();
        assert_eq!((0..100).filter(|_| queue.push(head(0), &[], 10 * COST as u32)).count(), 10);
    }

    #[test]
    fn the_first_is_taken_however_long_it_is() {
        let mut queue = Queue::default();
        let data: Vec<u8> = (0..60_000u32).map(|at| (at * 7) as u8).collect();
        let mut target = vec![0; 60_000];
        for _ in 0..2 {
            assert!(queue.push(head(data.len()), &data, 2304));
            assert!(!queue.push(head(0), &[], 2304), "but nothing behind it");
            assert_eq!(queue.pop(&mut target).unwrap().length, data.len());
            assert!(target == data);
        }
    }

    #[test]
    fn a_run_is_of_one_flow_and_size() {
        let other = Received { from: ([10, 0, 0, 2], 5).into(), ..head(3) };
        let later = Received { at: 9, ..head(3) };
        let mut queue = Queue::default();
        for (head, data) in [
            (head(3), &b"abc"[..]),
            (later, b"def"),
            (head(2), b"gh"),
            (head(3), b"ijk"),
            (other, b"lmn"),
            (head(4), b"opqr"),
            (head(4), b"stuv"),
            (head(0), b""),
            (head(0), b""),
        ] {
            assert!(queue.push(head, data, 20_000));
        }
        let mut target = [0; 8];
        let mut next = || {
            let run = queue.pop_run(&mut target)?;
            let text = String::from_utf8_lossy(&target[..run.copied]).into_owned();
            Some((text, run.count, run.first.length))
        };
        assert_eq!(next(), Some(("abcdefgh".into(), 3, 3)));
        assert_eq!(next(), Some(("ijk".into(), 1, 3)));
        assert_eq!(next(), Some(("lmn".into(), 1, 3)));
        assert_eq!(next(), Some(("opqrstuv".into(), 2, 4)));
        assert_eq!(
            (next(), next(), next()),
            (Some((String::new(), 1, 0)), Some((String::new(), 1, 0)), None)
        );
        // What does not fit is cut as by `recv`, what would not fit whole stays.
        queue.push(head(5), b"12345", 2000);
        queue.push(head(5), b"67890", 2000);
        let run = queue.pop_run(&mut [0; 9]).unwrap();
        assert_eq!((run.count, run.copied), (1, 5));
        let run = queue.pop_run(&mut [0; 2]).unwrap();
        assert_eq!((run.count, run.copied, run.first.length), (1, 2, 5));
        assert!(queue.heads.is_empty() && queue.bytes.is_empty());
    }
}
