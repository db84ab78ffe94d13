//! A receive queue of the client's own: packets stay in the device's buffers.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod stub;

use std::time::Duration;

use millrace::{Channel, Error, Options, Packet, PortQueue};
use shm::Meta;
use shm::attach::{Reference, Reply, flag, places};
use stub::{BUFFERS, Stub};

fn options() -> Options {
    let queue = Some(PortQueue { port: "left".into(), queue: 0 });
    Options { queue, slots: 64, capacity: 60, ..Options::default() }
}

fn open(stub: &Stub) -> (millrace::Client, Channel) {
    let client = stub.client();
    let mut queues = client.open(&options()).unwrap();
    (client, queues.channels.remove(0))
}

fn receive(channel: &mut Channel) -> Vec<Packet> {
    let mut packets = Vec::new();
    channel.receive(&mut packets, 64).unwrap();
    packets
}

/// The buffers that were given back.
fn returned(stub: &Stub) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some((bytes, meta)) = stub.take(0, 0) {
        assert_eq!(meta.flags, flag::RETURN);
        all.extend(places(&bytes));
    }
    all
}

#[test]
fn packets_are_seen_changed_and_sent_where_they_lie() {
    let stub = Stub::new(1);
    let (_client, mut channel) = open(&stub);
    for number in 0..4 {
        stub.lend(number + 5, &[number as u8; 600], 1);
    }
    let mut packets = receive(&mut channel);
    let seen: Vec<_> = packets.iter().map(|packet| channel.bytes(packet).to_vec()).collect();
    assert_eq!(seen, (0..4).map(|number| vec![number; 600]).collect::<Vec<_>>());
    let first = &packets[0];
    assert_eq!((first.length(), first.port(), first.pieces()), (600, 1, 1));
    assert!(!first.is_copy() && channel.piece(first, 1).is_none());
    let mut copy = [9; 700];
    assert_eq!(channel.copy(&packets[3], &mut copy), 600);
    assert!(copy[..600] == [3; 600] && copy[600..] == [9; 100]);
    assert_eq!(channel.copy(&packets[3], &mut copy[..10]), 10);
    channel.bytes_mut(&mut packets[0])[..6].copy_from_slice(b"change");

    // One by one, by another port, to the graph, in a burst with one of the caller's own.
    channel.send(packets.remove(0), 0).unwrap();
    channel.return_to_graph(packets.remove(0)).unwrap();
    channel.send_bytes(&[7; 60], 1).unwrap();
    assert_eq!(channel.send_burst(&mut packets).unwrap(), 2);
    let next = || {
        let (bytes, meta) = stub.take(0, 0).unwrap();
        (Reference::decode(&bytes), meta)
    };
    let at = |place| Some(Reference { place, offset: 128, length: 600 });
    let meta = |port, flags| Meta { port, flags: flags | flag::REFERENCE };
    assert_eq!(next(), (at(5), meta(0, 0)));
    assert_eq!(next(), (at(6), meta(1, flag::GRAPH)));
    assert_eq!(next(), (None, Meta { port: 1, flags: 0 }));
    assert_eq!(next(), (at(7), meta(1, 0)));
    assert_eq!(next(), (at(8), meta(1, 0)));
    assert!(stub.see(at(5).unwrap()).starts_with(b"change\0"));
    assert_eq!((channel.counters().sent, channel.counters().received), (5, 4));
    // What was sent is not given back as well.
    assert!(receive(&mut channel).is_empty() && returned(&stub).is_empty());
}

#[test]
fn released_buffers_go_back_many_at_once() {
    let stub = Stub::new(1);
    let (_client, mut channel) = open(&stub);
    (0..BUFFERS.0).for_each(|place| stub.lend(place, &[1; 60], 0));
    let mut packets = receive(&mut channel);
    assert_eq!(packets.len(), 20);
    channel.release_burst(&mut packets);
    let (bytes, meta) = stub.take(0, 0).unwrap();
    assert_eq!((bytes.len(), meta.flags), (60, flag::RETURN), "one slot for fifteen");
    assert_eq!(places(&bytes).collect::<Vec<_>>(), (0..15).collect::<Vec<_>>());
    assert!(stub.take(0, 0).is_none(), "the rest waits for company");
    assert!(receive(&mut channel).is_empty());
    assert_eq!(returned(&stub), (15..20).collect::<Vec<_>>(), "or for a quiet moment");
    // Before it sleeps, too, and the worker is woken.
    stub.with(|queue| queue.rings[0][0].from_client.sleeps().announce());
    stub.lend(3, &[1; 60], 0);
    let packet = receive(&mut channel).remove(0);
    channel.release(packet);
    assert!(channel.arm());
    assert!(stub.is_rung(0, 10));
    assert_eq!(returned(&stub), [3]);
}

#[test]
fn a_full_ring_keeps_what_is_to_go_back() {
    let stub = Stub::new(1);
    let (_client, mut channel) = open(&stub);
    for place in 0..4 {
        stub.lend(place, &[1; 60], 0);
    }
    let mut packets = receive(&mut channel);
    while channel.send_bytes(&[2; 60], 0).is_ok() {}
    let unsent = channel.send(packets.remove(0), 0).unwrap_err();
    assert!(matches!(unsent.error, Error::Full));
    channel.release(unsent.packet);
    assert_eq!(channel.send_burst(&mut packets).unwrap(), 0);
    assert_eq!(packets.len(), 3);
    channel.release_burst(&mut packets);
    assert!(receive(&mut channel).is_empty());
    // The daemon looks again.
    while let Some((bytes, _)) = stub.take(0, 0) {
        assert_eq!(bytes, [2; 60]);
    }
    assert!(!channel.flush(Duration::ZERO).unwrap(), "they are on the way now");
    assert_eq!(returned(&stub), [0, 1, 2, 3]);
    assert!(channel.flush(Duration::ZERO).unwrap());
}

#[test]
fn packets_of_another_queue_are_nobodys_to_give() {
    let stub = Stub::new(1);
    let (_first, mut other) = open(&stub);
    stub.lend(0, &[1; 60], 0);
    let mut foreign = receive(&mut other);
    let (_second, mut channel) = open(&stub);
    assert!(channel.bytes(&foreign[0]).is_empty());
    assert_eq!(channel.send_burst(&mut foreign).unwrap(), 0);
    let unsent = channel.send(foreign.remove(0), 0).unwrap_err();
    assert!(matches!(unsent.error, Error::Foreign));
    channel.release(unsent.packet);
    assert!(receive(&mut channel).is_empty() && stub.take(0, 0).is_none());
}

#[test]
fn nonsense_is_counted_or_refused() {
    let stub = Stub::new(1);
    let (_client, mut channel) = open(&stub);
    let strange = |bytes: &[u8]| {
        stub.inject(0, 0, bytes, Meta { port: 0, flags: flag::REFERENCE });
    };
    strange(&Reference { place: BUFFERS.0, offset: 0, length: 60 }.encode());
    strange(&Reference { place: 0, offset: BUFFERS.1 - 59, length: 60 }.encode());
    strange(&[0; 11]);
    strange(&[0; 60]);
    stub.lend(1, &[1; 60], 0);
    let packets = receive(&mut channel);
    assert_eq!((packets.len(), channel.counters().malformed), (1, 4));
    channel.release(packets.into_iter().next().unwrap());

    // Buffers over a ring, beyond the segment, without a queue, for several pairs.
    for spoil in 0..4 {
        let stub = Stub::new(if spoil == 3 { 2 } else { 1 });
        stub.on_answer(move |_, reply, _| {
            let Reply::Opened(opened) = reply else { return };
            let Some(buffers) = &mut opened.buffers else { return };
            match spoil {
                0 => buffers.offset -= 64,
                1 => buffers.count += 1,
                2 => (buffers.count, buffers.size) = (u32::MAX, u32::MAX),
                _ => {}
            }
        });
        let error = stub.client().open(&options()).unwrap_err();
        assert!(matches!(error, Error::Nonsense(_)), "{error}");
    }
    // References without buffers.
    let stub = Stub::new(1);
    stub.state.lock().unwrap().lends = false;
    let (_client, mut channel) = open(&stub);
    let whole = Reference { place: 0, offset: 0, length: 60 };
    stub.inject(0, 0, &whole.encode(), Meta { port: 0, flags: flag::REFERENCE });
    assert!(receive(&mut channel).is_empty());
    assert_eq!(channel.counters().malformed, 1);
}
