//! A peer that sends anything at all, near enough to be looked at: nothing panics, nothing stays.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

const PEER: [u8; 4] = [10, 0, 0, 7];

/// A segment with numbers close to what the stack expects.
fn segment(number: &mut impl FnMut() -> u64, local_port: u16, seq: u32, ack: u32) -> Vec<u8> {
    let near = |number: &mut dyn FnMut() -> u64, base: u32| match number() % 8 {
        0 => number() as u32,
        1 => base.wrapping_add(number() as u32 % 100_000),
        2 => base.wrapping_sub(number() as u32 % 5000),
        3 => base.wrapping_add(number() as u32 % 3),
        _ => base,
    };
    let mut options = Vec::new();
    while options.len() < 28 && number() % 3 != 0 {
        match number() % 6 {
            0 => options.extend([2, 4, number() as u8, number() as u8]),
            1 => options.extend([3, 3, number() as u8, 1]),
            2 => options.extend([4, 2, 1, 1]),
            3 => {
                options.extend([1, 1, 8, 10]);
                options.extend((number() as u32 % 5).to_be_bytes());
                options.extend((number() as u32).to_be_bytes());
            }
            4 if number() % 4 == 0 => options.extend([34, 2, 1, 1]),
            4 if number() % 4 == 0 => {
                options.extend([172 | number() as u8 & 2, 5, number() as u8, 0, number() as u8]);
                options.extend([1, 1, 1]);
            }
            4 => {
                options.extend([1, 1, 5, 10]);
                let start = near(number, ack);
                options.extend(start.to_be_bytes());
                options.extend(start.wrapping_add(number() as u32 % 3000).to_be_bytes());
            }
            _ => options.extend((number() as u32).to_be_bytes()),
        }
    }
    let flags = match number() % 4 {
        0 => number() as u8,
        1 => 0x11,
        _ => 0x10,
    };
    let fields = wire::tcp::Fields {
        source_port: 5000,
        destination_port: local_port,
        sequence: near(number, seq),
        acknowledgment: near(number, ack),
        flags: wire::tcp::Flags(flags),
        window: number() as u16 >> (number() % 16),
    };
    let data = pattern(number() as usize % 3 * (number() as usize % 1400));
    let network = wire::build::Network::V4(wire::ipv4::Fields {
        source: PEER.into(),
        destination: ADDRESSES[SERVER].into(),
        protocol: wire::Protocol::TCP,
        ttl: 64,
        service: number() as u8 & 3,
        identification: 0,
        dont_fragment: true,
    });
    let mut packet = vec![0; 4000];
    let payload = wire::build::Payload::Tcp { fields, options: &options, data: &data };
    let length = wire::build::packet(&mut packet, &network, &payload).unwrap();
    packet.truncate(length);
    packet
}

/// What the stack said last: its port, and the numbers that it expects.
fn expected(list: &PacketList) -> Option<(u16, u32, u32)> {
    let packet = list.packets.last()?;
    let segment = wire::tcp::Segment::parse(&packet[20..]).unwrap();
    let seq = segment.header.sequence().wrapping_add(segment.data.len() as u32);
    let flags = segment.header.flags().0;
    let end = seq.wrapping_add(u32::from(flags & 1) + u32::from(flags >> 1 & 1));
    Some((segment.header.source_port(), segment.header.acknowledgment(), end))
}

/// The Fast Open cookie that a packet gives.
fn given(packet: &[u8]) -> Option<[u8; 8]> {
    let segment = wire::tcp::Segment::parse(&packet[20..]).unwrap();
    segment.options().flatten().find_map(|option| match option {
        wire::tcp::Option::Other { kind: 34, data } => data.try_into().ok(),
        _ => None,
    })
}

/// The same segment as a SYN with a cookie and nothing else.
fn with_cookie(packet: &[u8], cookie: [u8; 8]) -> Vec<u8> {
    let header = wire::tcp::Segment::parse(&packet[20..]).unwrap();
    let fields = wire::tcp::Fields {
        source_port: header.header.source_port(),
        destination_port: 80,
        sequence: header.header.sequence(),
        acknowledgment: 0,
        flags: wire::tcp::Flags(2),
        window: header.header.window(),
    };
    let network = wire::build::Network::V4(wire::ipv4::Fields {
        source: PEER.into(),
        destination: ADDRESSES[SERVER].into(),
        protocol: wire::Protocol::TCP,
        ttl: 64,
        service: 0,
        identification: 0,
        dont_fragment: true,
    });
    let mut options = vec![34, 10];
    options.extend(cookie);
    options.extend([1, 1]);
    let payload = wire::build::Payload::Tcp { fields, options: &options, data: header.data };
    let mut packet = vec![0; 4000];
    let length = wire::build::packet(&mut packet, &network, &payload).unwrap();
    packet.truncate(length);
    packet
}

/// Gives how many connections Fast Open made.
fn run(seed: u64) -> u64 {
    let mut number = random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let config = Config { connections_v4: 50, connections_v6: 1, ..Config::default() };
    let mut stack = Stack::new(config, Rings).unwrap();
    let mut now = SECOND;
    let options = Options {
        sack: number() % 4 != 0,
        timestamps: number() % 2 == 0,
        ecn: match number() % 4 {
            0 => Ecn::Off,
            1 => Ecn::Active,
            _ => Ecn::Accurate,
        },
        keepalive: (number() % 2 == 0).then_some(Keepalive {
            idle: SECOND,
            interval: SECOND,
            count: 3,
        }),
        receive_buffer: 1 << (number() % 18),
        fast_open: number() % 2 == 0,
        fast_open_pending: 2,
        path_probing: if number() % 2 == 0 { PathProbing::Always } else { PathProbing::BlackHole },
        ..Options::default()
    };
    let address = (ADDRESSES[SERVER], 80).into();
    let listener = stack.listen(address, 3, &options).unwrap();
    let mut ids = Vec::new();
    if number() % 2 == 0 {
        ids.push(
            stack
                .connect(now, ADDRESSES[SERVER].into(), 80, (PEER, 5000).into(), &options)
                .unwrap(),
        );
    }
    let (mut port, mut seq, mut ack) = (80, number() as u32, number() as u32);
    let mut buffer = [0; 5000];
    let mut cookie = None;
    for _ in 0..300 {
        let mut list = PacketList::default();
        let mut packet = segment(&mut number, port, seq, ack);
        if let Some(cookie) = cookie.filter(|_| number() % 4 == 0) {
            packet = with_cookie(&packet, cookie);
        }
        stack.input(now, &[Packet::new(&packet)], &mut list);
        ids.extend(stack.accept(listener));
        for id in &ids {
            match number() % 12 {
                0..=3 => drop(stack.send(*id, &buffer[..number() as usize % 5000])),
                4..=6 => drop(stack.recv(*id, &mut buffer)),
                7 if number() % 8 == 0 => drop(stack.shutdown(*id)),
                8 if number() % 16 == 0 => stack.close(*id),
                9 if number() % 32 == 0 => stack.abort(*id),
                _ => {}
            }
        }
        while stack.poll_event().is_some() {}
        stack.flush(now, &mut list);
        now += number() % (1 << (number() % 31));
        stack.expire(now, &mut list);
        stack.flush(now, &mut list);
        assert!(list.packets.len() < 5000);
        cookie = list.packets.iter().find_map(|packet| given(packet)).or(cookie);
        if let Some((found, next, end)) = expected(&list) {
            (port, seq, ack) = (found, next, end);
        }
    }
    // Nobody answers any more: everything ends.
    ids.extend(std::iter::from_fn(|| stack.accept(listener)));
    for id in ids {
        stack.close(id);
    }
    stack.close_listener(listener);
    let mut list = PacketList::default();
    stack.flush(now, &mut list);
    let until = now + 4000 * SECOND;
    while let Some(next) = stack.next_deadline().filter(|next| *next < until) {
        now = now.max(next) + MILLISECOND;
        stack.expire(now, &mut list);
        stack.flush(now, &mut list);
    }
    assert_eq!(stack.connections(), 0, "seed {seed}");
    stack.counters().fast_opens
}

#[test]
fn nothing_panics_and_everything_ends() {
    let fast: u64 = (0..400).map(run).sum();
    assert!(fast > 20, "{fast}: the cookies were used");
}

#[test]
fn any_bytes_are_refused_with_a_reason() {
    let mut stack = Stack::new(Config::default(), Rings).unwrap();
    let mut number = random(5);
    let mut list = PacketList::default();
    let mut inputs = 0;
    for length in 0..120 {
        for first in [0x45, 0x46, 0x60, 0x00, number() as u8] {
            let mut bytes: Vec<u8> = (0..length).map(|_| number() as u8).collect();
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            stack.input(SECOND, &[Packet::new(&bytes)], &mut list);
            inputs += 1;
        }
    }
    let dropped: u64 = Reason::ALL.iter().map(|reason| stack.counters().dropped(*reason)).sum();
    assert_eq!(dropped, inputs);
}
