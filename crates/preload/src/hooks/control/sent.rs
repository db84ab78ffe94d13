//! What the application says about what it sends.

use std::ffi::{c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use host::{Errno, Outgoing};
use libc::msghdr;

use super::{INTERFACE, each};

/// Bytes of control messages of one call at most (`net.core.optmem_max`, as Linux 6.8 has it on and later).
const MOST: usize = 128 << 10;
/// Priorities that need no privilege.
const PRIORITIES: std::ops::RangeInclusive<c_int> = 0..=6;

/// The IP versions of a datagram's destination and of the socket that it leaves by: each heeds other messages.
#[derive(Debug, Clone, Copy)]
pub(in crate::hooks) struct Versions {
    four: bool,
    socket_four: bool,
}

impl Versions {
    /// To that address, as the socket has it: a socket of version 6 has mapped ones of version 4.
    pub(in crate::hooks) fn of(to: SocketAddr) -> Self {
        Self { four: to.ip().to_canonical().is_ipv4(), socket_four: to.is_ipv4() }
    }
}

/// Reads what `message` says about the datagram.
///
/// # Errors
/// [`Errno::INVAL`]: a message that is cut off, or that none knows. [`Errno::NOBUFS`]: too many. [`Errno::NODEV`]: an interface that
/// there is not. [`Errno::PERM`]: what takes a privilege in Linux.
///
/// # Safety
/// As for `sendmsg`.
pub(in crate::hooks) unsafe fn read(
    message: &msghdr,
    versions: Versions,
    outgoing: &mut Outgoing,
) -> Result<(), Errno> {
    bounded(message)?;
    let act = |level, kind, data: &[u8]| understand((level, kind), data, versions, outgoing);
    // SAFETY: the caller's promise.
    unsafe { each(message, act) }
}

/// Looks at what `message` says of a stream, which nothing can be said of.
///
/// # Errors
/// As for [`read`].
///
/// # Safety
/// As for `sendmsg`.
pub(in crate::hooks) unsafe fn check(message: &msghdr) -> Result<(), Errno> {
    bounded(message)?;
    let act = |level, kind, data: &[u8]| match level {
        libc::SOL_SOCKET => of_any_socket(kind, data),
        _ => Ok(()),
    };
    // SAFETY: the caller's promise.
    unsafe { each(message, act) }
}

fn bounded(message: &msghdr) -> Result<(), Errno> {
    match message.msg_controllen {
        ..=MOST if message.msg_control.is_null() && message.msg_controllen > 0 => Err(Errno::FAULT),
        ..=MOST => Ok(()),
        _ => Err(Errno::NOBUFS),
    }
}

fn number(data: &[u8]) -> Result<c_int, Errno> {
    data.try_into().map(c_int::from_ne_bytes).map_err(|_| Errno::INVAL)
}

/// A number in that range.
fn byte(number: c_int, least: c_int) -> Result<u8, Errno> {
    u8::try_from(number).ok().filter(|_| number >= least).ok_or(Errno::INVAL)
}

/// Messages of the level `SOL_SOCKET` (`__sock_cmsg_send`).
fn of_any_socket(kind: c_int, data: &[u8]) -> Result<(), Errno> {
    match kind {
        libc::SCM_RIGHTS | libc::SCM_CREDENTIALS => Ok(()),
        libc::SO_MARK => Err(Errno::PERM),
        libc::SO_PRIORITY if PRIORITIES.contains(&number(data)?) => Ok(()),
        libc::SO_PRIORITY => Err(Errno::PERM),
        // Nobody is told when it left.
        libc::SO_TIMESTAMPING => number(data).map(drop),
        // Also `SCM_TS_OPT_ID` and `SCM_TXTIME`, which are for sockets with options that none can have here.
        _ => Err(Errno::INVAL),
    }
}

fn understand(
    (level, kind): (c_int, c_int),
    data: &[u8],
    versions: Versions,
    outgoing: &mut Outgoing,
) -> Result<(), Errno> {
    match level {
        libc::SOL_SOCKET => of_any_socket(kind, data),
        libc::SOL_UDP if kind == libc::UDP_SEGMENT => {
            let size = data.try_into().map_err(|_| Errno::INVAL)?;
            outgoing.segment_size = u16::from_ne_bytes(size);
            Ok(())
        }
        libc::SOL_UDP => Err(Errno::INVAL),
        libc::IPPROTO_IP if versions.four => of_four(kind, data, outgoing),
        // `ip_cmsg_send`: the one message of the other version that it knows.
        libc::IPPROTO_IPV6 if versions.four => match kind {
            libc::IPV6_PKTINFO if !versions.socket_four => {
                let (address, interface) = packet_info(data)?;
                let mapped = address.to_ipv4_mapped().ok_or(Errno::INVAL)?;
                leave_from(mapped.into(), interface, outgoing)
            }
            _ => Ok(()),
        },
        libc::IPPROTO_IPV6 => of_six(kind, data, outgoing),
        _ => Ok(()),
    }
}

/// To a destination of version 4 (`ip_cmsg_send`).
fn of_four(kind: c_int, data: &[u8], outgoing: &mut Outgoing) -> Result<(), Errno> {
    match kind {
        libc::IP_PKTINFO => {
            let info: &[u8; 12] = data.try_into().map_err(|_| Errno::INVAL)?;
            let [i, j, k, l, a, b, c, d, ..] = *info;
            let interface = c_int::from_ne_bytes([i, j, k, l]);
            leave_from(Ipv4Addr::new(a, b, c, d).into(), interface, outgoing)
        }
        libc::IP_TTL => {
            outgoing.ttl = Some(byte(number(data)?, 1)?);
            Ok(())
        }
        libc::IP_TOS => {
            let service = match data {
                [service] => *service,
                data => byte(number(data)?, 0)?,
            };
            outgoing.service = Some(service);
            Ok(())
        }
        _ => Err(Errno::INVAL),
    }
}

/// To one of version 6 (`ip6_datagram_send_ctl`; RFC 3542 6.3, 6.5: -1 is the default).
fn of_six(kind: c_int, data: &[u8], outgoing: &mut Outgoing) -> Result<(), Errno> {
    match kind {
        libc::IPV6_PKTINFO => {
            let (address, interface) = packet_info(data)?;
            leave_from(address.into(), interface, outgoing)
        }
        libc::IPV6_HOPLIMIT => {
            let number = number(data)?;
            outgoing.ttl = if number == -1 { outgoing.ttl } else { Some(byte(number, 0)?) };
            Ok(())
        }
        libc::IPV6_TCLASS => {
            let number = number(data)?;
            outgoing.service = if number == -1 { outgoing.service } else { Some(byte(number, 0)?) };
            Ok(())
        }
        _ => Err(Errno::INVAL),
    }
}

/// The source and the interface of a `struct in6_pktinfo`.
fn packet_info(data: &[u8]) -> Result<(Ipv6Addr, c_int), Errno> {
    let (address, rest) = data.split_first_chunk::<16>().ok_or(Errno::INVAL)?;
    let interface = rest.first_chunk().ok_or(Errno::INVAL)?;
    Ok((Ipv6Addr::from(*address), c_int::from_ne_bytes(*interface)))
}

fn leave_from(source: IpAddr, interface: c_int, outgoing: &mut Outgoing) -> Result<(), Errno> {
    if !matches!(interface, 0 | INTERFACE) && !exists(interface) {
        return Err(Errno::NODEV);
    }
    if !source.is_unspecified() {
        outgoing.source = Some(source);
    }
    Ok(())
}

/// Whether the kernel has an interface of that number; Millrace's have none.
fn exists(interface: c_int) -> bool {
    let mut name = [0 as c_char; libc::IF_NAMESIZE];
    // SAFETY: room for a name.
    let found = unsafe { libc::if_indextoname(interface.unsigned_abs(), name.as_mut_ptr()) };
    interface > 0 && !found.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(to: &str, said: (c_int, c_int), data: &[u8]) -> Result<Outgoing, Errno> {
        let (mut outgoing, versions) = (Outgoing::default(), Versions::of(to.parse().unwrap()));
        understand(said, data, versions, &mut outgoing).map(|()| outgoing)
    }

    const FOUR: &str = "192.0.2.1:7";
    const MAPPED: &str = "[::ffff:192.0.2.1]:7";
    const SIX: &str = "[2001:db8::1]:7";

    #[test]
    fn messages_of_the_other_version_are_passed_over() {
        let ttl = |number: c_int| number.to_ne_bytes();
        let (four, six) =
            ((libc::IPPROTO_IP, libc::IP_TTL), (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT));
        for (to, of_four) in [(FOUR, true), (MAPPED, true), (SIX, false)] {
            let heeded = |said: Outgoing| said.ttl == Some(9);
            assert_eq!(said(to, four, &ttl(9)).map(heeded), Ok(of_four), "{to}");
            assert_eq!(said(to, six, &ttl(9)).map(heeded), Ok(!of_four), "{to}");
            let unknown = |level| said(to, (level, 1234), &[]).map(drop);
            let refused = Err(Errno::INVAL);
            assert_eq!(unknown(libc::IPPROTO_IP), if of_four { refused } else { Ok(()) });
            assert_eq!(unknown(libc::IPPROTO_IPV6), if of_four { Ok(()) } else { refused });
            assert_eq!([libc::SOL_SOCKET, libc::SOL_UDP].map(unknown), [refused; 2]);
            assert_eq!(unknown(libc::SOL_TCP), Ok(()));
        }
    }

    #[test]
    fn numbers_have_the_length_and_the_range_that_linux_knows() {
        let said =
            |to, what, data: &[u8]| said(to, what, data).map(|said| (said.ttl, said.service));
        let refused = Err(Errno::INVAL);
        let (ttl, tos) = ((libc::IPPROTO_IP, libc::IP_TTL), (libc::IPPROTO_IP, libc::IP_TOS));
        assert_eq!([&[9][..], &[0; 4], &[9; 4]].map(|data| said(FOUR, ttl, data)), [refused; 3]);
        assert_eq!(said(FOUR, tos, &[9]), Ok((None, Some(9))));
        assert_eq!(said(FOUR, tos, &9_i32.to_ne_bytes()), Ok((None, Some(9))));
        assert_eq!(said(FOUR, tos, &[0; 2]), refused);
        for what in [libc::IPV6_HOPLIMIT, libc::IPV6_TCLASS] {
            let said = |data: &[u8]| said(SIX, (libc::IPPROTO_IPV6, what), data);
            assert_eq!(said(&(-1_i32).to_ne_bytes()), Ok((None, None)));
            assert_eq!([said(&[9]), said(&(-2_i32).to_ne_bytes()), said(&[1; 4])], [refused; 3]);
        }
    }

    #[test]
    fn a_source_may_be_named_with_an_interface_that_there_is() {
        let info = |address: Ipv6Addr, interface: c_int| {
            [&address.octets()[..], &interface.to_ne_bytes()].concat()
        };
        let what = (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO);
        let source = |to, address: &str, interface| {
            let said = said(to, what, &info(address.parse().unwrap(), interface));
            said.map(|said| said.source)
        };
        let is = |address: &str| Ok(Some(address.parse::<IpAddr>().unwrap()));
        assert_eq!(source(SIX, "2001:db8::2", 0), is("2001:db8::2"));
        assert_eq!(source(SIX, "2001:db8::2", INTERFACE), is("2001:db8::2"));
        assert_eq!([-1, c_int::MAX].map(|at| source(SIX, "::", at)), [Err(Errno::NODEV); 2]);
        assert_eq!(source(SIX, "::", 0), Ok(None));
        assert_eq!(source(MAPPED, "::ffff:192.0.2.2", 0), is("192.0.2.2"));
        assert_eq!(source(MAPPED, "::", 0), Err(Errno::INVAL));
        assert_eq!(source(FOUR, "2001:db8::2", 0), Ok(None), "passed over");
        assert_eq!(said(SIX, what, &[0; 19]).map(drop), Err(Errno::INVAL));
    }
}
