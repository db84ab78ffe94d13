//! What each descriptor is to us: one byte, read without a lock, so that calls about files of others cost one load.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

/// Descriptors that can be ours. Higher ones are the kernel's.
const MOST: usize = 1 << 20;

/// What a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The kernel's, or not known yet: an inherited listener is found out when it is first used as one.
    Kernel = 0,
    /// A TCP socket of the kernel's that may become a listener or a session yet.
    Fresh = 1,
    /// A listening socket of the kernel's, which the stack serves too.
    Listener = 2,
    /// A session: the file behind it is a placeholder.
    Session = 3,
    /// An epoll instance.
    Epoll = 4,
    /// A placeholder that no session uses.
    Spare = 5,
    /// This library's own: the application does not know it.
    Internal = 6,
    /// A session that is lost: of the process that forked this one, and without a carrier.
    Stale = 7,
    /// A UDP socket of the kernel's, which the stack may serve too.
    Datagrams = 8,
    /// A session that the daemon or another process has; this one has its carrier. It is fetched when it is used.
    Elsewhere = 9,
}

static KINDS: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];
/// One more than the highest that ever was ours.
static END: AtomicI32 = AtomicI32::new(0);

/// There was one that is elsewhere.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Whether a session ever was elsewhere.
#[inline]
pub(crate) fn any_elsewhere() -> bool {
    ELSEWHERE.load(Ordering::Relaxed)
}

/// What `fd` is.
#[inline]
pub(crate) fn get(fd: c_int) -> Kind {
    let Some(kind) = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd)) else {
        return Kind::Kernel;
    };
    match kind.load(Ordering::Relaxed) {
        1 => Kind::Fresh,
        2 => Kind::Listener,
        3 => Kind::Session,
        4 => Kind::Epoll,
        5 => Kind::Spare,
        6 => Kind::Internal,
        7 => Kind::Stale,
        8 => Kind::Datagrams,
        9 => Kind::Elsewhere,
        _ => Kind::Kernel,
    }
}

/// Says what `fd` is. Gives whether it can be so: numbers have an end.
pub(crate) fn set(fd: c_int, kind: Kind) -> bool {
    let Some(place) = usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd)) else { return false };
    place.store(kind as u8, Ordering::Relaxed);
    if kind == Kind::Elsewhere {
        ELSEWHERE.store(true, Ordering::Relaxed);
    }
    if kind != Kind::Kernel {
        END.fetch_max(fd + 1, Ordering::Relaxed);
    }
    true
}

/// All that are ours.
pub(crate) fn all() -> impl Iterator<Item = (c_int, Kind)> {
    (0..END.load(Ordering::Relaxed))
        .map(|fd| (fd, get(fd)))
        .filter(|(_, kind)| *kind != Kind::Kernel)
}
