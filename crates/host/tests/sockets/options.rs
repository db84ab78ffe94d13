//! Options: what Linux says of them before anybody has set them (read from Linux 6.18), what it takes, and
//! what it refuses.

use millrace_host::{Domain, Errno, Id, Kind, Sessions};

use crate::pair::{CLIENT, LISTENER, Pair, SERVER, at, v4};

const SOCKET: i32 = 1;
const IP: i32 = 0;
const TCP: i32 = 6;
const UDP: i32 = 17;
const IPV6: i32 = 41;

fn get(sessions: &mut Sessions, id: Id, level: i32, name: i32) -> Result<i32, Errno> {
    let value = sessions.option(id, level, name, 64)?;
    let bytes = value.first_chunk::<4>().copied().unwrap_or([0xee; 4]);
    Ok(i32::from_ne_bytes(bytes))
}

fn set(
    sessions: &mut Sessions,
    id: Id,
    (level, name): (i32, i32),
    value: i32,
) -> Result<(), Errno> {
    sessions.set_option(id, level, name, &value.to_ne_bytes())
}

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
        (49, 1),
    ];
    for domain in [Domain::V4, Domain::V6] {
        let number = if domain == Domain::V4 { 2 } else { 10 };
        for kind in [Kind::Stream, Kind::Datagram] {
            check(domain, kind, SOCKET, &both);
            check(domain, kind, SOCKET, &[(39, number)]);
            check(domain, kind, IP, &ip);
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
        (70, 1),
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

#[test]
fn levels_of_others_are_refused_as_linux_refuses_them() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(Id(0), Domain::V4, Kind::Stream).unwrap();
    client.open(Id(1), Domain::V6, Kind::Datagram).unwrap();
    assert_eq!(get(client, Id(0), IPV6, 26), Err(Errno::OPNOTSUPP));
    assert_eq!(get(client, Id(0), UDP, 103), Err(Errno::OPNOTSUPP));
    assert_eq!(get(client, Id(1), TCP, 1), Err(Errno::NOPROTOOPT));
    assert_eq!(set(client, Id(0), (IPV6, 26), 1), Err(Errno::NOPROTOOPT));
    assert_eq!(set(client, Id(1), (TCP, 1), 1), Err(Errno::NOPROTOOPT));
    for level in [SOCKET, IP, TCP] {
        assert_eq!(set(client, Id(0), (level, 999), 1), Err(Errno::NOPROTOOPT));
        assert_eq!(get(client, Id(0), level, 999), Err(Errno::NOPROTOOPT));
    }
    assert_eq!(set(client, Id(7), (SOCKET, 2), 1), Err(Errno::BADF));
    assert_eq!(client.set_option(Id(0), TCP, 1, &[1, 0, 0]), Err(Errno::INVAL));
}

#[test]
fn buffers_are_doubled() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(CLIENT, Domain::V4, Kind::Stream).unwrap();
    for (name, asked, told) in [
        (8, 65_536, 131_072),
        (8, 1, 2304),
        (8, -1, 8_388_608),
        (7, 100_000, 200_000),
        (7, 0, 4608),
    ] {
        set(client, CLIENT, (SOCKET, name), asked).unwrap();
        assert_eq!(get(client, CLIENT, SOCKET, name), Ok(told));
    }
    assert_eq!(get(client, CLIENT, SOCKET, 72), Ok(3));
    assert_eq!(set(client, CLIENT, (SOCKET, 33), 1000), Err(Errno::PERM));
}

#[test]
fn what_a_stream_is_told_is_kept_within_bounds() {
    let mut pair = Pair::connected();
    let client = pair.client();
    for (name, good, told) in [
        (1, 1, 1),
        (3, 7, 1),
        (4, 30, 30),
        (5, 32_767, 32_767),
        (6, 127, 127),
        (7, 1, 1),
        (8, -5, -1),
        (8, 1000, 120),
        (8, 0, 60),
        (9, 10, 15),
        (10, 5, 1152),
        (10, 50_000, 50_000),
        (18, 5000, 5000),
        (25, 16_384, 16_384),
        (45, 100_000, 100_000),
        (12, 0, 0),
        (17, 1, 0),
    ] {
        assert_eq!(set(client, CLIENT, (TCP, name), good), Ok(()), "{name}");
        assert_eq!(get(client, CLIENT, TCP, name), Ok(told), "{name}");
    }
    for (name, bad, errno) in [
        (2, 87, Errno::INVAL),
        (4, 0, Errno::INVAL),
        (4, 32_768, Errno::INVAL),
        (6, 128, Errno::INVAL),
        (7, 0, Errno::INVAL),
        (10, 0, Errno::INVAL),
        (17, 2, Errno::INVAL),
        (18, -1, Errno::INVAL),
        (19, 1, Errno::PERM),
        (23, 5, Errno::INVAL),
        (27, 1, Errno::NOPROTOOPT),
        (30, 1, Errno::INVAL),
        (31, 1, Errno::NOENT),
        (44, 5, Errno::NOPROTOOPT),
    ] {
        assert_eq!(set(client, CLIENT, (TCP, name), bad), Err(errno), "{name}");
    }
    // What an accepted one starts with is its listener's.
    let server = pair.server();
    set(server, LISTENER, (TCP, 4), 77).unwrap();
    assert_eq!(get(server, SERVER, TCP, 4), Ok(7200));
    pair.connect(Id(9), at(v4(1), 80)).unwrap_err();
    pair.settle();
    let server = pair.server();
    server.accept(LISTENER, Id(10)).unwrap();
    assert_eq!(get(server, Id(10), TCP, 4), Ok(77));
    assert_eq!(get(server, LISTENER, SOCKET, 30), Ok(1));
    assert_eq!(get(server, Id(10), SOCKET, 30), Ok(0));
}

#[test]
fn congestion_control_has_linux_names() {
    let mut pair = Pair::connected();
    let client = pair.client();
    let name = |text: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text);
        bytes
    };
    assert_eq!(*client.option(CLIENT, TCP, 13, 64).unwrap(), name(b"cubic"));
    assert_eq!(client.set_option(CLIENT, TCP, 13, b"reno\0junk"), Ok(()));
    assert_eq!(*client.option(CLIENT, TCP, 13, 64).unwrap(), name(b"reno"));
    assert_eq!(client.set_option(CLIENT, TCP, 13, b"vegas"), Err(Errno::NOENT));
    assert_eq!(client.set_option(CLIENT, TCP, 13, b"bbr"), Ok(()));
    assert_eq!(*client.option(CLIENT, TCP, 13, 4).unwrap(), *b"bbr\0");
}

#[test]
fn times_and_lingering_are_structs() {
    let mut pair = Pair::connected();
    let client = pair.client();
    let time = |seconds: i64, micros: i64| [seconds.to_ne_bytes(), micros.to_ne_bytes()].concat();
    client.set_option(CLIENT, SOCKET, 20, &time(2, 500_000)).unwrap();
    assert_eq!(client.timeouts(CLIENT), Ok((Some(2_500_000_000), None)));
    assert_eq!(client.option(CLIENT, SOCKET, 20, 64).unwrap().to_vec(), time(2, 500_000));
    client.set_option(CLIENT, SOCKET, 21, &time(-1, 0)).unwrap();
    client.set_option(CLIENT, SOCKET, 20, &time(0, 0)).unwrap();
    assert_eq!(client.timeouts(CLIENT), Ok((None, Some(0))));
    assert_eq!(client.set_option(CLIENT, SOCKET, 20, &time(0, 1_000_000)), Err(Errno::DOM));
    assert_eq!(client.set_option(CLIENT, SOCKET, 20, &[0; 15]), Err(Errno::INVAL));
    let linger = |on: i32, seconds: i32| [on.to_ne_bytes(), seconds.to_ne_bytes()].concat();
    client.set_option(CLIENT, SOCKET, 13, &linger(5, 9)).unwrap();
    assert_eq!(client.option(CLIENT, SOCKET, 13, 64).unwrap().to_vec(), linger(1, 9));
    client.set_option(CLIENT, SOCKET, 13, &linger(0, 3)).unwrap();
    assert_eq!(client.option(CLIENT, SOCKET, 13, 64).unwrap().to_vec(), linger(0, 9));
    assert_eq!(client.set_option(CLIENT, SOCKET, 13, &[1, 0, 0, 0]), Err(Errno::INVAL));
}

#[test]
fn tcp_info_is_linux_struct() {
    let mut pair = Pair::connected();
    let info = pair.client().option(CLIENT, TCP, 11, 256).unwrap();
    let word = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().unwrap());
    assert_eq!(
        (info.len(), info[0], info[5]),
        (248, 1, 7),
        "established; time stamps, SACK, scale"
    );
    assert_eq!((word(16), word(60)), (1448, 1500), "segment size, path MTU");
    assert_eq!(word(84), 1448, "announced, less the time stamps");
    assert!((1900..2200).contains(&word(68)), "round-trip time: us, {}", word(68));
    assert_eq!(pair.client().option(CLIENT, TCP, 11, 104).unwrap().len(), 104);
    pair.connect(Id(9), at(v4(1), 80)).unwrap_err();
    pair.settle();
    let info = pair.server().option(LISTENER, TCP, 11, 256).unwrap();
    assert_eq!((info[0], info[24], info[28]), (10, 1, 16), "listening; one waits; backlog");
    pair.client().open(Id(11), Domain::V4, Kind::Stream).unwrap();
    assert_eq!(pair.client().option(Id(11), TCP, 11, 256).unwrap()[0], 7);
    assert_eq!(pair.connect(Id(12), at(v4(1), 80)), Err(Errno::INPROGRESS));
    let info = pair.client().option(Id(12), TCP, 11, 256).unwrap();
    assert_eq!((info[0], &info[84..88]), (2, &1460_u32.to_ne_bytes()[..]), "no time stamps yet");
}

#[test]
fn lengths_and_sockets_are_judged_before_values() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(Id(1), Domain::V6, Kind::Stream).unwrap();
    client.open(Id(2), Domain::V4, Kind::Datagram).unwrap();
    // IP_FREEBIND, IP_MULTICAST_LOOP, IP_MULTICAST_ALL, IP_MULTICAST_IF, IP_UNICAST_IF.
    for (name, length, stream, datagram) in [
        (15, 0, Err(Errno::INVAL), Err(Errno::INVAL)),
        (15, 1, Ok(()), Ok(())),
        (34, 0, Err(Errno::INVAL), Err(Errno::INVAL)),
        (49, 0, Err(Errno::INVAL), Err(Errno::INVAL)),
        (32, 4, Err(Errno::INVAL), Ok(())),
        (50, 0, Err(Errno::INVAL), Err(Errno::INVAL)),
        (50, 4, Ok(()), Ok(())),
        (50, 8, Err(Errno::INVAL), Err(Errno::INVAL)),
    ] {
        let zeros = &[0; 8][..length];
        assert_eq!(client.set_option(Id(1), IP, name, zeros), stream, "{name}, {length}");
        assert_eq!(client.set_option(Id(2), IP, name, zeros), datagram, "{name}, {length}");
    }
    // IPV6_CHECKSUM, IPV6_NEXTHOP, IPV6_AUTHHDR, IPV6_HDRINCL, IPV6_HOPLIMIT, IPV6_MULTICAST_IF, IPV6_MULTICAST_HOPS.
    for name in [7, 9, 10, 36, 52, 17, 18] {
        for length in [0, 4] {
            let said = client.set_option(Id(1), IPV6, name, &[0; 4][..length]);
            assert_eq!(said, Err(Errno::NOPROTOOPT), "{name}, {length}");
        }
    }
}

#[test]
fn ip_options_concern_their_version() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(Id(1), Domain::V6, Kind::Stream).unwrap();
    for (level, name, value, told) in [
        (IP, 1, 0xb9, Ok(0xb8)),
        (IP, 2, 255, Ok(255)),
        (IP, 2, 0, Err(Errno::INVAL)),
        (IP, 2, 256, Err(Errno::INVAL)),
        (IP, 2, -1, Ok(64)),
        (IP, 10, 2, Ok(2)),
        (IP, 10, 6, Err(Errno::INVAL)),
        (IP, 19, 1, Err(Errno::PERM)),
        (IP, 33, 2, Err(Errno::INVAL)),
        (IP, 35, 2, Err(Errno::PROTO)),
        (IP, 39, 2, Err(Errno::INVAL)),
        (IPV6, 20, 2, Err(Errno::INVAL)),
        (IPV6, 24, 1000, Err(Errno::INVAL)),
        (IPV6, 16, 0, Ok(0)),
        (IPV6, 16, -1, Ok(64)),
        (IPV6, 16, -2, Err(Errno::INVAL)),
        (IPV6, 67, 0x20, Ok(0x20)),
        (IPV6, 67, 256, Err(Errno::INVAL)),
        (IPV6, 26, 1, Ok(1)),
    ] {
        let said = set(client, Id(1), (level, name), value);
        match told {
            Ok(told) => assert_eq!(get(client, Id(1), level, name), Ok(told), "{level} {name}"),
            Err(errno) => assert_eq!(said, Err(errno), "{level} {name}"),
        }
    }
    assert_eq!(client.set_option(Id(1), IP, 1, &[0x28]), Ok(()), "a byte will do");
    assert_eq!(client.option(Id(1), IP, 1, 1).unwrap().to_vec(), [0x28]);
    client.bind(Id(1), "[fd00::1]:5000".parse().unwrap()).unwrap();
    assert_eq!(set(client, Id(1), (IPV6, 26), 0), Err(Errno::INVAL), "it is bound");
}

proptest::proptest! {
    #[test]
    fn no_option_is_too_odd(
        calls in proptest::collection::vec(
            (0..4u32, proptest::sample::select(vec![0, 1, 6, 17, 41, 99]), 0..90i32,
             proptest::collection::vec(proptest::num::u8::ANY, 0..40), 0..300usize), 0..60),
    ) {
        let mut pair = Pair::connected();
        let client = pair.client();
        client.open(Id(0), Domain::V6, Kind::Datagram).unwrap();
        client.open(Id(1), Domain::V6, Kind::Stream).unwrap();
        for (id, level, name, value, room) in calls {
            let id = if id == 3 { CLIENT } else { Id(id) };
            let _ = client.set_option(id, level, name, &value);
            if let Ok(told) = client.option(id, level, name, room) {
                proptest::prop_assert!(told.len() <= room);
                let again = client.set_option(id, level, name, &told);
                proptest::prop_assert!(again != Err(Errno::BADF));
            }
        }
    }
}

#[test]
fn a_stream_begins_with_the_options_of_another() {
    let mut pair = Pair::default();
    let client = pair.client();
    client.open(CLIENT, Domain::V6, Kind::Stream).unwrap();
    set(client, CLIENT, (TCP, 4), 77).unwrap();
    let template = client.template(CLIENT).unwrap();
    // What is set later is that one's own.
    set(client, CLIENT, (TCP, 4), 78).unwrap();
    let other = Id(40);
    client.open_like(other, &template).unwrap();
    assert_eq!(client.kind(other), Ok((Domain::V6, Kind::Stream)));
    assert_eq!(get(client, other, TCP, 4), Ok(77));
    assert_eq!(client.open_like(other, &template), Err(Errno::EXIST));
    client.open(Id(41), Domain::V4, Kind::Datagram).unwrap();
    assert_eq!(client.template(Id(41)).err(), Some(Errno::INVAL));
    assert_eq!(client.template(Id(42)).err(), Some(Errno::BADF));
}
