//! The kernel's halves of sockets that are the stack's and the kernel's at the same time.

use std::collections::HashMap;

use host::{Id, Mask};

/// Who carries a socket's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    Millrace,
    Kernel,
}

/// What is known of a kernel's half.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    /// What is ready there, until a call finds that it is not.
    ready: Mask,
    /// Where the only peer is; `None`: there may be any in both worlds.
    peer: Option<World>,
}

/// What is ready of a connection that was reset, beside that it can be written to (`tcp_poll`).
const RESET: Mask = Mask(Mask::IN.0 | Mask::RDNORM.0 | Mask::RDHUP.0 | Mask::HUP.0 | Mask::ERR.0);

/// All of them, by session.
#[derive(Debug, Default)]
pub(crate) struct Halves(HashMap<Id, Half>);

impl Halves {
    /// Readiness of a session, of which the stack says `own`.
    #[inline]
    pub(crate) fn join(&self, id: Id, own: Mask) -> Mask {
        if self.0.is_empty() {
            return own;
        }
        match self.0.get(&id) {
            None | Some(Half { peer: Some(World::Millrace), .. }) => own,
            Some(Half { peer: None, ready }) => own | *ready,
            // The kernel's can always be written to, or nearly so.
            Some(Half { peer: Some(World::Kernel), ready }) => *ready | Mask::OUT | Mask::WRNORM,
        }
    }

    /// A session has a half in the kernel, whose peer is there.
    pub(crate) fn settle(&mut self, id: Id, peer: Option<World>) {
        self.0.entry(id).or_default().peer = peer;
    }

    /// The kernel has something.
    pub(crate) fn note(&mut self, id: Id, ready: Mask) {
        if let Some(half) = self.0.get_mut(&id) {
            half.ready |= ready;
        }
    }

    /// The kernel has nothing any more.
    pub(crate) fn clear(&mut self, id: Id) {
        if let Some(half) = self.0.get_mut(&id) {
            half.ready = Mask::NONE;
        }
    }

    /// A session is lost with another process that had it: whoever waits for it is told what the kernel says of a connection that was
    /// reset, whatever the stack says.
    pub(crate) fn lose(&mut self, id: Id) {
        self.0.insert(id, Half { ready: RESET, peer: Some(World::Kernel) });
    }

    /// The session is no more.
    pub(crate) fn forget(&mut self, id: Id) {
        self.0.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_either_half_has_counts_unless_the_peer_is_in_one_world() {
        let (mut halves, id) = (Halves::default(), Id(7));
        halves.note(id, Mask::IN);
        assert_eq!(halves.join(id, Mask::OUT), Mask::OUT, "no half in the kernel");
        halves.settle(id, None);
        halves.note(id, Mask::IN);
        assert_eq!(halves.join(id, Mask::OUT), Mask::OUT | Mask::IN);
        halves.settle(id, Some(World::Millrace));
        assert_eq!(
            halves.join(id, Mask::OUT),
            Mask::OUT,
            "what strangers send the kernel is not for it"
        );
        halves.settle(id, Some(World::Kernel));
        assert!(halves.join(id, Mask::NONE).has(Mask::IN | Mask::OUT));
        halves.clear(id);
        assert!(!halves.join(id, Mask::IN).has(Mask::IN));
        halves.forget(id);
        assert_eq!(halves.join(id, Mask::IN), Mask::IN);
    }

    #[test]
    fn what_is_lost_is_as_what_was_reset() {
        let (mut halves, id) = (Halves::default(), Id(7));
        halves.lose(id);
        assert_eq!(halves.join(id, Mask::NONE), RESET | Mask::OUT | Mask::WRNORM);
        halves.forget(id);
        assert_eq!(halves.join(id, Mask::NONE), Mask::NONE);
    }
}
