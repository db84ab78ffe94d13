//! What is refused of sockets that are the stack's, too, or may become so: it would hold for what passes through the kernel alone.
//! The error number is that of kernels, or sockets, which do not know the option, so that programs do without.

use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;

use host::Errno;
use libc::socklen_t;

use crate::kinds::Kind;
use crate::state::{STAMPS, is_alone, word};
use crate::{address, errno, internal, memory, real};

/// A level, and a name there.
type Name = (c_int, c_int);

/// `uapi/linux/tcp.h`
const TCP_MD5SIG_EXT: c_int = 32;
const TCP_TX_DELAY: c_int = 37;
const TCP_AO_ADD_KEY: c_int = 38;
const TCP_RTO_MAX_MS: c_int = 44;
/// Its default, which is the stack's only one: ms.
const LONGEST_RTO: c_int = 120_000;
/// `uapi/linux/in.h`, `uapi/linux/in6.h`
const IP_RECVERR_RFC4884: c_int = 26;
const IP_LOCAL_PORT_RANGE: c_int = 51;
const IPV6_RECVERR_RFC4884: c_int = 31;
const IPV6_RECVORIGDSTADDR: c_int = 74;

/// Of every socket, unless they are set to 0.
const OF_BOTH: [Name; 5] = [
    (libc::SOL_SOCKET, libc::SO_DONTROUTE),
    (libc::IPPROTO_IP, IP_RECVERR_RFC4884),
    (libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE),
    (libc::IPPROTO_IPV6, IPV6_RECVERR_RFC4884),
    (libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND),
];
/// The same, of TCP sockets, and [`STAMPS`].
const OF_STREAMS: [Name; 6] = [
    (libc::IPPROTO_IP, libc::IP_RECVERR),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    (libc::IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS),
    (libc::IPPROTO_TCP, libc::TCP_SAVE_SYN),
    (libc::IPPROTO_TCP, libc::TCP_INQ),
    (libc::IPPROTO_TCP, TCP_TX_DELAY),
];
/// The same, of UDP sockets, which would be told what is not known of datagrams that come by Millrace.
const OF_DATAGRAMS: [Name; 20] = [
    (libc::SOL_SOCKET, libc::SO_WIFI_STATUS),
    (libc::SOL_SOCKET, libc::SO_RCVMARK),
    (libc::IPPROTO_IP, libc::IP_RECVOPTS),
    (libc::IPPROTO_IP, libc::IP_RETOPTS),
    (libc::IPPROTO_IP, libc::IP_PASSSEC),
    (libc::IPPROTO_IP, libc::IP_RECVORIGDSTADDR),
    (libc::IPPROTO_IP, libc::IP_CHECKSUM),
    (libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE),
    (libc::IPPROTO_IPV6, libc::IPV6_2292PKTINFO),
    (libc::IPPROTO_IPV6, libc::IPV6_2292HOPOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_2292DSTOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_2292RTHDR),
    (libc::IPPROTO_IPV6, libc::IPV6_2292HOPLIMIT),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVRTHDR),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVDSTOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPATHMTU),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE),
    (libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO),
    (libc::IPPROTO_IPV6, IPV6_RECVORIGDSTADDR),
];
/// Whatever they are set to: structures, programs, and headers of all packets.
const ALWAYS: [Name; 7] = [
    (libc::SOL_SOCKET, libc::SO_TXTIME),
    (libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_EBPF),
    (libc::IPPROTO_IP, libc::IP_OPTIONS),
    (libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_RTHDRDSTOPTS),
    (libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
    (libc::IPPROTO_IPV6, libc::IPV6_DSTOPTS),
];
/// Keys by which segments are signed.
const KEYS: [Name; 3] = [
    (libc::IPPROTO_TCP, libc::TCP_MD5SIG),
    (libc::IPPROTO_TCP, TCP_MD5SIG_EXT),
    (libc::IPPROTO_TCP, TCP_AO_ADD_KEY),
];

/// Why an option is not set. `None`: the kernel's socket has it.
///
/// # Safety
/// As for `setsockopt`.
pub(super) unsafe fn why(
    (fd, kind): (c_int, Kind),
    (level, name): Name,
    value: *const c_void,
    length: socklen_t,
) -> Option<Errno> {
    let is_stream = match kind {
        Kind::Fresh | Kind::Listener => true,
        Kind::Datagrams => false,
        _ => return None,
    };
    // SAFETY: the caller's promise.
    let number = unsafe { number(value, length) }?;
    let unknown = refusal(is_stream, (level, name), number)?;
    if is_alone(fd) || is_stream && address::is_connected(fd) {
        // It stays the kernel's.
        return None;
    }
    let kind = if is_stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    // SAFETY: the caller's promise.
    Some(unsafe { of_kernel((fd, kind), (level, name), value, length) }.unwrap_or(unknown))
}

/// What an option is set to, as far as that is a number: one byte will do at `IPPROTO_IP`. `None`: there is nothing.
///
/// # Safety
/// As for `setsockopt`.
unsafe fn number(value: *const c_void, length: socklen_t) -> Option<c_int> {
    let length = i32::try_from(length).ok().filter(|length| *length > 0 && !value.is_null())?;
    memory::readable(value, length as usize).ok()?;
    Some(if length < 4 {
        // SAFETY: a byte at least, as the application says.
        c_int::from(unsafe { value.cast::<u8>().read() })
    } else {
        // SAFETY: a word at least.
        unsafe { value.cast::<c_int>().read_unaligned() }
    })
}

/// What is said of an option that is set to `number`, or to something that begins like that. `None`: it is not refused.
fn refusal(is_stream: bool, name: Name, number: c_int) -> Option<Errno> {
    let of_kind: &[Name] = if is_stream { &OF_STREAMS } else { &OF_DATAGRAMS };
    let is_refused = match name {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)
        | (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
            let is_unknown = number == libc::IP_PMTUDISC_INTERFACE
                || is_stream && number == libc::IP_PMTUDISC_PROBE;
            return is_unknown.then_some(Errno::INVAL);
        }
        (libc::SOL_SOCKET, libc::SO_PEEK_OFF) => {
            return (!is_stream && number >= 0).then_some(Errno::OPNOTSUPP);
        }
        // Taken, it would leave the socket to the kernel alone: gRPC's servers try it with each listener.
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY) => {
            return (number != 0).then_some(Errno::OPNOTSUPP);
        }
        (libc::IPPROTO_TCP, TCP_RTO_MAX_MS) => is_stream && number != LONGEST_RTO,
        name if ALWAYS.contains(&name) => true,
        name if KEYS.contains(&name) => is_stream,
        name if STAMPS.contains(&name) => is_stream && number != 0,
        name => number != 0 && (OF_BOTH.contains(&name) || of_kind.contains(&name)),
    };
    is_refused.then_some(Errno::NOPROTOOPT)
}

/// Why the kernel refuses an option, too. Another socket tells: what this one got would stay with it.
///
/// # Safety
/// As for `setsockopt`.
unsafe fn of_kernel(
    (fd, kind): (c_int, c_int),
    (level, name): Name,
    value: *const c_void,
    length: socklen_t,
) -> Option<Errno> {
    let Some(domain) = word(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) else {
        return Some(errno::get());
    };
    let other = internal::socket(domain, kind)?;
    let (other, on) = (other.as_raw_fd(), 1_i32);
    // Programs that choose among sockets are for those that share a port.
    let (shares, on) = (libc::SO_REUSEPORT, (&raw const on).cast());
    // SAFETY: a word, and its length.
    unsafe { real::setsockopt(other, libc::SOL_SOCKET, shares, on, 4) };
    // SAFETY: the caller's promise.
    let done = unsafe { real::setsockopt(other, level, name, value, length) };
    (done < 0).then(errno::get)
}

#[cfg(test)]
mod tests {
    use super::super::{getsockopt, setsockopt};
    use super::*;
    use crate::hooks::{descriptors, sockets};

    /// Sets an option of a new socket. Gives why it is refused, and what it is then.
    fn set(kind: c_int, (level, name): Name, value: c_int) -> (Option<Errno>, c_int) {
        let (mut then, mut length) = (-2, 4);
        // SAFETY: words, and their lengths.
        let error = unsafe {
            let fd = sockets::socket(libc::AF_INET, kind, 0);
            let done = setsockopt(fd, level, name, (&raw const value).cast(), 4);
            let error = (done < 0).then(errno::get);
            getsockopt(fd, level, name, (&raw mut then).cast(), &raw mut length);
            descriptors::close(fd);
            error
        };
        (error, then)
    }

    #[test]
    fn what_the_stack_would_forget_is_refused_and_not_set() {
        let (stream, datagram) = (libc::SOCK_STREAM, libc::SOCK_DGRAM);
        let refused = Some(Errno::NOPROTOOPT);
        for (kind, name) in [
            (stream, (libc::SOL_SOCKET, libc::SO_DONTROUTE)),
            (stream, (libc::SOL_SOCKET, libc::SO_TIMESTAMP)),
            (stream, (libc::IPPROTO_IP, libc::IP_RECVERR)),
            (stream, (libc::IPPROTO_TCP, libc::TCP_SAVE_SYN)),
            (stream, (libc::IPPROTO_TCP, libc::TCP_INQ)),
            (datagram, (libc::SOL_SOCKET, libc::SO_DONTROUTE)),
            (datagram, (libc::IPPROTO_IP, libc::IP_RECVOPTS)),
            (datagram, (libc::IPPROTO_IP, libc::IP_RECVORIGDSTADDR)),
        ] {
            assert_eq!(set(kind, name, 1), (refused, 0), "{kind} {name:?}");
            assert_eq!(set(kind, name, 0), (None, 0), "{kind} {name:?}");
        }
        let discovery = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
        assert_eq!(set(datagram, discovery, libc::IP_PMTUDISC_INTERFACE).0, Some(Errno::INVAL));
        let zero_copy = (libc::SOL_SOCKET, libc::SO_ZEROCOPY);
        for kind in [stream, datagram] {
            assert_eq!(set(kind, zero_copy, 1), (Some(Errno::OPNOTSUPP), 0), "{kind}");
        }
    }

    #[test]
    fn what_the_stack_does_or_what_has_no_effect_is_set() {
        let (stream, datagram) = (libc::SOCK_STREAM, libc::SOCK_DGRAM);
        for (kind, name, value) in [
            (stream, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), 1),
            (stream, (libc::SOL_SOCKET, libc::SO_PRIORITY), 6),
            (datagram, (libc::SOL_SOCKET, libc::SO_PRIORITY), 6),
            (datagram, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), 1),
            (datagram, (libc::SOL_SOCKET, libc::SO_TIMESTAMP), 1),
            (datagram, (libc::IPPROTO_IP, libc::IP_RECVERR), 1),
            (datagram, (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE),
            (stream, (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_DO),
        ] {
            assert_eq!(set(kind, name, value), (None, value), "{kind} {name:?}");
        }
    }

    #[test]
    fn values_and_kinds_decide() {
        let (lost, unknown) = (Some(Errno::NOPROTOOPT), Some(Errno::INVAL));
        let discovery = (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
        for (name, number, of_stream, of_datagram) in [
            (discovery, libc::IP_PMTUDISC_INTERFACE, unknown, unknown),
            (discovery, libc::IP_PMTUDISC_PROBE, unknown, None),
            (discovery, libc::IP_PMTUDISC_OMIT, None, None),
            ((libc::SOL_SOCKET, libc::SO_PEEK_OFF), 0, None, Some(Errno::OPNOTSUPP)),
            ((libc::SOL_SOCKET, libc::SO_PEEK_OFF), -1, None, None),
            ((libc::SOL_SOCKET, libc::SO_ZEROCOPY), 0, None, None),
            ((libc::SOL_SOCKET, libc::SO_TXTIME), 0, lost, lost),
            ((libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_EBPF), 0, lost, lost),
            ((libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF), 1, None, None),
            ((libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE), -1, lost, lost),
            ((libc::IPPROTO_IP, libc::IP_OPTIONS), 0, lost, lost),
            ((libc::IPPROTO_IPV6, libc::IPV6_RECVPATHMTU), 1, None, lost),
            ((libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE), 1, None, lost),
            ((libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO), 1, None, lost),
            ((libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND), 1, lost, lost),
            ((libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND), 0, None, None),
            ((libc::IPPROTO_IPV6, libc::IPV6_RECVERR), 1, lost, None),
            ((libc::IPPROTO_TCP, TCP_RTO_MAX_MS), LONGEST_RTO, None, None),
            ((libc::IPPROTO_TCP, TCP_RTO_MAX_MS), 5000, lost, None),
            ((libc::IPPROTO_TCP, TCP_AO_ADD_KEY), 0, lost, None),
            ((libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), 1, None, None),
            ((libc::IPPROTO_TCP, libc::TCP_NODELAY), 1, None, None),
        ] {
            assert_eq!(refusal(true, name, number), of_stream, "{name:?}: {number}");
            assert_eq!(refusal(false, name, number), of_datagram, "{name:?}: {number}");
        }
    }
}
