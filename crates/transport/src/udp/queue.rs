//! Datagrams that wait to be received, bounded in bytes.

use std::collections::VecDeque;

use super::Received;

/// What a datagram costs beyond its data: bytes. A flood of empty ones is bounded too.
const COST: usize = 64;

/// Datagrams in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heads: VecDeque<Received>,
    bytes: VecDeque<u8>,
}

impl Queue {
    /// Takes a datagram in when there is room within `limit` bytes. Gives whether there was.
    pub(crate) fn push(&mut self, head: Received, data: &[u8], limit: u32) -> bool {
        let used = self.bytes.len() + (self.heads.len() + 1) * COST;
        if used + data.len() > limit as usize {
            return false;
        }
        self.heads.push_back(head);
        self.bytes.extend(data);
        true
    }

    /// Takes the first out, as much of it as `target` holds.
    pub(crate) fn pop(&mut self, target: &mut [u8]) -> Option<Received> {
        let head = self.heads.pop_front()?;
        for (byte, place) in self.bytes.drain(..head.length).zip(target) {
            *place = byte;
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(length: usize) -> Received {
        let address = ([10, 0, 0, 1], 5).into();
        Received { from: address, to: address, length, ttl: 1, service: 0 }
    }

    #[test]
    fn keeps_borders_and_order() {
        let mut queue = Queue::default();
        for data in [&b"one"[..], b"", b"three"] {
            assert!(queue.push(head(data.len()), data, 1000));
        }
        let mut target = [0; 4];
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
        assert!(!queue.push(head(1000), &[0; 1000], 1000));
        assert_eq!((0..100).filter(|_| queue.push(head(0), &[], 640)).count(), 10);
    }
}
