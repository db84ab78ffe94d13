//! Sockets of the kernel's that become the stack's take along what was set of them.

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use host::{Domain, Errno, Setting, Template};

use super::State;
use super::asking::Asks;
use crate::address::id;
use crate::clock::{self, SECOND};
use crate::sockets::Sockets;
use crate::{internal, kinds, real};

/// A word-sized option of a socket of the kernel's.
pub(crate) fn word(fd: c_int, level: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    let target = (&raw mut value).cast();
    // SAFETY: room for a word.
    (unsafe { real::getsockopt(fd, level, name, target, &raw mut length) } == 0).then_some(value)
}

/// Times of acknowledgments and retransmissions (`uapi/linux/tcp.h`).
const TCP_RTO_MIN_US: c_int = 45;
const TCP_DELACK_MAX_US: c_int = 46;

/// Options that a session takes over from the socket of the kernel's that it began as.
const INHERITED: &[(c_int, c_int)] = &[
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_PRIORITY),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_CORK),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    (libc::IPPROTO_TCP, libc::TCP_LINGER2),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_NO_COOKIE),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP),
    (libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    (libc::IPPROTO_TCP, TCP_RTO_MIN_US),
    (libc::IPPROTO_TCP, TCP_DELACK_MAX_US),
    (libc::IPPROTO_IP, libc::IP_FREEBIND),
    (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
];
/// The same, with what each is where nobody has set it: no limit of segments (`TCP_MSS_DEFAULT`), and no peeking further on.
const SELDOM: [(c_int, c_int, c_int); 2] =
    [(libc::IPPROTO_TCP, libc::TCP_MAXSEG, 536), (libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1)];
/// The same, of UDP sockets, too.
const OF_NETWORK: &[(c_int, c_int)] = &[
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
];
/// The same, of IPv6 sockets.
const OF_NETWORK_V6: &[(c_int, c_int)] = &[
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
];
/// Structures among them, with their lengths.
const LONGER: &[(c_int, c_int, usize)] = &[
    (libc::SOL_SOCKET, libc::SO_LINGER, 8),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO, 16),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO, 16),
    (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, 8),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION, 16),
];

/// Which buffer sizes were chosen by the application (`SO_BUF_LOCK`, Linux 5.14).
const SO_BUF_LOCK: c_int = 72;
const LOCKS: [(c_int, c_int); 2] = [(1, libc::SO_SNDBUF), (2, libc::SO_RCVBUF)];

/// How long it is remembered what sockets of which nothing was set are like, which `sysctl` may change: ns.
const FRESH: u64 = SECOND;

/// What a socket of which nothing was set is like, and since when that is known (ns), over IPv4 and over IPv6.
pub(super) type Untouched = [Option<(u64, Template)>; 2];

/// How a session is opened with what was set of a socket of the kernel's.
pub(crate) enum Opening {
    /// Nothing was, and it is known what that means: to ask the kernel for each option takes longer than the connection does.
    Like(Template),
    With {
        six: bool,
        options: Vec<Setting>,
        /// When nothing was set of it: ns.
        untouched: Option<u64>,
    },
}

impl Opening {
    /// Opens it. Gives what others may be opened like, where that is new.
    pub(crate) fn open(
        &self,
        sessions: &mut Sockets,
        fd: c_int,
    ) -> Result<Option<Template>, Errno> {
        match self {
            Self::Like(template) => sessions.open_like(id(fd), template).map(|()| None),
            Self::With { six, options, .. } => {
                let domain = if *six { Domain::V6 } else { Domain::V4 };
                sessions.open_with(id(fd), domain, options).map(Some)
            }
        }
    }
}

/// Opens a session at `fd` with what was set of the socket of the kernel's.
pub(super) fn open_like_kernels<S: Asks>(mut state: S, fd: c_int) -> (S, Result<(), Errno>) {
    let opening = match state.opening(fd) {
        Ok(opening) => opening,
        Err(error) => return (state, Err(error)),
    };
    let (mut state, opened) = state.ask(|sessions| opening.open(sessions, fd));
    let opened = opened.map(|template| state.opened(&opening, template));
    (state, opened)
}

impl State {
    /// How a session at `fd` is to be opened. The number is its own then.
    pub(crate) fn opening(&mut self, fd: c_int) -> Result<Opening, Errno> {
        self.claim_number(fd)?;
        let (now, untouched) = (clock::now(), kinds::untouched(fd));
        let known = untouched.and_then(|six| self.untouched.get(usize::from(six))?.as_ref());
        if let Some((_, template)) = known.filter(|(since, _)| now < since + FRESH) {
            return Ok(Opening::Like(template.clone()));
        }
        let is_six = || word(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) == Some(libc::AF_INET6);
        let six = untouched.unwrap_or_else(is_six);
        let is_set = |(level, name, plain): &(c_int, c_int, c_int)| {
            word(fd, *level, *name).is_some_and(|value| value != *plain)
        };
        let seldom = SELDOM.into_iter().filter(is_set).map(|(level, name, _)| (level, name));
        let words = INHERITED.iter().copied().chain(seldom);
        let mut options = options_of(fd, six, words);
        options.extend(own_key(fd));
        Ok(Opening::With { six, options, untouched: untouched.map(|_| now) })
    }

    /// A session was opened so: others of which nothing was set will be like it.
    pub(crate) fn opened(&mut self, opening: &Opening, template: Option<Template>) {
        let Opening::With { six, untouched: Some(since), .. } = opening else { return };
        if let Some(place) = self.untouched.get_mut(usize::from(*six)) {
            *place = template.map(|template| (*since, template));
        }
    }
}

/// A listener's own key of Fast Open, which becomes the stack's: that has one for all listeners. Of one without a key, the kernel says
/// the host's (`net.ipv4.tcp_fastopen_key`).
fn own_key(fd: c_int) -> Option<Setting> {
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_KEY);
    if word(fd, level, libc::TCP_FASTOPEN)? <= 0 {
        return None;
    }
    let plain = internal::socket(libc::AF_INET, libc::SOCK_STREAM)?;
    let value = fast_open_key(fd);
    (value != fast_open_key(plain.as_raw_fd())).then_some(Setting { level, name, value })
}

/// `TCP_FASTOPEN_KEY`: a key, or two, or nothing.
fn fast_open_key(fd: c_int) -> Vec<u8> {
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_KEY);
    let mut key = vec![0_u8; 32];
    let mut length = key.len() as libc::socklen_t;
    let target = key.as_mut_ptr().cast();
    // SAFETY: room for both keys.
    let done = unsafe { real::getsockopt(fd, level, name, target, &raw mut length) };
    key.truncate(if done == 0 { length as usize } else { 0 });
    key
}

/// What was set of the socket of the kernel's at `fd`: of the network, and of `words`. `six`: it is an IPv6 socket.
pub(super) fn options_of(
    fd: c_int,
    six: bool,
    words: impl Iterator<Item = (c_int, c_int)>,
) -> Vec<Setting> {
    let mut options = Vec::new();
    let mut set = |level, name, value: &[u8]| {
        options.push(Setting { level, name, value: value.to_vec() });
    };
    // First the buffers: SO_RCVLOWAT is at most what fits.
    let locked = word(fd, libc::SOL_SOCKET, SO_BUF_LOCK).unwrap_or(0);
    for (_, name) in LOCKS.into_iter().filter(|(bit, _)| locked & bit != 0) {
        let Some(value) = word(fd, libc::SOL_SOCKET, name) else { continue };
        // The kernel says twice what was asked for.
        set(libc::SOL_SOCKET, name, &(value / 2).to_ne_bytes());
    }
    let of_version = if six { OF_NETWORK_V6 } else { &[] };
    for (level, name) in words.chain(OF_NETWORK.iter().chain(of_version).copied()) {
        let Some(value) = word(fd, level, name) else { continue };
        set(level, name, &value.to_ne_bytes());
    }
    for (level, name, most) in LONGER {
        let mut value = [0_u8; 16];
        let mut length = *most as libc::socklen_t;
        let target = value.as_mut_ptr().cast();
        // SAFETY: room for sixteen bytes, and no more is asked for.
        if unsafe { real::getsockopt(fd, *level, *name, target, &raw mut length) } != 0 {
            continue;
        }
        let value = value.get(..length as usize).unwrap_or_default();
        set(*level, *name, value);
    }
    options
}

#[cfg(test)]
mod tests;
