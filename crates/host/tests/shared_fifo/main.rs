//! Connections whose FIFOs lie in shared memory, with a process beside them that lies: another thread scribbles over
//! indices and contents through a mapping of its own, as fast as it can, while the stack transmits from them and receives
//! into them. Only that connection suffers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod fifo;
mod liar;
mod network;

use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fifo::{CONNECTIONS, PLACE, Segments};
use liar::{Liar, Stop, random, scribble};
use network::{OWN, PEER, Wire};
use shm::Segment;
use transport::options::SECOND;
use transport::{Config, Contents, Options, Reason, Stack, Write};

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

const GOOD: usize = 100_000;

/// One run. Gives how many packets there were.
fn run(seed: u64, careful: bool, contents: Option<Contents>) -> usize {
    let buffers = Segments::new(careful, Some(seed));
    let theirs = buffers.segment.as_fd().try_clone_to_owned().unwrap();
    let theirs = Arc::new(Segment::from_file(theirs).unwrap());
    let held = Rc::clone(&buffers.held);
    let mut next = random(seed);
    let stack = |number, buffers| {
        Stack::new(Config { seed: [number, seed], ..Config::default() }, buffers).unwrap()
    };
    let mut wire = Wire {
        stacks: [stack(1, buffers), stack(2, Segments::new(true, None))],
        now: SECOND,
        flying: Default::default(),
        next: Box::new(random(seed ^ 0xabcd)),
        edge: None,
        port: 4000,
        packets: 0,
    };
    let address = (ADDRESSES[PEER], 80).into();
    let options = Options { window_scale: false, ..Options::default() };
    let listener = wire.stacks[PEER].listen(address, 5, &options).unwrap();
    let mut ids = [[None; 2]; CONNECTIONS];
    for (place, ids) in ids.iter_mut().enumerate() {
        let (local, port) = (ADDRESSES[OWN].into(), 4000 + place as u16);
        let own = wire.stacks[OWN].connect(wire.now, local, port, address, &options).unwrap();
        let accepted = (0..10_000).find_map(|_| {
            wire.round();
            wire.stacks[PEER].accept(listener)
        });
        *ids = [Some(own), accepted];
    }
    let [[Some(mut odd), Some(odd_peer)], [Some(good), Some(good_peer)]] = ids else {
        panic!("no connections: {ids:?}")
    };
    let (begun, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let liars = [0, 1].map(|place| {
            Liar::new(theirs.region(place * PLACE, PLACE).unwrap(), seed * 7 + place as u64)
        });
        let liar = scope.spawn(|| scribble(liars, &stop, &begun));
        while !begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let until_here = Stop(&stop);
        let data: Vec<u8> =
            (0..GOOD as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut sent, mut received) = ([0, 0], [Vec::new(), Vec::new()]);
        let mut buffer = vec![0; 65_536];
        let mut rounds = 0;
        while rounds < 400 || received.iter().any(|received| received.len() < GOOD) {
            rounds += 1;
            assert!(rounds < 20_000, "the other connection stands: {sent:?}");
            for (side, id) in [good, good_peer].into_iter().enumerate() {
                sent[side] += wire.stacks[side].send(id, &data[sent[side]..]).unwrap();
                let count = wire.stacks[side].recv(id, &mut buffer).unwrap();
                received[side].extend_from_slice(&buffer[..count]);
            }
            // What the liar's application says has no more to do with the FIFOs than the rest.
            let (stack, number) = (&mut wire.stacks[OWN], next());
            let count = (number >> 8) as usize % 5000;
            match number & 7 {
                0 => stack.sent(odd, Write { more: true, ..Write::default() }),
                1 => stack.received(odd, count),
                2 => drop(stack.send(odd, &data[..count])),
                3 => drop(stack.recv(odd, &mut buffer[..count])),
                4 => drop(stack.peek(odd, count, &mut buffer[..count])),
                _ => stack.sent(odd, Write::default()),
            }
            let _ = wire.stacks[PEER].send(odd_peer, &data[..count]);
            let _ = wire.stacks[PEER].recv(odd_peer, &mut buffer);
            wire.round();
            if let Some(contents) = contents.filter(|_| number % 64 == 0) {
                odd = wire.renew(odd, contents);
            }
        }
        for (side, received) in received.iter().enumerate() {
            assert!(*received == data, "seed {seed}: other bytes arrived at {side}");
        }
        let peer = wire.stacks[PEER].counters();
        assert_eq!(
            [Reason::TcpHeader, Reason::TcpChecksum].map(|reason| peer.dropped(reason)),
            [0, 0]
        );
        for (side, id) in [(OWN, odd), (OWN, good), (PEER, odd_peer), (PEER, good_peer)] {
            wire.stacks[side].abort(id);
        }
        for _ in 0..100 {
            wire.now += 10 * SECOND;
            wire.round();
        }
        drop(until_here);
        liar.join().unwrap();
    });
    assert_eq!([OWN, PEER].map(|side: usize| wire.stacks[side].connections()), [0, 0]);
    assert_eq!(held.get(), 0, "FIFOs that nobody gave back");
    wire.packets
}

#[test]
fn a_process_that_lies_harms_only_its_connection() {
    let ways = [None, Some(Contents::InPlace), Some(Contents::Copied)];
    for seed in 1..=24 {
        let packets = run(seed, seed % 2 == 0, ways[seed as usize % 3]);
        assert!(packets > 100, "seed {seed}: {packets} packets");
    }
}
