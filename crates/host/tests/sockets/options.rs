//! Options: what Linux says of them, what it takes, and what it refuses.

mod fresh;
mod six;
mod stream;

use millrace_host::{Domain, Errno, Id, Kind, Sessions};

use crate::pair::{CLIENT, Pair};

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
        (IPV6, 70, 1, Err(Errno::NOPROTOOPT)),
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
