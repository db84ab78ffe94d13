//! What each descriptor is to us: one byte, read without a lock, so that calls about files of others cost one load.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};

use host::How;

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

/// Which epoll instance a descriptor is of, by number; 0: none that is known. Duplicates are made before there is a state, too.
static INSTANCES: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];
/// Epoll instances so far.
static INSTANCE_COUNT: AtomicU32 = AtomicU32::new(0);

/// There was one that is elsewhere.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Whether a session ever was elsewhere.
#[inline]
pub(crate) fn any_elsewhere() -> bool {
    ELSEWHERE.load(Ordering::Relaxed)
}

/// Beside [`Kind::Fresh`]: nothing was set of the socket yet, and it is one of IPv6.
const UNTOUCHED: u8 = 0x80;
const SIX: u8 = 0x40;
/// The same: what was shut down of it.
const DEAF: u8 = 0x20;
const MUTE: u8 = 0x10;

fn place(fd: c_int) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|fd| KINDS.get(fd))
}

/// What `fd` is.
#[inline]
pub(crate) fn get(fd: c_int) -> Kind {
    let Some(kind) = place(fd) else { return Kind::Kernel };
    match kind.load(Ordering::Relaxed) & !(UNTOUCHED | SIX | DEAF | MUTE) {
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
    let Some(place) = place(fd) else { return false };
    place.store(kind as u8, Ordering::Relaxed);
    if kind == Kind::Elsewhere {
        ELSEWHERE.store(true, Ordering::Relaxed);
    }
    if kind != Kind::Kernel {
        END.fetch_max(fd + 1, Ordering::Relaxed);
    }
    true
}

fn instance(fd: c_int) -> Option<&'static AtomicU32> {
    usize::try_from(fd).ok().and_then(|fd| INSTANCES.get(fd))
}

/// An epoll instance was made.
pub(crate) fn set_epoll(fd: c_int) {
    let number = INSTANCE_COUNT.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if let Some(place) = instance(fd).filter(|_| set(fd, Kind::Epoll)) {
        place.store(number, Ordering::Relaxed);
    }
}

/// An epoll instance has another descriptor.
pub(crate) fn copy_epoll(old: c_int, new: c_int) {
    let number = instance(old).map_or(0, |place| place.load(Ordering::Relaxed));
    if let Some(place) = instance(new).filter(|_| set(new, Kind::Epoll)) {
        place.store(number, Ordering::Relaxed);
    }
}

/// Whether two descriptors are of one epoll instance.
pub(crate) fn are_one_epoll(one: c_int, other: c_int) -> bool {
    let number = |fd| {
        let place = instance(fd).filter(|_| get(fd) == Kind::Epoll);
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    };
    number(one) != 0 && number(one) == number(other)
}

/// A TCP socket was made here, of which nothing is set.
pub(crate) fn set_untouched(fd: c_int, six: bool) {
    if set(fd, Kind::Fresh) {
        let version = if six { SIX } else { 0 };
        let _ = place(fd).map(|place| place.fetch_or(UNTOUCHED | version, Ordering::Relaxed));
    }
}

/// Whether a socket that is untouched is one of IPv6; `None`: something may have been set of it, or it was bound.
pub(crate) fn untouched(fd: c_int) -> Option<bool> {
    let kind = place(fd)?.load(Ordering::Relaxed);
    (kind & UNTOUCHED != 0).then_some(kind & SIX != 0)
}

/// Something may have been set of it, or will be, by whoever has it too.
#[inline]
pub(crate) fn touch(fd: c_int) {
    if untouched(fd).is_some() {
        let _ = place(fd).map(|place| place.fetch_and(!(UNTOUCHED | SIX), Ordering::Relaxed));
    }
}

/// A TCP socket of the kernel's was shut down, before it is anything else.
pub(crate) fn shut(fd: c_int, how: How) {
    let ends = match how {
        How::Read => DEAF,
        How::Write => MUTE,
        How::Both => DEAF | MUTE,
    };
    if get(fd) == Kind::Fresh {
        let _ = place(fd).map(|place| place.fetch_or(ends, Ordering::Relaxed));
    }
}

/// The kernel has forgotten that: it was disconnected (`tcp_disconnect`).
pub(crate) fn reopen(fd: c_int) {
    let _ = place(fd)
        .filter(|_| get(fd) == Kind::Fresh)
        .map(|place| place.fetch_and(!(DEAF | MUTE), Ordering::Relaxed));
}

/// What was shut down of a TCP socket of the kernel's.
pub(crate) fn what_is_shut(fd: c_int) -> Option<How> {
    let kind = place(fd)?.load(Ordering::Relaxed);
    match (kind & DEAF != 0, kind & MUTE != 0) {
        (false, false) => None,
        (true, false) => Some(How::Read),
        (false, true) => Some(How::Write),
        (true, true) => Some(How::Both),
    }
}

/// Others have all that this process has.
pub(crate) fn touch_all() {
    (0..END.load(Ordering::Relaxed)).for_each(touch);
}

/// How many descriptors the kernel's table has room for at least: it grows with the highest, by powers of two.
pub(crate) fn room() -> c_int {
    let end = END.load(Ordering::Relaxed).unsigned_abs();
    c_int::try_from(end.next_power_of_two()).unwrap_or(c_int::MAX)
}

/// All that are ours.
pub(crate) fn all() -> impl Iterator<Item = (c_int, Kind)> {
    (0..END.load(Ordering::Relaxed))
        .map(|fd| (fd, get(fd)))
        .filter(|(_, kind)| *kind != Kind::Kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that no test opens.
    const FIRST: c_int = 900_000;

    #[test]
    fn a_socket_is_untouched_until_something_may_have_been_set() {
        for (fd, six) in [(FIRST, false), (FIRST + 1, true)] {
            set_untouched(fd, six);
            assert_eq!((get(fd), untouched(fd)), (Kind::Fresh, Some(six)));
            touch(fd);
            assert_eq!((get(fd), untouched(fd)), (Kind::Fresh, None));
            set_untouched(fd, six);
            set(fd, Kind::Session);
            touch(fd);
            assert_eq!((get(fd), untouched(fd)), (Kind::Session, None));
            set_untouched(fd, six);
        }
        touch_all();
        assert_eq!((untouched(FIRST), untouched(FIRST + 1)), (None, None));
        set(FIRST, Kind::Kernel);
        set(FIRST + 1, Kind::Kernel);
    }

    #[test]
    fn what_was_shut_down_is_known_until_it_is_open_again() {
        let fd = FIRST + 5;
        set_untouched(fd, true);
        shut(fd, How::Write);
        touch(fd);
        assert_eq!((get(fd), what_is_shut(fd)), (Kind::Fresh, Some(How::Write)));
        shut(fd, How::Read);
        assert_eq!((what_is_shut(fd), untouched(fd)), (Some(How::Both), None));
        reopen(fd);
        assert_eq!((get(fd), what_is_shut(fd)), (Kind::Fresh, None));
        shut(fd, How::Read);
        set(fd, Kind::Session);
        shut(fd, How::Write);
        assert_eq!((get(fd), what_is_shut(fd)), (Kind::Session, None));
        set(fd, Kind::Kernel);
    }

    #[test]
    fn duplicates_are_of_one_epoll_instance() {
        let [first, second, copy] = [FIRST + 2, FIRST + 3, FIRST + 4];
        set_epoll(first);
        set_epoll(second);
        assert!(!are_one_epoll(first, second));
        copy_epoll(first, copy);
        assert!(are_one_epoll(first, copy) && are_one_epoll(copy, first));
        assert!(!are_one_epoll(second, copy));
        // Closed, and another one has its number.
        set(first, Kind::Kernel);
        assert!(!are_one_epoll(first, copy));
        set_epoll(first);
        assert!(!are_one_epoll(first, copy));
        for fd in [first, second, copy] {
            set(fd, Kind::Kernel);
        }
    }
}
