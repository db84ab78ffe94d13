//! What Linux says of options before anybody has set them (read from Linux 6.18).

use millrace_host::{Domain, Kind};

use super::{IP, IPV6, SOCKET, TCP, UDP, get, set};
use crate::pair::{CLIENT, Pair};

/// What `getsockopt` says of a fresh socket: name and value.
fn check(domain: Domain, kind: Kind, level: i32, expected: &[(i32, i32)]) {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(CLIENT, domain, kind).unwrap();
    for (name, value) in expected {
        let told = get(client, CLIENT, level, *name);
        assert_eq!(told, Ok(*value), "{domain:?} {kind:?} level {level} name {name}");
        // What it is may be said, where it may be set at all.
        if READ_ONLY.contains(&(level, *name)) {
            continue;
        }
        assert_eq!(set(client, CLIENT, (level, *name), *value), Ok(()), "{level} {name}");
        assert_eq!(get(client, CLIENT, level, *name), told, "{level} {name}");
    }
}

/// Those that can only be read, or not said as they are told, or not of a stream: sizes are doubled, 0 is out of range.
const READ_ONLY: &[(i32, i32)] = &[
    (SOCKET, 3),
    (SOCKET, 4),
    (SOCKET, 7),
    (SOCKET, 8),
    (SOCKET, 18),
    (SOCKET, 19),
    (SOCKET, 30),
    (SOCKET, 38),
    (SOCKET, 39),
    (SOCKET, 48),
    (SOCKET, 56),
    (TCP, 19),
    (IP, 3),
    (IP, 5),
    (IP, 22),
    (IP, 25),
    (IP, 32),
    (IPV6, 17),
    (IPV6, 22),
];

#[test]
fn fresh_sockets_say_what_linux_says() {
    let both = [
        (1, 0),
        (2, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (9, 0),
        (10, 0),
        (11, 0),
        (12, 0),
        (14, 0),
        (15, 0),
        (18, 1),
        (19, 1),
        (29, 0),
        (30, 0),
        (35, 0),
        (36, 0),
        (40, 0),
        (41, 0),
        (42, -1),
        (43, 0),
        (44, 0),
        (45, 0),
        (46, 0),
        (48, 64),
        (49, -1),
        (56, 0),
        (60, 0),
        (62, 0),
        (63, 0),
        (64, 0),
        (69, 0),
        (73, 0),
        (75, 0),
    ];
    let ip = [
        (1, 0),
        (2, 64),
        (3, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (8, 0),
        (10, 1),
        (11, 0),
        (12, 0),
        (13, 0),
        (15, 0),
        (18, 0),
        (19, 0),
        (20, 0),
        (21, 0),
        (22, 0),
        (23, 0),
        (24, 0),
        (25, 0),
        (26, 0),
        (32, 0),
        (34, 1),
        (50, 0),
        (51, 0),
    ];
    for domain in [Domain::V4, Domain::V6] {
        let number = if domain == Domain::V4 { 2 } else { 10 };
        for kind in [Kind::Stream, Kind::Datagram] {
            check(domain, kind, SOCKET, &both);
            check(domain, kind, SOCKET, &[(39, number)]);
            check(domain, kind, IP, &ip);
            check(domain, kind, IP, &[(49, (domain == Domain::V4).into())]);
        }
        let stream = [(3, 1), (7, 16_384), (8, 131_072), (38, 6), (74, 1), (72, 0)];
        check(domain, Kind::Stream, SOCKET, &stream);
        check(domain, Kind::Datagram, SOCKET, &[(3, 2), (7, 212_992), (8, 212_992), (38, 17)]);
        check(domain, Kind::Datagram, IP, &[(33, 1)]);
        let udp = [(1, 0), (100, 0), (101, 0), (102, 0), (103, 0), (104, 0)];
        check(domain, Kind::Datagram, UDP, &udp);
        let tcp = [
            (1, 0),
            (3, 0),
            (4, 7200),
            (5, 75),
            (6, 9),
            (7, 6),
            (8, 60),
            (9, 0),
            (10, 0),
            (12, 1),
            (16, 0),
            (17, 0),
            (18, 0),
            (19, 0),
            (23, 0),
            (25, 0),
            (27, 0),
            (30, 0),
            (34, 0),
            (36, 0),
            (37, 0),
            (44, 120_000),
            (45, 200_000),
            (46, 200_000),
        ];
        check(domain, Kind::Stream, TCP, &tcp);
    }
    let ipv6 = [
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (8, 0),
        (11, 0),
        (16, 64),
        (17, 0),
        (19, 1),
        (22, 0),
        (23, 1),
        (25, 0),
        (26, 0),
        (29, 1),
        (30, 0),
        (31, 0),
        (33, 0),
        (49, 0),
        (51, 0),
        (53, 0),
        (56, 0),
        (58, 0),
        (60, 0),
        (62, 0),
        (66, 0),
        (67, 0),
        // As in Linux where net.ipv6.auto_flowlabels is 0.
        (70, 0),
        (72, 1280),
        (73, 0),
        (74, 0),
        (75, 0),
        (76, 0),
        (77, 0),
        (78, 0),
    ];
    check(Domain::V6, Kind::Stream, IPV6, &ipv6);
    check(Domain::V6, Kind::Datagram, IPV6, &ipv6);
    check(Domain::V6, Kind::Datagram, IPV6, &[(18, 1)]);
}
