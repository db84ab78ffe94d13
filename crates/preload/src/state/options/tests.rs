//! Nothing that the stack honours is left behind at the kernel's socket.

use std::collections::HashSet;

use host::{Id, Kind as SocketKind, Sessions};
use transport::Config;

use super::super::datagrams::{INHERITED as OF_DATAGRAMS, INHERITED_V6, STAMPS};
use super::*;

/// A level, and a name there.
type Name = (c_int, c_int);

const LEVELS: [c_int; 5] =
    [libc::SOL_SOCKET, libc::IPPROTO_TCP, libc::IPPROTO_IP, libc::IPPROTO_IPV6, libc::SOL_UDP];
/// More than there are at any level.
const NAMES: c_int = 128;

/// Other names of what is taken over, and `SO_BUF_LOCK`, which both sizes set.
const SAID: [Name; 4] = [
    (libc::SOL_SOCKET, SO_BUF_LOCK),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO_NEW),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO_NEW),
    (libc::IPPROTO_IPV6, libc::IPV6_FREEBIND),
];
/// Of all sockets of the process: see `own_key`.
const OF_ALL: [Name; 1] = [(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_KEY)];
/// What a stream keeps without effect.
const IDLE_OF_STREAMS: [Name; 12] = [
    (libc::SOL_SOCKET, libc::SO_BROADCAST),
    (libc::IPPROTO_IP, libc::IP_PKTINFO),
    (libc::IPPROTO_IP, libc::IP_RECVTTL),
    (libc::IPPROTO_IP, libc::IP_RECVTOS),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG),
];
/// What has no effect on datagrams by Millrace, or concerns groups, which the kernel sends to. It says what they are, too.
const IDLE_OF_DATAGRAMS: [Name; 12] = [
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_PRIORITY),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::IPPROTO_IP, libc::IP_FREEBIND),
    (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP),
    (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
    (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL),
];

/// Values among which each option has one that it is not at first.
fn values() -> Vec<Vec<u8>> {
    // 24: bits of SO_TIMESTAMPING.
    let words = [0, 1, 2, 5, 7, 24, 40, 1000, 50_000_i32];
    let mut values: Vec<_> = words.map(|word| word.to_ne_bytes().to_vec()).into();
    values.push([1, 5_i32].map(i32::to_ne_bytes).concat());
    values.push([3, 500_000_i64].map(i64::to_ne_bytes).concat());
    values.push(b"reno".to_vec());
    values
}

/// What changes when it is set of a socket that was just opened.
fn honoured(domain: Domain, kind: SocketKind) -> HashSet<Name> {
    let mut sessions = Sessions::new(Config::default()).unwrap();
    let (at, values) = (Id(1), values());
    let mut changes = |(level, name): Name, value: &[u8]| {
        sessions.open(at, domain, kind).unwrap();
        let before = sessions.option(at, level, name, 64);
        let is_set = sessions.set_option(at, level, name, value).is_ok();
        let changes = is_set && sessions.option(at, level, name, 64) != before;
        sessions.close(at);
        changes
    };
    let names = LEVELS.into_iter().flat_map(|level| (0..NAMES).map(move |name| (level, name)));
    names.filter(|name| values.iter().any(|value| changes(*name, value))).collect()
}

/// What a session of either kind takes over.
fn of_both(six: bool) -> impl Iterator<Item = Name> {
    let of_version = if six { OF_NETWORK_V6 } else { &[] };
    let sizes = LOCKS.into_iter().map(|(_, name)| (libc::SOL_SOCKET, name));
    let longer = LONGER.iter().map(|(level, name, _)| (*level, *name));
    OF_NETWORK.iter().chain(of_version).copied().chain(sizes).chain(longer)
}

#[test]
fn a_stream_takes_over_all_that_the_stack_honours_and_nothing_else() {
    for (domain, six) in [(Domain::V4, false), (Domain::V6, true)] {
        let mut honoured = honoured(domain, SocketKind::Stream);
        honoured.retain(|name| !SAID.contains(name) && !OF_ALL.contains(name));
        honoured.retain(|name| !IDLE_OF_STREAMS.contains(name));
        let seldom = SELDOM.into_iter().map(|(level, name, _)| (level, name));
        let own = INHERITED.iter().copied().chain(seldom);
        let taken: HashSet<_> = own.chain(of_both(six)).collect();
        assert_eq!(honoured, taken, "{domain:?}");
    }
}

#[test]
fn a_udp_socket_takes_over_all_that_the_stack_honours() {
    for (domain, six) in [(Domain::V4, false), (Domain::V6, true)] {
        let honoured = honoured(domain, SocketKind::Datagram);
        let of_version = if six { INHERITED_V6 } else { &[] };
        let own = OF_DATAGRAMS.iter().chain(of_version).copied().chain(STAMPS);
        let taken: HashSet<_> = own.chain(of_both(six)).collect();
        let mut forgotten: Vec<_> = honoured.difference(&taken).collect();
        forgotten.retain(|name| !SAID.contains(name) && !IDLE_OF_DATAGRAMS.contains(name));
        assert!(forgotten.is_empty(), "{domain:?}: {forgotten:?}");
        let idle = OF_DATAGRAMS.iter().chain(of_version).find(|name| !honoured.contains(*name));
        assert_eq!(idle, None, "{domain:?}");
    }
}

#[test]
fn a_sockets_own_key_is_not_the_hosts() {
    let socket = || internal::socket(libc::AF_INET, libc::SOCK_STREAM).unwrap();
    let (own, plain) = (socket(), socket());
    assert_eq!(fast_open_key(own.as_raw_fd()), fast_open_key(plain.as_raw_fd()));
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_KEY);
    for length in [16, 32_u8] {
        let key: Vec<u8> = (1..=length).collect();
        let (at, length) = (key.as_ptr().cast(), length.into());
        // SAFETY: as many bytes as are said.
        let done = unsafe { real::setsockopt(own.as_raw_fd(), level, name, at, length) };
        assert_eq!((done, fast_open_key(own.as_raw_fd())), (0, key));
    }
    assert_ne!(fast_open_key(own.as_raw_fd()), fast_open_key(plain.as_raw_fd()));
}
