//! What `info` counts, beside what the wire saw.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// Segments and bytes of data that a side sent, and those of them with data.
fn on_the_wire(link: &Link, side: usize) -> (u32, u32, u64) {
    let sent = link.seen.iter().filter(|(from, _)| *from == side);
    sent.fold((0, 0, 0), |(all, with, bytes), (_, packet)| {
        let data = packet.len() - 20 - usize::from(packet[32] >> 4) * 4;
        (all + 1, with + u32::from(data > 0), bytes + data as u64)
    })
}

#[test]
fn counts_are_those_of_the_wire() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    let idle = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert_eq!((idle.data.segments_out, idle.data.segments_in), (2, 1));
    assert_eq!((idle.data.bytes_sent, idle.data.bytes_acked, idle.data.bytes_received), (0, 0, 0));
    assert_eq!((idle.ages.0, idle.ages.1), (None, None));
    assert_eq!(idle.congestion_state, CongestionState::Open);
    let data = pattern(400_000);
    // Two segments of data get lost; the first's loss is seen before the second's.
    let mut large = 0;
    link.fate = Box::new(move |_, packet| {
        large += u32::from(packet.len() > 1000);
        let drops = packet.len() > 1000 && (large == 30 || large == 60);
        (!drops).then_some(0)
    });
    let (mut states, mut fastest) = (Vec::new(), 0);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    let (mut read, mut written) = (0, 262_144);
    let mut buffer = vec![0; 100_000];
    while read < data.len() {
        written += link.stacks[CLIENT].send(ids[CLIENT], &data[written..]).unwrap();
        read += link.stacks[SERVER].recv(ids[SERVER], &mut buffer).unwrap();
        let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
        assert!(info.data.bytes_delivered >= info.data.bytes_acked);
        fastest = fastest.max(info.delivery_rate);
        let bytes = info.data.bytes_acked + u64::from(info.queued);
        assert_eq!(bytes, written as u64, "acknowledged, in flight or waiting");
        if states.last() != Some(&info.congestion_state) {
            states.push(info.congestion_state);
        }
        assert!(link.step(link.now + SECOND));
    }
    link.run(SECOND);
    assert!(states.contains(&CongestionState::Recovery), "{states:?}");
    let [client, server] = [CLIENT, SERVER].map(|side| link.stacks[side].info(ids[side]).unwrap());
    let (segments, with_data, bytes) = on_the_wire(&link, CLIENT);
    assert_eq!((client.data.segments_out, client.data.data_segments_out), (segments, with_data));
    assert_eq!((client.data.bytes_sent, client.data.bytes_acked), (bytes, 400_000));
    assert_eq!(client.data.bytes_resent, bytes - 400_000);
    assert_eq!(client.data.bytes_delivered, 400_000);
    assert_eq!(server.data.bytes_received, 400_000);
    assert_eq!(server.data.segments_in, segments - 2, "two were lost");
    assert_eq!(server.data.data_segments_in, with_data - 2);
    assert!(server.data.out_of_order > 2);
    assert_eq!(client.data.segments_in, on_the_wire(&link, SERVER).0);
    assert!((10_000..10_100).contains(&client.min_rtt), "{}", client.min_rtt);
    assert!(fastest > 1_000_000 && client.delivery_rate > 0, "{fastest}");
    assert_eq!((client.own_mss, server.own_mss.0), ((1460, 536), 1460));
    assert_eq!(server.own_mss.1, 1448);
    let ages = (client.ages.0.unwrap(), server.ages.1.unwrap());
    assert!(ages.0 > 0 && ages.0 < 2 * SECOND && ages.1 < ages.0, "{ages:?}");
    assert_eq!((client.unsent, client.queued, server.readable), (0, 0, 0));
    // A FIN is no data.
    for side in [CLIENT, SERVER] {
        link.stacks[side].shutdown(ids[side]).unwrap();
    }
    link.run(5 * MILLISECOND);
    link.run(SECOND);
    let after = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert_eq!((after.data.bytes_sent, after.data.bytes_acked), (bytes, 400_000));
    assert_eq!(after.data.bytes_received, 0);
}

#[test]
fn time_outs_and_what_icmp_said_can_be_read() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.seen.clear();
    link.fate = Box::new(|_, _| None);
    link.stacks[CLIENT].send(ids[CLIENT], b"into the void").unwrap();
    link.flush();
    let original = link.seen[0].1.clone();
    let said = |link: &mut Link, code: u8| {
        let error = icmp_unreachable(&original[..28], code, 0);
        let mut none = PacketList::default();
        link.stacks[CLIENT].input(link.now, &[Packet::new(&error)], &mut none);
        link.stacks[CLIENT].info(ids[CLIENT]).unwrap().soft_failure
    };
    for (code, failure) in [
        (0, Failure::NetworkUnreachable),
        (1, Failure::HostUnreachable),
        (2, Failure::ProtocolUnreachable),
        (3, Failure::Refused),
        (5, Failure::SourceRoute),
        (7, Failure::HostUnknown),
        (8, Failure::HostIsolated),
        (13, Failure::HostUnreachable),
    ] {
        assert_eq!(said(&mut link, code), Some(failure), "{code}");
    }
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert_eq!((info.failure, info.state), (None, State::Established), "none of it ends it");
    link.run(5 * SECOND);
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert!(info.timeouts.0 > 2 && info.timeouts.1 == u16::from(info.timeouts.0));
    assert_eq!(info.congestion_state, CongestionState::Loss);
}
