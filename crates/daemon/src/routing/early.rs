//! SYNs that wait for somebody to serve where they go to: a server that has put itself into the background, say.

use std::collections::VecDeque;

use forward::neighbor::{Action, Packet};
use graph::Reason;

/// For how long one waits: its sender repeats it then (RFC 6298 2.1). ns.
const WAIT: u64 = 1_000_000_000;
/// How many wait at most.
const MOST: usize = 256;

/// Those that wait, the earliest first.
#[derive(Debug)]
pub(super) struct Early<P>(VecDeque<(u64, P)>);

impl<P> Default for Early<P> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<P: Packet> Early<P> {
    /// One comes. `now`: ns.
    pub(super) fn push(&mut self, packet: P, now: u64, actions: &mut Vec<Action<P>>) {
        if self.0.len() < MOST {
            self.0.push_back((now, packet));
        } else {
            actions.push(Action::Drop { packet, reason: Reason::LocalPort });
        }
    }

    /// Lets those go on that need not wait any more, in order.
    pub(super) fn release(
        &mut self,
        is_settled: impl Fn(&[u8]) -> bool,
        actions: &mut Vec<Action<P>>,
    ) {
        for (since, packet) in std::mem::take(&mut self.0) {
            if is_settled(packet.network()) {
                actions.push(Action::Release { packet });
            } else {
                self.0.push_back((since, packet));
            }
        }
    }

    /// Drops those that have waited for long enough. Gives when the next has: ns.
    pub(super) fn poll(&mut self, now: u64, actions: &mut Vec<Action<P>>) -> Option<u64> {
        while let Some((since, _)) = self.0.front() {
            let due = since.saturating_add(WAIT);
            if now < due {
                return Some(due);
            }
            let packet = self.0.pop_front().map(|(_, packet)| packet);
            actions.extend(packet.map(|packet| Action::Drop { packet, reason: Reason::LocalPort }));
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graph::InterfaceId;

    #[derive(Debug, PartialEq, Eq)]
    struct Numbered([u8; 1]);

    impl Packet for Numbered {
        fn network(&self) -> &[u8] {
            &self.0
        }

        fn interface(&self) -> InterfaceId {
            InterfaceId::new(0)
        }

        fn next_hop(&self) -> u32 {
            0
        }
    }

    fn packet(number: u8) -> Numbered {
        Numbered([number])
    }

    fn dropped(number: u8) -> Action<Numbered> {
        Action::Drop { packet: packet(number), reason: Reason::LocalPort }
    }

    #[test]
    fn they_go_on_in_order_when_somebody_serves() {
        let (mut early, mut actions) = (Early::default(), Vec::new());
        (0..4).for_each(|number| early.push(packet(number), 5, &mut actions));
        early.release(|bytes| bytes[0] % 2 == 1, &mut actions);
        let release = |number| Action::Release { packet: packet(number) };
        assert_eq!(actions, [release(1), release(3)]);
        early.release(|_| true, &mut actions);
        assert_eq!(actions[2..], [release(0), release(2)]);
        assert!(early.is_empty());
    }

    #[test]
    fn none_waits_longer_than_until_it_is_repeated() {
        let (mut early, mut actions) = (Early::default(), Vec::new());
        early.push(packet(1), 5, &mut actions);
        early.push(packet(2), 9, &mut actions);
        assert_eq!(early.poll(WAIT + 4, &mut actions), Some(WAIT + 5));
        assert_eq!(
            (early.poll(WAIT + 5, &mut actions), &actions[..]),
            (Some(WAIT + 9), &[dropped(1)][..])
        );
        assert_eq!((early.poll(2 * WAIT, &mut actions), actions.pop()), (None, Some(dropped(2))));
    }

    #[test]
    fn only_so_many_wait() {
        let (mut early, mut actions) = (Early::default(), Vec::new());
        (0..MOST).for_each(|_| early.push(packet(1), 0, &mut actions));
        assert_eq!(actions, []);
        early.push(packet(2), 0, &mut actions);
        assert_eq!(actions, [dropped(2)]);
    }
}
