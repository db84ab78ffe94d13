use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::{Domain, Errno, How, Id, Incoming, Kind, Mask, Outgoing};

mod ahead;
mod bed;
mod chunks;
mod closing;
mod connecting;
mod datagrams;
mod moving;
mod options;
mod split;
mod unasked;

use bed::{Bed, CLIENT, DELAY, SERVER, SESSIONS, at};

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

/// A call that does not ask the worker: it is held meanwhile, so whoever asked would wait for ever.
fn unasked<R>(bed: &mut Bed, call: impl FnOnce(&mut Bed) -> R) -> R {
    let host = Arc::clone(&bed.host);
    let held = host.lock().unwrap();
    let given = call(bed);
    drop(held);
    given
}

#[test]
fn what_waits_in_the_fifos_is_shown() {
    let mut bed = Bed::connected(64);
    let table = bed.show();
    let queues = |bed: &mut Bed| {
        let wish = table.ask();
        bed.look();
        assert!(table.has_answered(wish));
        table.records().map(|one| one.queues).collect::<Vec<_>>()
    };
    assert_eq!(queues(&mut bed), [(0, 0)]);
    bed.peer_writes(&bytes(1000)).unwrap();
    bed.settle();
    assert_eq!(queues(&mut bed), [(1000, 0)]);
    assert_eq!(bed.read(2000).unwrap(), bytes(1000));
    assert_eq!(bed.write(&bytes(300)), Ok(300));
    assert_eq!(queues(&mut bed), [(0, 300)], "the worker has not looked yet");
    assert!(!bed.is_broken());
}

#[test]
fn data_goes_both_ways_and_the_end_is_told() {
    let mut bed = Bed::connected(64);
    assert_eq!(bed.read(10), Err(Errno::AGAIN));
    assert_eq!(bed.remote.mask(SERVER), Mask::WRITE);
    bed.peer_writes(b"GET /").unwrap();
    bed.settle();
    assert!(bed.told(SERVER).has(Mask::IN));
    assert_eq!(bed.remote.pending(SERVER), Ok(5));
    let mut peeked = [0; 3];
    let incoming = Incoming { peek: true, offset: 1, ..Incoming::default() };
    let got = bed.remote.recv(SERVER, &mut [IoSliceMut::new(&mut peeked)], incoming);
    assert_eq!((got.unwrap().bytes, &peeked), (3, b"ET "));
    assert_eq!(bed.read(10).unwrap(), b"GET /");
    assert_eq!(bed.read(10), Err(Errno::AGAIN));
    let pieces = [IoSlice::new(b"200 "), IoSlice::new(b"OK")];
    assert_eq!(bed.remote.send(SERVER, &pieces, Outgoing::default()), Ok(6));
    bed.settle();
    assert_eq!(bed.peer_reads(10).unwrap(), b"200 OK");
    assert_eq!(bed.told(SERVER), Mask::NONE, "there was room all the time");
    bed.peer_writes(b"bye").unwrap();
    bed.peer(|peer, _| peer.shutdown(CLIENT, How::Write).unwrap());
    bed.settle();
    assert!(bed.remote.mask(SERVER).has(Mask::READ | Mask::RDHUP | Mask::WRITE));
    assert_eq!(bed.read(10).unwrap(), b"bye");
    assert_eq!((bed.read(10), bed.read(10)), (Ok(vec![]), Ok(vec![])));
    assert_eq!(bed.write(b"still"), Ok(5));
    bed.remote.close(SERVER);
    bed.settle();
    assert_eq!(bed.peer_reads(10).unwrap(), b"still");
    assert_eq!(bed.peer_reads(10), Ok(vec![]));
    assert!(bed.remote.is_drained() && !bed.is_broken());
}

#[test]
fn many_bytes_arrive_whole_with_few_chunks() {
    let mut bed = Bed::connected(16);
    let data = bytes(1_000_000);
    let (mut sent, mut back, mut got, mut echoed) = (0, Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10_000 {
        if sent < data.len() {
            sent += bed.peer_writes(&data[sent..]).unwrap_or(0);
        }
        bed.settle();
        while let Ok(some) = bed.read(10_000) {
            got.extend_from_slice(&some);
        }
        // What was read goes back.
        if back.len() < got.len() {
            match bed.write(&got[back.len()..]) {
                Ok(written) => back.extend_from_slice(&got[back.len()..][..written]),
                Err(error) => assert_eq!(error, Errno::AGAIN),
            }
        }
        bed.settle();
        while let Ok(some) = bed.peer_reads(20_000) {
            echoed.extend_from_slice(&some);
            bed.settle();
        }
        if echoed.len() == data.len() {
            break;
        }
    }
    bed.settle();
    assert!(got == data && echoed == data && !bed.is_broken());
}

#[test]
fn what_was_written_before_a_close_arrives_and_the_number_is_free() {
    let mut bed = Bed::connected(64);
    let data = bytes(120_000);
    // The peer reads nothing: more than the stack's own buffer takes.
    let mut sent = 0;
    for _ in 0..100 {
        match bed.write(&data) {
            Ok(some) => sent += some,
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                assert!(!bed.remote.mask(SERVER).has(Mask::OUT));
                break;
            }
        }
        bed.settle();
    }
    assert!(sent > data.len(), "{sent}");
    bed.remote.close(SERVER);
    assert!(!bed.remote.is_drained());
    assert!(bed.held_beside() > 0, "the rest is the worker's now");
    bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
    assert_eq!(bed.remote.mask(SERVER), Mask::WRITE | Mask::HUP);
    assert_eq!(bed.write(b"x"), Err(Errno::PIPE));
    let got = bed.peer_reads_to_its_end().len();
    assert_eq!((got, bed.held_beside()), (sent, 0));
    assert!(bed.remote.is_drained() && !bed.is_broken());
}

#[test]
fn errors_are_told_once_and_calls_go_to_the_stack() {
    let mut bed = Bed::connected(64);
    assert_eq!(bed.remote.name(SERVER), Ok(at(1, 80)));
    assert_eq!(bed.remote.peer(SERVER).unwrap().ip(), at(2, 0).ip());
    // TCP_NODELAY, SO_RCVTIMEO.
    bed.remote.set_option(SERVER, 6, 1, &1_i32.to_ne_bytes()).unwrap();
    assert_eq!(&*bed.remote.option(SERVER, 6, 1, 4).unwrap(), 1_i32.to_ne_bytes());
    let second = [1_i64.to_ne_bytes(), 0_i64.to_ne_bytes()].concat();
    bed.remote.set_option(SERVER, 1, 20, &second).unwrap();
    assert_eq!(bed.remote.timeouts(SERVER), Ok((Some(1_000_000_000), None)));
    assert_eq!(bed.remote.set_option(SERVER, 6, 9999, &second), Err(Errno::NOPROTOOPT));
    bed.peer_writes(b"last").unwrap();
    bed.settle();
    bed.peer(|peer, _| peer.abort(CLIENT));
    bed.settle();
    assert!(bed.told(SERVER).has(Mask::IN | Mask::ERR | Mask::HUP));
    assert!(bed.remote.mask(SERVER).has(Mask::ERR | Mask::HUP | Mask::IN | Mask::OUT));
    assert_eq!(bed.read(10).unwrap(), b"last", "what came before comes before");
    assert_eq!((bed.read(10), bed.read(10)), (Err(Errno::CONNRESET), Ok(vec![])));
    assert!(!bed.remote.mask(SERVER).has(Mask::ERR));
    assert_eq!(bed.write(b"x"), Err(Errno::PIPE));
    assert_eq!(bed.remote.name(Id(60)), Err(Errno::BADF));
    assert_eq!(bed.remote.open(Id(SESSIONS), Domain::V4, Kind::Stream), Err(Errno::MFILE));
}

#[test]
fn a_shut_direction_ends_behind_what_was_written() {
    let mut bed = Bed::connected(64);
    let data = bytes(100_000);
    assert_eq!(bed.write(&data), Ok(data.len()));
    bed.remote.shutdown(SERVER, How::Write).unwrap();
    assert_eq!(bed.write(b"more"), Err(Errno::PIPE));
    assert_eq!(bed.peer_reads_to_its_end(), data);
    bed.peer_writes(b"answer").unwrap();
    bed.settle();
    assert_eq!(bed.read(10).unwrap(), b"answer");
}

#[test]
fn a_process_that_writes_anything_anywhere_harms_only_itself() {
    let mut seed = 7_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u32
    };
    for _ in 0..60 {
        let mut bed = Bed::connected(16);
        bed.write(b"some").unwrap();
        let memory = File::from(bed.segment.as_fd().try_clone_to_owned().unwrap());
        for _ in 0..200 {
            let word = (random() as usize % (bed.plan.bytes() / 4)) * 4;
            // The rings, the records.
            let word = if random() % 4 == 0 { word } else { word % 400_000 };
            let value = match random() % 4 {
                0 => 0,
                1 => u32::MAX,
                2 => random() % 300,
                _ => random() << 1,
            };
            memory.write_all_at(&value.to_ne_bytes(), word as u64).unwrap();
            if random() % 3 == 0 {
                let mut command = Vec::new();
                command.push((random() % 32) as u8);
                command.extend((random() % 70).to_le_bytes());
                (0..random() % 40).for_each(|_| command.push(random() as u8));
                let _ = bed.remote.end.commands.push(&command, shm::Meta::default());
            }
        }
        let mut host = bed.host.lock().unwrap();
        for _ in 0..20 {
            host.work();
            host.now += DELAY;
            host.out.packets.clear();
        }
        drop(host);
        // It leaves its worker nevertheless.
        bed.leave();
    }
    // One that does not look at what it is told.
    let mut bed = Bed::connected(16);
    // TCP_NODELAY: each byte goes alone.
    bed.peer(|peer, _| peer.set_option(CLIENT, 6, 1, &1_i32.to_ne_bytes()).unwrap());
    for round in 0..100 {
        bed.peer_writes(b"x").unwrap();
        bed.settle();
        assert!(!bed.is_broken(), "{round}: it is told once");
    }
    // And one that says again and again that it has.
    for _ in 0..100 {
        bed.peer_writes(b"x").unwrap();
        let _ = bed.remote.end.records.get(SERVER.0).unwrap().woken();
        bed.settle();
    }
    assert!(bed.is_broken());
}

#[test]
fn who_waits_for_room_while_the_worker_sends_is_told() {
    let mut bed = Bed::connected(64);
    let (host, over) = (Arc::clone(&bed.host), Arc::new(AtomicBool::new(false)));
    let is_over = Arc::clone(&over);
    let worker = std::thread::spawn(move || {
        let mut target = vec![0; 1 << 20];
        while !is_over.load(Ordering::Relaxed) {
            let mut host = host.lock().unwrap();
            host.step();
            let mut targets = [IoSliceMut::new(&mut target)];
            let _ = host.peer.recv(CLIENT, &mut targets, Incoming::default());
        }
    });
    // Small pieces, so that the worker often looks at one while the next is written.
    let (mut sent, patience) = (0, Instant::now() + Duration::from_secs(60));
    while sent < 5_000_000 {
        match bed.write(&[7; 100]) {
            Ok(count) => sent += count,
            Err(error) => {
                assert_eq!(error, Errno::AGAIN);
                while !bed.told(SERVER).has(Mask::OUT) {
                    assert!(Instant::now() < patience, "nobody has told it of room");
                    std::thread::yield_now();
                }
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    worker.join().unwrap();
    assert!(!bed.is_broken());
}
