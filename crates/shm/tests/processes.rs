//! Two processes, a queue each way: every byte of every packet is checked, there and back.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::thread::yield_now;

use millrace_shm::{Consumer, Layout, Meta, Producer, PushError, Segment};

/// How the child is told where the memory is: its parent's process and file number.
const CHILD: &str = "MILLRACE_SHM_TEST_CHILD";
const PACKETS: u32 = 500_000;

fn layout() -> Layout {
    // Slots so few that the ring wraps often and long packets must wait for room.
    Layout::new(16, 2048).unwrap()
}

/// The queue to the child, and the one back.
fn region(segment: &Arc<Segment>, which: usize) -> millrace_shm::Region {
    let bytes = layout().bytes();
    segment.region(which * bytes, bytes).unwrap()
}

/// Any length to a jumbo frame's, mostly short ones.
fn packet(number: u32, buffer: &mut Vec<u8>) {
    let mut random = number.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        random
    };
    let longest = [64, 1500, 9216][next() as usize % 3];
    let length = 1 + next() as usize % longest;
    buffer.clear();
    buffer.extend((0..length).map(|at| (number as usize + at * 7) as u8));
}

fn push(producer: &mut Producer, bytes: &[u8], meta: Meta) {
    while let Err(error) = producer.push(bytes, meta) {
        assert_eq!(error, PushError::Full);
        yield_now();
    }
}

fn meta(number: u32) -> Meta {
    Meta { port: number as u8, flags: (number >> 8) as u8 & 127 }
}

/// Takes the next packet if there is one and holds it against what it must be.
fn check(
    consumer: &mut Consumer,
    number: u32,
    bytes: &mut Vec<u8>,
    expected: &mut Vec<u8>,
) -> bool {
    let Some(taken) = consumer.next() else { return false };
    bytes.resize(taken.length(), 0);
    consumer.copy(&taken, bytes);
    packet(number, expected);
    assert_eq!(taken.meta(), meta(number));
    assert!(bytes == expected, "packet {number} of {} bytes differs", expected.len());
    consumer.release(taken);
    true
}

/// Not a test of its own: the other process of the one below.
#[test]
fn child() {
    let Ok(place) = std::env::var(CHILD) else { return };
    let file = OpenOptions::new().read(true).write(true).open(place).unwrap();
    let segment = Arc::new(Segment::from_file(OwnedFd::from(file)).unwrap());
    let mut incoming = Consumer::new(region(&segment, 0), layout()).unwrap();
    let mut outgoing = Producer::new(region(&segment, 1), layout()).unwrap();
    let (mut bytes, mut expected) = (Vec::new(), Vec::new());
    for number in 0..PACKETS {
        while !check(&mut incoming, number, &mut bytes, &mut expected) {
            yield_now();
        }
        push(&mut outgoing, &bytes, meta(number));
    }
    assert_eq!(incoming.malformed(), 0);
}

#[test]
fn every_byte_arrives_there_and_back() {
    let segment = Arc::new(Segment::create("processes", 2 * layout().bytes()).unwrap());
    let mut outgoing = Producer::new(region(&segment, 0), layout()).unwrap();
    let mut incoming = Consumer::new(region(&segment, 1), layout()).unwrap();
    let number = segment.as_fd().as_raw_fd();
    let place = format!("/proc/{}/fd/{number}", std::process::id());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, place)
        .spawn()
        .unwrap();
    let (mut bytes, mut expected, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sent, mut received) = (0, 0);
    while received < PACKETS {
        packet(sent, &mut own);
        if sent < PACKETS && outgoing.push(&own, meta(sent)).is_ok() {
            sent += 1;
        } else if check(&mut incoming, received, &mut bytes, &mut expected) {
            received += 1;
        } else {
            assert_eq!(child.try_wait().unwrap().filter(|status| !status.success()), None);
            yield_now();
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(outgoing.is_drained());
}
