//! What a user's stacks may have, all together.

use control::config;
use shm::attach::Refusal;

use super::{Session, Sessions, Stack};
use crate::processes::{Debit, MemoryBound, UserBound};

/// What the processes of a user have, or want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) stacks: usize,
    /// Places in listeners.
    pub(super) listeners: usize,
    /// Ranges of ports.
    pub(super) leases: usize,
}

impl Usage {
    fn add(&mut self, stack: &Stack) {
        self.stacks += 1;
        self.listeners += stack.listeners.len();
        self.leases += stack.leases.len();
    }

    /// Whether there may be that much more.
    fn admit(&self, uid: u32, more: &Self, bounds: &config::Sessions) -> Result<(), Refusal> {
        let bound = |key, what, has, more, most| UserBound { key, what, has, more, most };
        let listeners = usize::try_from(bounds.listeners).unwrap_or(usize::MAX);
        let checks = [
            bound("stacks", "stacks", self.stacks, more.stacks, bounds.stacks.into()),
            bound("listeners", "listeners", self.listeners, more.listeners, listeners),
            bound("leases", "ranges of ports", self.leases, more.leases, bounds.leases.into()),
        ];
        let wanted = checks.iter().filter(|check| check.more > 0);
        wanted.into_iter().try_for_each(|check| check.check("sessions", uid))
    }
}

impl Sessions {
    /// Whether a process may have that much more.
    pub(super) fn admit(&mut self, id: u32, more: &Usage) -> Result<(), Refusal> {
        let uid = self.session(id)?.uid();
        let mut usage = Usage::default();
        let own = self.list.values().filter(|session| session.uid() == uid);
        own.flat_map(|session: &Session| session.stacks.values())
            .for_each(|stack| usage.add(stack));
        usage.admit(uid, more, &self.config.load())
    }

    /// So many bytes of memory more, if a process may have them.
    pub(super) fn charge(&mut self, id: u32, bytes: usize) -> Result<Debit, Refusal> {
        let uid = self.session(id)?.uid();
        self.charge_both([uid; 2], bytes)
    }

    /// The same of memory that two users share, which counts for both together: either may keep what the other has let go.
    pub(super) fn charge_both(&mut self, users: [u32; 2], bytes: usize) -> Result<Debit, Refusal> {
        let bound = self.memory_bound();
        self.accounts.charge(users, bytes, bound)
    }

    /// Whether they may.
    pub(super) fn afford(&self, users: [u32; 2], bytes: usize) -> Result<(), Refusal> {
        self.accounts.check(users, bytes, self.memory_bound())
    }

    /// A stack has one piece, and on a stack worker two more, of some mebibytes; a link is larger than a mebibyte.
    fn memory_bound(&self) -> MemoryBound {
        let config = self.config.load();
        let pieces = 2 * usize::from(config.stacks) + config.memory as usize;
        MemoryBound { section: "sessions", mebibytes: config.memory, pieces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::tests::{listener, sessions};
    use crate::testing;

    #[test]
    fn each_bound_is_named_when_it_is_reached() {
        let section = "[sessions]\nstacks = 3\nlisteners = 4\nleases = 2\n";
        let bounds = testing::config(section).sessions;
        let has = Usage { stacks: 2, listeners: 3, leases: 1 };
        let one = Usage { stacks: 1, listeners: 1, leases: 1 };
        assert_eq!(has.admit(7, &one, &bounds), Ok(()));
        let none = Usage::default();
        for (more, part) in [
            (Usage { stacks: 2, ..none }, "sessions.stacks allows one user 3"),
            (Usage { listeners: 2, ..none }, "sessions.listeners allows one user 4"),
            (Usage { leases: 2, ..none }, "sessions.leases allows one user 2"),
        ] {
            let message = has.admit(7, &more, &bounds).unwrap_err().message;
            assert!(message.contains(part) && message.contains("user 7"), "{message}");
        }
        // What is above a bound that was lowered keeps nobody from something else.
        let more = Usage { leases: 1, ..none };
        assert_eq!(Usage { stacks: 9, ..has }.admit(7, &more, &bounds), Ok(()));
    }

    #[test]
    fn memory_is_charged_as_long_as_it_counts() {
        let mut sessions = sessions("memory = 1\n");
        let ((one, _), _told) = listener(&mut sessions, 7);
        let ((other, _), _news) = listener(&mut sessions, 7);
        let half = 1 << 19;
        let first = sessions.charge(one, half).unwrap();
        let second = sessions.charge(other, half).unwrap();
        let message = sessions.charge(one, 1).unwrap_err().message;
        assert!(message.contains("sessions.memory allows one user 1"), "{message}");
        // Whoever the other two are.
        assert!(sessions.afford([7, 8], half).is_ok() && sessions.afford([8; 2], half).is_ok());
        drop(first);
        assert_eq!(sessions.charge(one, half).map(|debit| debit.bytes()), Ok(half));
        drop(second);
    }
}
