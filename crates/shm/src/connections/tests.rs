use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Segment;
use crate::session::TransportProtocol;
use crate::sync::Ordering;

fn ends(places: u32) -> (ConnectionsWriter, ConnectionsReader) {
    let length = bytes(places).unwrap();
    let segment = Arc::new(Segment::create("connections", length).unwrap());
    let region = segment.region(0, length).unwrap();
    let writer = ConnectionsWriter::new(region.clone(), places).unwrap();
    (writer, ConnectionsReader::new(region, places).unwrap())
}

/// A record in which every field has a value of its own, which `key` makes another.
fn record(key: u32) -> Record {
    let v6 = key % 2 == 1;
    let end = |last: u32| {
        let ip: std::net::IpAddr = if v6 {
            std::net::Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(last)).into()
        } else {
            std::net::Ipv4Addr::from(0x0a00_0000 | last).into()
        };
        std::net::SocketAddr::from((ip, last as u16 % 60_000 + 1))
    };
    let word = |number: u32| key.wrapping_mul(0x9e37_79b9).wrapping_add(number);
    let long = |number: u32| u64::from(word(number)) << 32 | u64::from(word(number + 100));
    Record {
        protocol: TransportProtocol::Tcp,
        local: end(key & 0xffff),
        remote: end((key + 1) & 0xffff),
        state: State::Established,
        opened_here: key % 3 == 0,
        waits: key % 13 == 0,
        linked: key % 11 == 0,
        negotiated: (key % 5 == 0, key % 7 == 0),
        scales: (key as u8, (key as u8).wrapping_add(1)),
        congestion: CongestionControl::Cubic,
        backoff: 3,
        mss: 1448,
        path_mtu: 1500,
        since: long(1),
        at: long(2),
        sequences: Sequences {
            unacknowledged: word(3),
            next: word(4),
            expected: word(5),
            timestamps: (key % 4 != 0).then_some((word(6), word(7))),
        },
        windows: (word(8), word(9)),
        congestion_window: word(10),
        threshold: word(11),
        in_flight: word(12),
        queues: (word(13), word(14)),
        rtt: (word(15), word(16)),
        least_rtt: word(17),
        timeout: word(18),
        retransmissions: word(19),
        lost: word(20),
        bytes_sent: long(21),
        bytes_acknowledged: long(22),
        bytes_received: long(23),
        delivery_rate: long(24),
        idle: (word(25), word(26)),
        segments: (word(27), word(28)),
    }
}

#[test]
fn only_sound_sizes_are_taken() {
    assert_eq!(bytes(0), Err(ConnectionsError::Places(0)));
    assert_eq!(bytes((1 << 22) + 1), Err(ConnectionsError::Places((1 << 22) + 1)));
    assert_eq!(bytes(3), Ok(256 + 3 * 192 + 80));
    assert_eq!([1, 4, 5, 16_384, 1 << 22].map(sockets), [1, 1, 2, 4096, 4096]);
    let segment = Arc::new(Segment::create("connections", 4096).unwrap());
    let region = segment.region(64, 256 + 3 * 192 + 80 - 1).unwrap();
    let short = ConnectionsError::Memory { needed: 912, given: 911 };
    assert_eq!(ConnectionsReader::new(region.clone(), 3).unwrap_err(), short);
    assert_eq!(ConnectionsWriter::new(region, 3).unwrap_err(), short);
}

#[test]
fn every_field_arrives() {
    let (mut writer, reader) = ends(8);
    for key in 0..8 {
        assert!(writer.write(key, &record(key)));
        assert_eq!(reader.records().last(), Some(record(key)));
    }
    assert!(!writer.write(8, &record(8)), "there is no such place");
    assert_eq!(reader.records().count(), 8);
}

#[test]
fn who_looks_asks_and_hears_when_it_is_done() {
    let (mut writer, reader) = ends(1);
    assert_eq!(writer.asked(), None);
    let first = reader.ask();
    let second = reader.ask();
    assert_eq!(writer.asked(), Some(second));
    assert!(!reader.has_answered(first) && !reader.has_answered(second));
    writer.answer(second);
    assert!(reader.has_answered(first) && reader.has_answered(second) && writer.asked().is_none());
    for (value, count) in Count::ALL.into_iter().enumerate() {
        writer.count(count, value as u64 + 1);
    }
    let counted: Vec<u64> = Count::ALL.iter().map(|count| reader.count(*count)).collect();
    assert_eq!(counted, (1..=Count::ALL.len() as u64).collect::<Vec<_>>());
}

#[test]
fn whatever_stands_there_is_read_within_bounds() {
    let length = bytes(64).unwrap();
    let segment = Arc::new(Segment::create("connections", length).unwrap());
    let region = segment.region(0, length).unwrap();
    let reader = ConnectionsReader::new(region.clone(), 64).unwrap();
    for seed in 0..64_u64 {
        for offset in (0..length).step_by(4) {
            let noise = wire::siphash::Key([seed, 1]).hash(&[offset as u64]) as u32;
            region.word(offset).unwrap().store(noise, Ordering::Relaxed);
        }
        // Looks at 64 places at most, whatever the first word says.
        assert!(reader.records().count() <= 64 && reader.sockets().count() <= 16);
    }
    let good = record(2).encode();
    for (byte, wrong) in [(0, 7), (1, 0), (1, 11), (2, 5)] {
        let mut kinds = good[0].to_be_bytes();
        kinds[byte] = wrong;
        let mut words = good;
        words[0] = u64::from_be_bytes(kinds);
        assert!(Record::decode(&words).is_none(), "byte {byte} is {wrong}");
    }
    let mut portless = good;
    portless[5] &= 0x0000_ffff_ffff_ffff;
    assert!(Record::decode(&portless).is_none());
    assert!(Record::decode(&good).is_some());
}

fn udp_socket(local: &str, remote: Option<&str>) -> SocketRecord {
    let remote = remote.map(|remote| remote.parse().unwrap());
    let local = local.parse().unwrap();
    SocketRecord { local, remote, at: 1 << 40, queues: (u32::MAX, 3), dropped: 1 << 33 }
}

#[test]
fn udp_sockets_have_places_of_their_own() {
    let (mut writer, reader) = ends(8);
    let open = udp_socket("[::]:53", None);
    let connected = udp_socket("192.0.2.1:10240", Some("198.51.100.7:53"));
    assert!(writer.write(0, &record(2)) && writer.write(7, &record(4)));
    assert!(writer.write_socket(0, &open) && writer.write_socket(1, &connected));
    assert!(writer.sockets() == 2 && !writer.write_socket(2, &open), "a quarter as many");
    assert_eq!(reader.sockets().collect::<Vec<_>>(), [open, connected]);
    assert_eq!(reader.records().collect::<Vec<_>>(), [record(2), record(4)]);
    writer.clear_socket(0);
    writer.clear_socket(2);
    assert_eq!(reader.sockets().collect::<Vec<_>>(), [connected]);
    assert_eq!(reader.records().count(), 2);
}

#[test]
fn a_udp_socket_that_cannot_be_is_left_out() {
    let good = udp_socket("192.0.2.1:10240", Some("198.51.100.7:53")).encode();
    assert!(SocketRecord::decode(&good).is_some());
    let ports = [53, 1 << 48 | 53, 10_240 << 32 | 1 << 16].map(|ports| (5, ports));
    for (word, wrong) in [(0, 5), (0, 256 + 4)].into_iter().chain(ports) {
        let mut words = good;
        words[word] = wrong;
        assert!(SocketRecord::decode(&words).is_none(), "word {word} is {wrong}");
    }
}

#[test]
fn a_record_that_never_settles_is_left_out() {
    let length = bytes(2).unwrap();
    let segment = Arc::new(Segment::create("connections", length).unwrap());
    let region = segment.region(0, length).unwrap();
    let mut writer = ConnectionsWriter::new(region.clone(), 2).unwrap();
    let reader = ConnectionsReader::new(region.clone(), 2).unwrap();
    assert!(writer.write(0, &record(4)) && writer.write(1, &record(6)));
    // The mark of the first record: somebody is writing it, for ever.
    region.word(place::HEADER).unwrap().store(7, Ordering::Relaxed);
    assert_eq!(reader.records().collect::<Vec<_>>(), [record(6)]);
}

proptest! {
    #[test]
    fn does_as_a_plain_map_does(steps in prop::collection::vec((0..20_u32, any::<u16>(), any::<bool>()), 1..200)) {
        let (mut writer, reader) = ends(20);
        let mut plain = BTreeMap::new();
        for (place, key, adds) in steps {
            if adds {
                writer.write(place, &record(key.into()));
                plain.insert(place, record(key.into()));
            } else {
                writer.clear(place);
                plain.remove(&place);
            }
            let all: Vec<Record> = reader.records().collect();
            prop_assert_eq!(all, plain.values().copied().collect::<Vec<_>>());
        }
    }
}
