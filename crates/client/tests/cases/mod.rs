//! What each of the examples does, in whichever language.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may; each uses its part"
)]

use std::process::Command;

use shm::attach::{Take, flag};
use shm::{Meta, PushError};

use crate::program::Running;
use crate::stub::{Queue, Stub};

/// An example: what it is called with, and what it must do then. `FILE` stands for a file of its own.
pub struct Case {
    pub name: &'static str,
    arguments: &'static [&'static str],
    check: fn(&Stub, &mut Running),
}

pub const CASES: [Case; 6] = [
    Case { name: "reflector", arguments: &["left"], check: reflector },
    Case { name: "reflector", arguments: &[], check: full_queue },
    Case { name: "flow_counter", arguments: &["0.05"], check: flow_counter },
    Case {
        name: "dns_responder",
        arguments: &["other.example=192.0.2.7", "www.example.=203.0.113.5"],
        check: dns_responder,
    },
    // A bit in ten seconds: what passes is the burst.
    Case { name: "rate_limiter", arguments: &["0.0000001", "3", "left"], check: rate_limiter },
    Case { name: "pcap_writer", arguments: &["FILE", "3"], check: pcap_writer },
];

impl Case {
    /// Runs the program, checks it, ends the daemon under it.
    pub fn run(&self, mut command: Command, mut stub: Stub) {
        let file = stub.path().with_file_name("packets.pcap");
        for argument in self.arguments {
            match *argument {
                "FILE" => command.arg(&file),
                argument => command.arg(argument),
            };
        }
        let mut running = Running::start(&mut command);
        while stub.state.lock().unwrap().queues.is_empty() {
            assert!(running.is_alive(), "{command:?} has ended");
            std::thread::yield_now();
        }
        (self.check)(&stub, &mut running);
        if running.is_alive() {
            stub.stop();
            assert!(!running.succeeds(), "{command:?}: the daemon is gone, it must say so");
        }
    }
}

fn frame(source: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, source, 8, 0, 0x45, 0];
    frame.extend([0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, source, 198, 51, 100, 1]);
    frame.extend([0x10, 0, 0, 53, 0, 26, 0, 0]);
    frame.resize(bytes, 7);
    frame
}

const PORT: Meta = Meta { port: 1, flags: 0 };

fn reflector(stub: &Stub, running: &mut Running) {
    stub.with(|queue| assert_eq!(queue.asked.ports, ["left"]));
    assert_eq!(running.line(), "reflecting");
    for _ in 0..100 {
        stub.inject(0, 0, &frame(1, 60), PORT);
        let mut expected = frame(1, 60);
        expected[..12].rotate_left(6);
        assert_eq!(stub.next(0, 0), (expected, PORT));
    }
    stub.inject(0, 0, &[1; 3], PORT);
    assert_eq!(stub.next(0, 0).0, [1; 3]);
}

fn flow_counter(stub: &Stub, running: &mut Running) {
    stub.with(|queue| assert_eq!(queue.asked.take, Take::Copy));
    for (source, count) in [(1, 2), (2, 5), (3, 1)] {
        for _ in 0..count {
            stub.inject(0, 0, &frame(source, 60), PORT);
        }
    }
    stub.inject(0, 0, &[0xff; 60], PORT);
    stub.inject(0, 0, &[8, 0], PORT);
    // Behind the first fragment are no ports.
    let mut later = frame(4, 119);
    later[21] = 185;
    stub.inject(0, 0, &later, PORT);
    let mut six = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 6, 64];
    six.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    six.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    six.extend([0x10, 0, 0, 80, 0, 0, 0, 0]);
    stub.inject(0, 0, &six, PORT);
    let row = |packets: u32, bytes: u32, flow: &str| format!("{packets:>12} {bytes:>15}  {flow}");
    let table = [
        row(5, 300, "17 192.0.2.2 4096 > 198.51.100.1 53"),
        row(2, 120, "17 192.0.2.1 4096 > 198.51.100.1 53"),
        row(1, 119, "17 192.0.2.4 0 > 198.51.100.1 0"),
        row(1, 62, "6 2001:db8::1 4096 > 2001:db8::2 80"),
        row(1, 60, "17 192.0.2.3 4096 > 198.51.100.1 53"),
    ];
    // Perhaps the first tables come before all is there.
    let mut last = Vec::new();
    while last != table {
        assert!(running.is_alive());
        last.push(running.line());
        last = last.split_off(last.len().saturating_sub(table.len()));
    }
}

fn query(name: &[u8], kind: u8) -> Vec<u8> {
    let mut query = frame(4, 42);
    query.extend([0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    query.extend(name);
    query.extend([0, kind, 0, 1]);
    let length = query.len() as u8;
    query[17] = length - 14;
    query[39] = length - 34;
    query
}

fn dns_responder(stub: &Stub, _: &mut Running) {
    stub.with(|queue| assert_eq!(queue.asked.filter.destination_port, Some(53)));
    let asked = query(b"\x03WWW\x07example\0", 1);
    stub.inject(0, 0, &asked, PORT);
    let (reply, meta) = stub.next(0, 0);
    assert_eq!(meta, PORT);
    assert_eq!((&reply[..6], &reply[6..12]), (&asked[6..12], &asked[..6]));
    assert_eq!((&reply[26..30], &reply[30..34]), (&asked[30..34], &asked[26..30]));
    assert_eq!(reply[34..38], [0, 53, 0x10, 0]);
    assert_eq!(usize::from(reply[17]), reply.len() - 14);
    assert_eq!(usize::from(reply[39]), reply.len() - 34);
    let words = reply[14..34].chunks(2);
    let sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's checksum");
    assert_eq!(reply[42..54], [0xab, 0xcd, 0x85, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(reply[54..71], asked[54..71]);
    assert_eq!(reply[71..83], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    assert_eq!(reply[83..], [203, 0, 113, 5]);
    // What it does not know, or does not understand, goes on.
    let cut = asked[..60].to_vec();
    let mut endless = query(b"\x03WWW\x07example\0", 1);
    endless[54] = 63;
    let unknown = [&b"\x03abc\0"[..], b"\x0bwww.example\0", b"\x03www\x07example\x02\0a\0"];
    let other_type = query(b"\x03www\x07example\0", 28);
    for other in unknown.map(|name| query(name, 1)).into_iter().chain([other_type, cut, endless]) {
        stub.inject(0, 0, &other, PORT);
        assert_eq!(stub.next(0, 0), (other, Meta { port: 1, flags: flag::GRAPH }));
    }
}

fn rate_limiter(stub: &Stub, _: &mut Running) {
    stub.with(|queue| assert_eq!(queue.asked.ports, ["left"]));
    for number in 0..10 {
        stub.inject(0, 0, &frame(number, 700), PORT);
    }
    for number in 0..4 {
        assert_eq!(stub.next(0, 0), (frame(number, 700), Meta { port: 1, flags: flag::GRAPH }));
    }
    stub.inject(0, 0, &[1; 100], PORT);
    assert_eq!(stub.next(0, 0).0, [1; 100], "a small one still fits");
    assert_eq!(stub.take(0, 0), None);
}

fn pcap_writer(stub: &Stub, running: &mut Running) {
    let path = stub.path().with_file_name("packets.pcap");
    let long: Vec<u8> = (0..9000).map(|at| at as u8).collect();
    let frames = [frame(1, 60), long, frame(2, 61)];
    stub.with(|queue| assert_eq!(queue.asked.take, Take::Copy));
    for frame in &frames {
        stub.inject(0, 0, frame, PORT);
    }
    assert_eq!(running.line(), "3 packets");
    let file = std::fs::read(&path).unwrap();
    let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(16), word(20)), (0xa1b2_3c4d, 65_535, 1));
    let mut at = 24;
    for frame in &frames {
        assert_eq!((word(at + 8), word(at + 12)), (frame.len() as u32, frame.len() as u32));
        assert!(word(at + 4) < 1_000_000_000);
        assert_eq!(&file[at + 16..at + 16 + frame.len()], &frame[..]);
        at += 16 + frame.len();
    }
    assert_eq!(at, file.len());
    assert!(running.succeeds());
}

fn full_queue(stub: &Stub, running: &mut Running) {
    assert_eq!(running.line(), "reflecting");
    // More than its ring takes, without taking anything: it goes on and drops.
    let mut pushed = 0_u32;
    while pushed < 3000 {
        let frame = frame(1, 60);
        let push = |queue: &mut Queue| queue.rings[0][0].to_client.push(&frame, PORT);
        match stub.with(push) {
            Ok(()) => pushed += 1,
            Err(PushError::Full) => {
                stub.ring(0, 0);
                std::thread::yield_now();
            }
            Err(other) => unreachable!("{other}"),
        }
    }
    stub.ring(0, 0);
    assert!(running.is_alive());
}
