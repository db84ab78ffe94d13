//! Readiness bits (`uapi/linux/eventpoll.h`; `poll` has the same numbers).

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// What `epoll` and `poll` say of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mask(pub u32);

impl Mask {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// `EPOLLIN`: a read, or an accept, gives something.
    pub const IN: Self = Self(0x1);
    /// `EPOLLPRI`.
    pub const PRI: Self = Self(0x2);
    /// `EPOLLOUT`: a write takes something.
    pub const OUT: Self = Self(0x4);
    /// `EPOLLERR`: an error waits.
    pub const ERR: Self = Self(0x8);
    /// `EPOLLHUP`: both directions have ended.
    pub const HUP: Self = Self(0x10);
    /// `EPOLLRDNORM`, which comes with [`IN`](Self::IN).
    pub const RDNORM: Self = Self(0x40);
    /// `EPOLLRDBAND`.
    pub const RDBAND: Self = Self(0x80);
    /// `EPOLLWRNORM`, which comes with [`OUT`](Self::OUT).
    pub const WRNORM: Self = Self(0x100);
    /// `EPOLLWRBAND`.
    pub const WRBAND: Self = Self(0x200);
    /// `EPOLLMSG`, which Linux never tells: urgent data was announced. It is among what has woken a session, never in what
    /// `poll` says of it.
    pub const URGED: Self = Self(0x400);
    /// `EPOLLRDHUP`: the peer sends no more.
    pub const RDHUP: Self = Self(0x2000);
    /// All of them.
    pub const ALL: Self = Self(0x23df);

    /// Whether it has all bits of the other.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it has no bits.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Both bits of what can be read.
    pub(crate) const READ: Self = Self(Self::IN.0 | Self::RDNORM.0);
    /// Both bits of what can be written.
    pub(crate) const WRITE: Self = Self(Self::OUT.0 | Self::WRNORM.0);

    /// These bits if so.
    pub(crate) fn when(self, so: bool) -> Self {
        if so { self } else { Self::NONE }
    }
}

impl BitOr for Mask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Mask {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Mask {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::IN, "IN"),
            (Self::PRI, "PRI"),
            (Self::OUT, "OUT"),
            (Self::ERR, "ERR"),
            (Self::HUP, "HUP"),
            (Self::RDNORM, "RDNORM"),
            (Self::RDBAND, "RDBAND"),
            (Self::WRNORM, "WRNORM"),
            (Self::WRBAND, "WRBAND"),
            (Self::RDHUP, "RDHUP"),
        ];
        let mut set = f.debug_set();
        for (_, name) in names.into_iter().filter(|(bit, _)| self.has(*bit)) {
            set.entry(&format_args!("{name}"));
        }
        set.finish()
    }
}
