//! Memory of what waits in all UDP sockets of a stack.

use super::{Queue, Socket};

/// Bytes that queues in which nothing waits keep, all together: what is read before more comes is received without new memory.
pub(crate) const SPARE: usize = 1 << 20;

/// How much memory there is, and how much there may be: bytes.
#[derive(Debug)]
pub(super) struct Memory {
    /// Of sockets in which something waits.
    held: usize,
    /// Of queues in which nothing does.
    spare: usize,
    most: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { held: 0, spare: 0, most: usize::MAX }
    }
}

impl Memory {
    /// Bytes of sockets in which something waits.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// There may be so many.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most;
    }

    /// How much more there may be.
    pub(super) fn room(&self) -> usize {
        self.most.saturating_sub(self.held)
    }

    /// A socket changes: what it has counts no more.
    pub(super) fn leave(&mut self, socket: &Socket) {
        *self.account(&socket.queue) -= socket.queue.memory_bytes();
        self.held -= socket.reports.used();
    }

    /// It has changed. An empty queue gives its memory back where others keep enough.
    pub(super) fn enter(&mut self, socket: &mut Socket) {
        let queue = &mut socket.queue;
        if queue.is_empty() && self.spare + queue.memory_bytes() > SPARE {
            *queue = Queue::default();
        }
        *self.account(queue) += queue.memory_bytes();
        self.held += socket.reports.used();
    }

    fn account(&mut self, queue: &Queue) -> &mut usize {
        if queue.is_empty() { &mut self.spare } else { &mut self.held }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::{Received, Sockets, UdpOptions};
    use super::*;

    fn at(port: u16) -> SocketAddr {
        ([10, 0, 0, 1], port).into()
    }

    #[test]
    fn empty_queues_keep_little_all_together() {
        let mut sockets = Sockets::default();
        let mut data = [7_u8; 9000];
        let (from, to, length) = (at(5), at(6), data.len());
        let head = Received { from, to, length, ttl: 1, service: 0, at: 0 };
        let options = UdpOptions::default();
        // What was closed keeps nothing, so the next find room again.
        for _ in 0..2 {
            let ids: Vec<_> =
                (1..1000).map(|port| sockets.add(at(port), options.clone())).collect();
            for id in &ids {
                let taken = sockets.change_own(*id, |socket, room| socket.take(head, &data, room));
                assert_eq!(taken, Some(true));
            }
            assert!(sockets.memory_bytes() > ids.len() * length);
            for id in &ids {
                let popped = sockets.change_own(*id, |socket, _| socket.queue.pop(&mut data));
                assert_eq!(popped, Some(Some(head)));
            }
            assert_eq!(sockets.memory_bytes(), 0);
            let spare: usize = sockets.all().map(|socket| socket.queue.memory_bytes()).sum();
            assert!((SPARE / 2..=SPARE).contains(&spare), "{spare}");
            assert!(ids.iter().all(|id| sockets.remove(*id).is_some()));
        }
    }
}
