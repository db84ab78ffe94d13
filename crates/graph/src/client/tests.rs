use shm::{Layout, Region, Segment};

use super::*;
use crate::Reason;
use crate::testbed::{Outside, own_pool, packet};

/// The client's ends of a channel.
struct Client {
    from_daemon: shm::Consumer,
    to_daemon: shm::Producer,
    segment: Arc<Segment>,
}

fn region(segment: &Arc<Segment>, which: usize, layout: Layout) -> Region {
    segment.region(which * layout.bytes(), layout.bytes()).unwrap()
}

fn client(channels: usize, slots: u32) -> (Vec<ClientChannel>, Vec<Client>) {
    let layout = Layout::new(slots, 2048).unwrap();
    (0..channels)
        .map(|_| {
            let segment = Arc::new(Segment::create("test", 2 * layout.bytes()).unwrap());
            let end = |which| region(&segment, which, layout);
            let to = shm::Producer::new(end(0), layout).unwrap();
            let from = shm::Consumer::new(end(1), layout).unwrap();
            let from_daemon = shm::Consumer::new(end(0), layout).unwrap();
            let to_daemon = shm::Producer::new(end(1), layout).unwrap();
            let ours = ClientChannel::new(to, from, errand());
            (ours, Client { from_daemon, to_daemon, segment: Arc::clone(&segment) })
        })
        .unzip()
}

fn errand() -> Errand {
    Errand::new(Arc::new(crate::Doorbell::new().unwrap()))
}

fn wake() -> ClientWake {
    ClientWake::new(shm::bell::inward().unwrap().0, 1, errand())
}

fn queues(
    take: Take,
    spread: Spread,
    channels: Vec<ClientChannel>,
    pool: BufferPool,
) -> (ClientQueues, Arc<ClientCounters>) {
    let ports = Arc::new(ClientPorts::default());
    ports.set(7, Some((PortId::new(0), 1500)));
    let counters = Arc::new(ClientCounters::default());
    let queues = ClientQueues::new(ClientSetup {
        take,
        spread,
        filter: Filter::default(),
        receives: Arc::clone(&ports),
        sends: ports,
        channels,
        wake: wake(),
        pace: ClientPace::default(),
        pool,
        counters: Arc::clone(&counters),
    });
    (queues, counters)
}

fn received(client: &mut Client) -> Vec<(Vec<u8>, Meta)> {
    std::iter::from_fn(|| {
        let taken = client.from_daemon.next()?;
        let mut bytes = vec![0; taken.length()];
        client.from_daemon.copy(&taken, &mut bytes);
        let meta = taken.meta();
        client.from_daemon.release(taken);
        Some((bytes, meta))
    })
    .collect()
}

#[test]
fn diverted_packets_are_the_clients_and_copied_ones_are_not() {
    let pool = own_pool("client-divert", 63);
    let mut outside = Outside::new(1, 0, 64);
    for take in [Take::Divert, Take::Copy, Take::Nothing] {
        let (channels, mut clients) = client(1, 16);
        let (mut queues, counters) = queues(take, Spread::Flow, channels, pool);
        let mut packets: Vec<_> = (0..4).map(|n| Some(packet(&pool, &[n; 60]))).collect();
        queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        // Another port's are none of its business.
        let mut others = [Some(packet(&pool, &[9; 60]))];
        queues.receive(PortId::new(1), &mut others, &mut outside.exits, 0);
        assert!(others[0].is_some());
        let left = packets.iter().flatten().count();
        let got = received(&mut clients[0]);
        let (flags, expected) = match take {
            Take::Divert => (0, (0, 4)),
            Take::Copy => (flag::COPY, (4, 4)),
            Take::Nothing => (0, (4, 0)),
        };
        assert_eq!((left, got.len()), expected);
        assert_eq!(counters.delivered.get(), got.len() as u64);
        for (n, (bytes, meta)) in got.iter().enumerate() {
            assert_eq!((&bytes[..], *meta), (&[n as u8; 60][..], Meta { port: 7, flags }));
        }
        drop((packets, others));
        assert_eq!(pool.available(), 63);
    }
}

#[test]
fn a_client_that_does_not_read_loses_its_own_packets_only() {
    let pool = own_pool("client-full", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (channels, _clients) = client(1, 4);
    let (mut queues, counters) = queues(Take::Divert, Spread::Flow, channels, pool);
    let mut packets: Vec<_> = (0..10).map(|n| Some(packet(&pool, &[n; 60]))).collect();
    queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
    outside.exits.free_dropped();
    assert!(packets.iter().all(Option::is_none));
    assert_eq!((counters.delivered.get(), counters.full.get()), (4, 6));
    assert_eq!(outside.drops(Reason::ClientFull), 6);
    assert_eq!(pool.available(), 63);
}

#[test]
fn spreads_over_channels() {
    let pool = own_pool("client-spread", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (channels, mut clients) = client(3, 16);
    let (mut queues, _) = queues(Take::Divert, Spread::RoundRobin, channels, pool);
    let mut packets: Vec<_> = (0..9).map(|n| Some(packet(&pool, &[n; 60]))).collect();
    queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
    assert_eq!(clients.iter_mut().map(|one| received(one).len()).collect::<Vec<_>>(), [3, 3, 3]);
    let (channels, mut clients) = client(3, 16);
    let (mut queues, _) = self::queues(Take::Divert, Spread::Port, channels, pool);
    let mut packets: Vec<_> = (0..9).map(|n| Some(packet(&pool, &[n; 60]))).collect();
    queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
    // Port 7 of 3 channels.
    assert_eq!(clients.iter_mut().map(|one| received(one).len()).collect::<Vec<_>>(), [0, 9, 0]);
}

#[test]
fn what_a_client_sends_is_checked() {
    let pool = own_pool("client-send", 63);
    let (channels, mut clients) = client(1, 16);
    let (mut queues, counters) = queues(Take::Nothing, Spread::Flow, channels, pool);
    let to = &mut clients[0].to_daemon;
    let meta = |port, flags| Meta { port, flags };
    to.push(&[1; 60], meta(7, 0)).unwrap();
    to.push(&[2; 60], meta(7, flag::GRAPH)).unwrap();
    to.push(&[3; 60], meta(6, 0)).unwrap();
    to.push(&[4; 13], meta(7, 0)).unwrap();
    to.push(&[5; 1523], meta(7, 0)).unwrap();
    to.push(&[6; 9000], meta(7, 0)).unwrap();
    let mut outgoing = Outgoing { spare: 64, ..Outgoing::default() };
    assert_eq!(queues.send(&mut outgoing, 0), 6);
    let sent: Vec<_> = outgoing.transmit.iter().map(|(one, port)| (one.data()[0], *port)).collect();
    assert_eq!(sent, [(1, PortId::new(0))]);
    assert_eq!((outgoing.enter[0].data()[0], outgoing.enter[0].port()), (2, 0));
    let counted = (counters.sent.get(), counters.refused.get(), counters.no_buffer.get());
    assert_eq!(counted, (2, 4, 0), "what is refused is not copied");
    drop(outgoing);
    assert_eq!(pool.available(), 63);
    assert!(clients[0].to_daemon.is_drained());
}

#[test]
fn frames_too_short_for_a_device_are_padded_with_zeros() {
    let pool = own_pool("client-runts", 63);
    // Nothing of a packet of before may go out.
    drop((0..63).map(|_| packet(&pool, &[0xee; 100])).collect::<Vec<_>>());
    let (channels, mut clients) = client(1, 16);
    let (mut queues, counters) = queues(Take::Nothing, Spread::Flow, channels, pool);
    let lengths = [14, 33, 34, 59];
    for length in lengths {
        let to = &mut clients[0].to_daemon;
        to.push(&vec![1; length], Meta { port: 7, flags: 0 }).unwrap();
        to.push(&vec![1; length], Meta { port: 7, flags: flag::GRAPH }).unwrap();
    }
    let mut outgoing = Outgoing { spare: 64, ..Outgoing::default() };
    queues.send(&mut outgoing, 0);
    for ((sent, _), (length, on_the_wire)) in
        outgoing.transmit.iter().zip(lengths.iter().zip([60, 60, 34, 59]))
    {
        let mut expected = vec![1; *length];
        expected.resize(on_the_wire, 0);
        assert_eq!(sent.data(), expected);
    }
    assert_eq!(outgoing.enter.iter().map(Buffer::len).collect::<Vec<_>>(), lengths, "no device");
    assert_eq!(counters.sent_bytes.get(), 2 * (14 + 33 + 34 + 59));
}

#[test]
fn garbage_all_over_a_segment_is_counted_and_harms_nobody() {
    let pool = own_pool("client-garbage", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (channels, mut clients) = client(1, 16);
    let (mut queues, counters) = queues(Take::Divert, Spread::Flow, channels, pool);
    let layout = Layout::new(16, 2048).unwrap();
    let mut random = 1u32;
    for turn in 0..2000u64 {
        // A second producer writes whatever it likes where the client's ends are.
        let segment = &clients[0].segment;
        let mut wild =
            shm::Producer::new(region(segment, (turn % 2) as usize, layout), layout).unwrap();
        for _ in 0..(turn % 7) {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let length = 1 + random as usize % 2048;
            let meta = Meta { port: (random >> 8) as u8, flags: (random >> 16) as u8 & 127 };
            let _ = wild.push(&vec![random as u8; length], meta);
        }
        let mut packets: Vec<_> = (0..3).map(|n| Some(packet(&pool, &[n; 60]))).collect();
        queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        let mut outgoing = Outgoing::default();
        queues.send(&mut outgoing, turn);
        outside.exits.free_dropped();
        received(&mut clients[0]);
    }
    assert_eq!(pool.available(), 63);
    assert!(counters.delivered.get() + counters.full.get() == 6000);
}

#[test]
fn a_bell_is_not_rung_more_often_than_it_helps() {
    let pool = own_pool("client-bell", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (channels, mut clients) = client(1, 16);
    let Client { from_daemon, mut to_daemon, .. } = clients.remove(0);
    let (mut queues, _) = queues(Take::Divert, Spread::Flow, channels, pool);
    let sleeps = from_daemon.sleeps();
    let mut rung = 0;
    for now in 0..10 {
        sleeps.announce();
        let mut packets = [Some(packet(&pool, &[0; 60]))];
        queues.receive(PortId::new(0), &mut packets, &mut outside.exits, now);
        // Who rings takes the word back.
        rung += u32::from(!sleeps.claim_wake());
    }
    assert_eq!(rung, 1);
    // Nor for one that waits for room and sends all the time.
    for now in 10..20 {
        to_daemon.sleeps().announce();
        to_daemon.push(&[0; 60], Meta { port: 7, flags: 0 }).unwrap();
        assert_eq!(queues.send(&mut Outgoing::default(), now), 1);
        assert!(to_daemon.sleeps().claim_wake(), "it was rung just before");
    }
    // What was not rung is when the worker sleeps.
    sleeps.announce();
    queues.arm();
    assert!(!sleeps.claim_wake());
}

/// Fills every ring to the worker with packets that it must refuse.
fn flood(clients: &mut [Client], bytes: &[u8]) {
    for client in clients {
        while client.to_daemon.push(bytes, Meta { port: 9, flags: 0 }).is_ok() {}
    }
}

#[test]
fn a_flood_takes_a_few_slots_of_each_round() {
    let pool = own_pool("client-flood", 63);
    let (channels, mut clients) = client(64, 16);
    let (mut queues, counters) = queues(Take::Nothing, Spread::Flow, channels, pool);
    let (others, mut quiet) = client(1, 16);
    let (mut other, _) = self::queues(Take::Nothing, Spread::Flow, others, pool);
    flood(&mut clients, &[1; 60]);
    for round in 1..=16 {
        let mut outgoing = Outgoing::default();
        quiet[0].to_daemon.push(&[2; 60], Meta { port: 7, flags: 0 }).unwrap();
        // Who sends first takes turns in the worker.
        if round % 2 == 0 {
            assert_eq!(queues.send(&mut outgoing, 0), 8);
            assert_eq!(other.send(&mut outgoing, 0), 0);
        } else {
            assert!(other.send(&mut outgoing, 0) > 0);
            assert_eq!(queues.send(&mut outgoing, 0), if round == 1 { 7 } else { 6 });
        }
        assert_eq!(outgoing.spare, 0);
    }
    assert_eq!(counters.refused.get(), 7 + 7 * 6 + 8 * 8);
    // Packets of many slots: one, then nothing until it is paid for.
    let (channels, mut clients) = client(1, 64);
    let (mut queues, counters) = self::queues(Take::Nothing, Spread::Flow, channels, pool);
    flood(&mut clients, &[1; 60_000]);
    let slots = 60_000_usize.div_ceil(2048);
    let rounds: Vec<_> = (0..9).map(|_| queues.send(&mut Outgoing::default(), 0)).collect();
    assert_eq!((counters.refused.get(), slots), (2, 30));
    // Paid for in rounds in which the worker does not sleep.
    assert_eq!(rounds, [2, 1, 1, 2, 1, 1, 1, 0, 0]);
}

#[test]
fn who_was_given_packets_may_send_as_many() {
    let pool = own_pool("client-credit", 255);
    let mut outside = Outside::new(1, 0, 64);
    for (take, expected) in [(Take::Divert, 48), (Take::Copy, 8)] {
        let (channels, mut clients) = client(1, 64);
        let (mut queues, _) = queues(take, Spread::Flow, channels, pool);
        let mut packets: Vec<_> = (0..40).map(|n| Some(packet(&pool, &[n; 60]))).collect();
        queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        flood(&mut clients, &[1; 60]);
        assert_eq!(queues.send(&mut Outgoing::default(), 0), expected, "{take:?}");
        assert_eq!(queues.send(&mut Outgoing::default(), 0), 8, "once");
    }
}

#[test]
fn copies_that_find_no_room_or_no_time_are_counted() {
    let pool = own_pool("client-copies", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (channels, mut clients) = client(1, 16);
    let (mut queues, counters) = queues(Take::Copy, Spread::Flow, channels, pool);
    let mut packets: Vec<_> = (0..10).map(|n| Some(packet(&pool, &[n; 60]))).collect();
    let mut counted = |queues: &mut ClientQueues| {
        queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        (counters.delivered.get(), counters.full.get())
    };
    let seen: Vec<_> = (0..3).map(|_| counted(&mut queues)).collect();
    assert_eq!(seen, [(10, 0), (16, 4), (16, 14)]);
    assert_eq!(received(&mut clients[0]).len(), 16);
    assert_eq!(counted(&mut queues), (26, 14));
    // The second is not its port.
    queues.skip(PortId::new(0), 7);
    queues.skip(PortId::new(1), 64);
    assert_eq!((counters.skipped.get(), counters.full.get()), (7, 14));
    assert_eq!(outside.drops(Reason::ClientFull), 0, "they are copies");
}

#[test]
fn channels_take_turns_and_none_is_overlooked_before_sleep() {
    let pool = own_pool("client-turns", 63);
    let (channels, mut clients) = client(20, 16);
    let (mut queues, _) = queues(Take::Nothing, Spread::Flow, channels, pool);
    let send = |clients: &mut [Client], channel: usize| {
        clients[channel].to_daemon.push(&[1; 60], Meta { port: 7, flags: 0 }).unwrap();
    };
    send(&mut clients, 19);
    let found: Vec<_> = (0..3).map(|_| queues.send(&mut Outgoing::default(), 0)).collect();
    assert_eq!(found, [0, 0, 1], "eight in a round");
    send(&mut clients, 3);
    send(&mut clients, 2);
    queues.arm();
    assert_eq!(queues.send(&mut Outgoing::default(), 0), 2, "all of them");
}

#[test]
fn of_many_channels_one_is_rung_at_a_time() {
    let pool = own_pool("client-bells", 63);
    let mut outside = Outside::new(1, 0, 64);
    let (channels, mut clients) = client(3, 16);
    let (mut queues, _) = queues(Take::Divert, Spread::RoundRobin, channels, pool);
    clients.iter().for_each(|client| client.from_daemon.sleeps().announce());
    let mut packets: Vec<_> = (0..6).map(|n| Some(packet(&pool, &[n; 60]))).collect();
    queues.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
    let asleep = |clients: &mut [Client]| {
        let words = clients.iter().map(|client| client.from_daemon.sleeps());
        words.filter(|word| word.claim_wake().then(|| word.announce()).is_some()).count()
    };
    assert_eq!(asleep(&mut clients), 2);
    let gap = dpdk::tsc_hz() / 50_000;
    for (now, left) in [(gap - 1, 2), (gap, 1), (gap + 1, 1), (2 * gap, 0)] {
        queues.send(&mut Outgoing::default(), now);
        assert_eq!(asleep(&mut clients), left, "at {now}");
    }
}
