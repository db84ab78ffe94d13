mod bed;

use shm::attach::Reference;

use super::*;
use crate::capture::Direction;
use bed::{Bed, COUNT, SIZE, frame};

#[test]
fn packets_stay_where_the_device_has_put_them() {
    let mut bed = Bed::new("lane-stay", (0..12).map(frame));
    // Nobody has the queue.
    assert_eq!(bed.poll(2), 2);
    let port = PortId::new(bed.port.id());
    assert_eq!(bed.entered(), [(frame(0), port), (frame(1), port)]);
    let mut client = bed.client(16);
    assert_eq!(bed.poll(10), 10);
    assert!(bed.entered().is_empty());
    let references = client.references();
    let seen: Vec<_> = references.iter().map(|reference| client.see(*reference)).collect();
    assert_eq!(seen, (2..12).map(frame).collect::<Vec<_>>());
    assert_eq!(client.counters.delivered.get(), 10);
    assert_eq!(bed.free(), COUNT - 10, "the client has them");

    // Changed and sent from where it lies; a part of another; a third into the graph; the rest comes back.
    client.write(references[0], &[0xaa; 20]);
    client.send(references[0], 7, 0);
    let Reference { place, offset, .. } = references[1];
    client.send(Reference { place, offset: offset - 4, length: 30 }, 7, 0);
    client.send(references[2], 7, flag::GRAPH);
    client.say(&[5; 60], 7, 0);
    client.say(&[6; 60], 7, flag::GRAPH);
    client.give_back(&references[3..].iter().map(|reference| reference.place).collect::<Vec<_>>());
    assert_eq!(bed.poll(32), 6);
    assert_eq!(bed.entered(), [(frame(4), port), (vec![6; 60], port)]);
    assert_eq!(bed.free(), COUNT, "every buffer is back");
    assert_eq!(client.counted(), (0, 0, 5));
    let counters = &bed.outside.counters.ports[port.number()];
    assert_eq!((counters.rx_packets.get(), counters.tx_packets.get()), (12, 3));
    let bytes: usize = (0..12).map(|number| frame(number).len()).sum();
    assert_eq!(counters.rx_bytes.get(), bytes as u64);
    assert_eq!(counters.tx_bytes.get(), 62 + 60 + 60);

    let mut changed = frame(2);
    changed[..20].fill(0xaa);
    let mut part = vec![0; 4];
    part.extend(&frame(3)[..26]);
    // Too short for some devices.
    part.resize(60, 0);
    assert_eq!(bed.end(), [changed, part, vec![5; 60]]);
}

#[test]
fn nonsense_is_counted_and_nothing_else() {
    let mut bed = Bed::new("lane-nonsense", (0..8).map(frame));
    let mut client = bed.client(32);
    bed.poll(8);
    let held = client.references();
    let span = |offset, length| Reference { offset, length, ..held[0] };
    // Not its own: never was, is none, was given back already.
    let strange = (0..COUNT).find(|place| held.iter().all(|held| held.place != *place)).unwrap();
    client.give_back(&[strange, COUNT, u32::MAX]);
    client.send(Reference { place: strange, ..held[0] }, 7, 0);
    client.send(Reference { place: u32::MAX, ..held[0] }, 7, 0);
    client.give_back(&[held[7].place, held[7].place]);
    // No references at all, no numbers at all.
    client.say(&[0; 11], 7, flag::REFERENCE);
    client.say(&[0; 60], 7, flag::REFERENCE);
    client.say(&[1, 2, 3], 7, flag::RETURN);
    bed.poll(0);
    assert_eq!(client.counted(), (9, 0, 0));
    assert_eq!(bed.free(), COUNT - 7);
    // Outside its buffer; then it is gone.
    client.send(span(SIZE - 10, 60), 7, 0);
    client.send(span(0, 60), 7, 0);
    client.send(Reference { length: u32::MAX, ..held[1] }, 7, 0);
    client.send(Reference { length: 0, ..held[2] }, 7, 0);
    bed.poll(0);
    assert_eq!(client.counted(), (13, 0, 0));
    // What it must not send: no such port, too short, too long.
    client.send(held[3], 8, 0);
    client.send(Reference { length: 13, ..held[4] }, 7, 0);
    client.send(Reference { length: 1523, ..held[5] }, 7, 0);
    bed.poll(0);
    assert_eq!(client.counted(), (13, 3, 0));
    assert_eq!(bed.free(), COUNT - 1, "all that it claimed is back, but for one");
    client.send(held[6], 7, flag::RETURN);
    bed.poll(0);
    assert_eq!(bed.free(), COUNT, "a return of three numbers, the first of which is its own");
    assert!(bed.end().is_empty());
}

#[test]
fn one_that_does_not_keep_up_starves_its_own_queue() {
    let mut bed = Bed::new("lane-full", (0..200).map(|number| frame(number % 100)));
    let mut client = bed.client(4);
    assert_eq!(bed.poll(10), 10);
    assert_eq!((client.counters.delivered.get(), client.counters.full.get()), (4, 6));
    assert_eq!(bed.drops(Reason::ClientFull), 6);
    assert_eq!(bed.free(), COUNT - 4);
    // One that takes and keeps: when it has them all, the device has none.
    while bed.free() > 0 {
        client.references();
        bed.poll(4);
    }
    assert_eq!(bed.free(), 0);
    assert!(client.counters.delivered.get() == u64::from(COUNT) && bed.poll(4) == 0);
    // It is gone: all is taken back, its memory too, and what comes then is the daemon's.
    let gone = bed.rx.take_client(1).unwrap();
    assert!(bed.rx.take_client(1).is_none());
    bed.settle();
    assert_eq!(bed.free(), COUNT);
    assert_eq!(bed.rx.queue.shared().unwrap().earlier(), 0);
    drop(gone);
    assert!(client.ends_last(), "nobody else holds the memory");
    assert_eq!(bed.poll(8), 8);
    assert_eq!(bed.entered().len(), 8);
    bed.end();
}

#[test]
fn what_a_driver_still_has_comes_back_later() {
    let mut bed = Bed::new("lane-late", (0..4).map(frame));
    let first = bed.client(16);
    // As a driver does: takes a buffer before the client goes, and fills it after.
    let mut slots = [const { None }; 4];
    assert_eq!(bed.rx.queue.burst(&mut slots), 0, "all of it lies in the client's memory");
    let pool = bed.rx.queue.shared().unwrap();
    let late: Vec<_> = pool.received().drain(..).collect();
    assert!(late.len() == 4 && bed.rx.take_client(1).is_some());
    let port = PortId::new(bed.port.id());
    bed.settle();
    assert_eq!(bed.rx.queue.shared().unwrap().earlier(), 1);
    bed.rx.queue.shared().unwrap().received().extend(late);
    assert_eq!(bed.poll(8), 4);
    assert_eq!(bed.entered(), (0..4).map(|n| (frame(n), port)).collect::<Vec<_>>());
    assert_eq!(bed.rx.queue.shared().unwrap().earlier(), 0);
    assert!(first.ends_last(), "nobody else holds the memory");
    bed.end();
}

#[test]
fn chains_and_captures_are_copied() {
    let long: Vec<u8> = (0..5000_u32).map(|at| (at / 7) as u8).collect();
    let mut bed = Bed::new("lane-chain", [long.clone(), frame(1)]);
    let mut client = bed.client(256);
    let options = crate::CaptureOptions {
        taps: crate::Taps { receive: true, transmit: true, drop: false },
        filter: crate::Filter::default(),
        snap: 100,
        ring: 16,
    };
    let (tap, mut frames) = crate::capture(options);
    bed.outside.exits.set_tap(Some(tap));
    assert_eq!(bed.poll(4), 2);
    let slots = client.slots();
    assert_eq!(slots[0], (long, Meta { port: 7, flags: 0 }));
    let reference = Reference::decode(&slots[1].0).unwrap();
    client.send(reference, 7, 0);
    bed.poll(0);
    let seen: Vec<_> = std::iter::from_fn(|| frames.pop()).collect();
    let lengths: Vec<_> = seen.iter().map(|frame| (frame.length, frame.direction)).collect();
    let (receive, transmit) = (Direction::Receive, Direction::Transmit);
    assert_eq!(lengths, [(5000, receive), (61, receive), (61, transmit)]);
    assert_eq!(bed.free(), COUNT);
    assert_eq!(bed.end(), [frame(1)]);
}

/// Whatever a client says, each buffer is the pool's or the client's.
#[test]
fn no_buffer_is_lost_or_had_twice() {
    let mut bed = Bed::on("lane-random", "null,size=64", Default::default());
    for honest in [true, false] {
        at_random(&mut bed, honest);
    }
}

/// And what an honest one was referred to is its own.
fn at_random(bed: &mut Bed, honest: bool) {
    let mut client = bed.client(64);
    let mut seed = 1_u64;
    // xorshift64 (Marsaglia 2003)
    let mut next = move |bound: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % bound
    };
    // What was referred to, and nothing was said of since.
    let mut mine: Vec<Reference> = Vec::new();
    for _ in 0..20_000 {
        match next(5) {
            0 => mine.extend(client.references()),
            1 => {
                let count = next(16).min(mine.len() as u64) as usize;
                let places: Vec<_> = mine.drain(..count).map(|held| held.place).collect();
                if client.to_daemon.has_room() && !places.is_empty() {
                    client.give_back(&places);
                }
            }
            2 if client.to_daemon.has_room() && !mine.is_empty() => {
                let at = next(mine.len() as u64) as usize;
                let way = [0, flag::GRAPH][next(2) as usize];
                client.send(mine.swap_remove(at), 7 + next(2) as u8, way);
            }
            3 if client.to_daemon.has_room() && !honest => {
                let bytes: Vec<u8> =
                    (0..=next(60)).map(|_| [next(128) as u8, 0][next(2) as usize]).collect();
                client.say(&bytes, next(256) as u8, next(16) as u8);
            }
            _ => {
                bed.poll(next(8) as usize);
                bed.entered();
            }
        }
        let lane = bed.rx.lane.as_ref().unwrap();
        let held = lane.held.iter().flatten().count() as u32;
        let owns = |mine: &Reference| lane.held[mine.place as usize].is_some();
        assert!(!honest || mine.iter().all(owns));
        assert_eq!(bed.free() + held, COUNT);
    }
    let counted = client.counted();
    assert!(counted.1 > 100 && counted.2 > 100, "all of it happened: {counted:?}");
    assert!(if honest { counted.0 == 0 } else { counted.0 > 100 }, "{counted:?}");
    assert!(bed.rx.take_client(1).is_some());
    bed.settle();
    assert_eq!(bed.free(), COUNT);
}
