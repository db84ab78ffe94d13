//! A connection in the fuzzer's hands while it moves: bytes of an exported connection are changed, cut, or made up
//! altogether. Either the import refuses them, or what it made behaves: time passes, its own segments come back to it,
//! sockets are called, what it sends is bounded, and it ends.
#![no_main]

#[allow(dead_code, reason = "the other target uses more of it")]
#[path = "transport/bytes.rs"]
mod bytes;

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use transport::{
    Algorithm, Config, ConnectionId, Contents, Ecn, Options, Packet, PacketList, Rings, Stack,
    Summary, TimeWait,
};

use bytes::Bytes;

const SECOND: u64 = 1_000_000_000;
const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
];
/// Packets that a connection may send while 200 times some time passes.
const PACKETS: usize = 20_000;

fn stack(seed: u64) -> Stack<Rings> {
    let config =
        Config { connections_v4: 8, connections_v6: 8, seed: [seed, 7], ..Config::default() };
    Stack::new(config, Rings).expect("memory")
}

/// A connection that has sent and received, with some of it lost, as bytes; and when.
fn exported(bytes: &mut Bytes<'_>) -> (Vec<u8>, u64) {
    let bits = bytes.byte();
    let options = Options {
        congestion: [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr]
            [usize::from(bits & 3) % 3],
        ecn: [Ecn::Off, Ecn::Accurate][usize::from(bits >> 2 & 1)],
        timestamps: bits >> 3 & 1 == 0,
        sack: bits >> 4 & 1 == 0,
        ..Options::default()
    };
    let mut stacks = [stack(1), stack(2)];
    let mut lists = [PacketList::default(), PacketList::default()];
    let mut now = SECOND;
    let server = stacks[1].listen((ADDRESSES[1], 80).into(), 4, &options).expect("a listener");
    let to = (ADDRESSES[1], 80).into();
    let client = stacks[0].connect(now, ADDRESSES[0], 0, to, &options).expect("a connection");
    let lose = u32::from(bytes.byte() & 7) + 2;
    let mut number = 0u32;
    for round in 0..u32::from(bytes.byte() & 15) + 3 {
        for side in 0..2 {
            stacks[side].expire(now, &mut lists[side]);
            stacks[side].flush(now, &mut lists[side]);
            for packet in std::mem::take(&mut lists[side].packets) {
                number += 1;
                if round < 3 || number % lose != 0 {
                    let other = 1 - side;
                    stacks[other].input(now, &[Packet::new(&packet)], &mut lists[other]);
                }
            }
            while stacks[side].poll_event().is_some() {}
        }
        let _ = stacks[0].send(client, &[round as u8; 20_000]);
        if let Some(accepted) = stacks[1].accept(server) {
            let _ = stacks[1].send(accepted, &[7; 9000]);
        }
        now += SECOND / 50;
    }
    let exported = stacks[0].export(now, client, Contents::Copied);
    (exported.map(|exported| exported.bytes).unwrap_or_default(), now)
}

/// Lets a stack go on with what it has imported.
fn exercise(stack: &mut Stack<Rings>, id: ConnectionId, mut now: u64) {
    let mut list = PacketList::default();
    let _ = stack.send(id, &[7; 5000]);
    let mut sent = 0;
    for step in 0..200u64 {
        stack.flush(now, &mut list);
        stack.expire(now, &mut list);
        let _ = stack.recv(id, &mut [0; 3000]);
        sent += list.packets.len();
        for mut packet in std::mem::take(&mut list.packets) {
            if packet.first().is_some_and(|first| first >> 4 == 4) && packet.len() >= 20 {
                let (source, rest) = packet[12..].split_at_mut(4);
                source.swap_with_slice(&mut rest[..4]);
            }
            stack.input(now, &[Packet::new(&packet)], &mut list);
        }
        now += 1 << (10 + step % 28);
        while stack.poll_event().is_some() {}
    }
    assert!(sent < PACKETS, "{sent} packets");
    stack.abort(id);
    stack.flush(now, &mut list);
}

/// The same of a list of connections in TIME-WAIT.
fn wait_out(bytes: &[u8], now: u64) {
    let mut stack = stack(9);
    for one in TimeWait::read(bytes, now, 0).unwrap_or_default() {
        assert!(one.left(now) <= 60 * SECOND);
        stack.import_time_wait(now, &one);
    }
    stack.expire(now + 60 * SECOND, &mut PacketList::default());
    assert_eq!(stack.connections(), 0);
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let made_up = bytes.byte() & 7 == 0;
    let (mut moved, now) = exported(&mut bytes);
    if made_up {
        wait_out(data.get(1..).unwrap_or_default(), now);
        moved = data.to_vec();
    }
    while let Some(operation) = bytes.next() {
        // Most of it is data, which may be anything.
        let place = usize::from(bytes.word()) % moved.len().clamp(1, 1500);
        let value = bytes.byte();
        match operation & 3 {
            0 => moved.truncate(place),
            1 => moved.push(value),
            _ => {
                if let Some(byte) = moved.get_mut(place) {
                    *byte = if operation & 4 == 0 { value } else { *byte ^ 1 << (value & 7) };
                }
            }
        }
    }
    let mut stack = stack(9);
    let then = now + 77 * SECOND;
    let summary = Summary::of(&moved);
    if let Ok(id) = stack.import(then, 0, &moved, &mut None) {
        assert!(summary.is_ok(), "{summary:?}");
        exercise(&mut stack, id, then);
    }
});
