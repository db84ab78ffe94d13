//! What a user's stacks may have, all together.

use control::config;
use shm::attach::Refusal;

use super::{Session, Sessions, Stack};
use crate::processes::UserBound;

/// What the processes of a user have, or want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) stacks: usize,
    /// Bytes of shared memory.
    pub(super) memory: usize,
    /// Places in listeners.
    pub(super) listeners: usize,
    /// Ranges of ports.
    pub(super) leases: usize,
}

impl Usage {
    fn add(&mut self, stack: &Stack) {
        self.stacks += 1;
        self.memory += stack.segment.length() + stack.more;
        self.listeners += stack.listeners.len();
        self.leases += stack.leases.len();
    }

    /// Whether there may be that much more.
    fn admit(&self, uid: u32, more: &Self, bounds: &config::Sessions) -> Result<(), Refusal> {
        let bound = |key, what, has, more, most| UserBound { key, what, has, more, most };
        let listeners = usize::try_from(bounds.listeners).unwrap_or(usize::MAX);
        let checks = [
            bound("stacks", "stacks", self.stacks, more.stacks, bounds.stacks.into()),
            UserBound::memory(self.memory, more.memory, bounds.memory),
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
        usage.memory += self.links.memory(uid);
        usage.admit(uid, more, &self.config.load())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn each_bound_is_named_when_it_is_reached() {
        let section = "[sessions]\nstacks = 3\nmemory = 1\nlisteners = 4\nleases = 2\n";
        let bounds = testing::config(section).sessions;
        let half = 1 << 19;
        let has = Usage { stacks: 2, memory: half, listeners: 3, leases: 1 };
        let one = Usage { stacks: 1, memory: half, listeners: 1, leases: 1 };
        assert_eq!(has.admit(7, &one, &bounds), Ok(()));
        let none = Usage::default();
        for (more, part) in [
            (Usage { stacks: 2, ..none }, "sessions.stacks allows one user 3"),
            (Usage { memory: half + 1, ..none }, "sessions.memory allows one user 1"),
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
}
