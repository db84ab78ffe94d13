//! What a stack sends: what may leave, and what may not.

use graph::InterfaceId;
use millrace_forward::nodes;
use millrace_forward::rib::{Change, Route, Target};
use millrace_forward::state::DEFAULT_VRF;
use shm::session::TransportProtocol::{Tcp, Udp};
use wire::build::Payload;
use wire::tcp::{Flags, Segment};
use wire::{ipv4, ipv6};

use crate::ETHERNET;
use crate::router::{self, Router};
use crate::stack::{self, packet, segment};

#[test]
fn what_a_stack_sends_keeps_its_hop_count_also_when_cut_or_kept_waiting() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.listen(&stack, Udp, "10.0.0.1:53", 1).unwrap();
    let payload = Payload::Udp { source_port: 53, destination_port: 7, data: &[9; 1700] };
    let long = packet("10.0.0.1", "10.0.0.99", &payload);
    stack.send(&long);
    let sent = router.send_of_stacks();
    let hops = |frame: &[u8]| ipv4::Header::parse(&frame[ETHERNET..]).unwrap().ttl();
    assert_eq!(sent.iter().map(|(_, frame)| hops(frame)).collect::<Vec<_>>(), [64, 64]);
    // To a neighbour that is not known yet.
    let short = Payload::Udp { source_port: 53, destination_port: 7, data: b"hello" };
    stack.send(&packet("10.0.0.1", "10.0.0.50", &short));
    assert_eq!(router.send_of_stacks(), []);
    let waits = router.punts.pop().unwrap().packet;
    let host = Route::of_static(
        DEFAULT_VRF,
        router::prefix_of("10.0.0.50/32"),
        Target::Port(InterfaceId::new(0)),
    );
    router.rib.apply(&[Change::Add(host)]).unwrap();
    let sent = router.inject(waits, nodes::RELEASED);
    assert_eq!(sent.iter().map(|(_, frame)| hops(frame)).collect::<Vec<_>>(), [64]);
    router.assert_no_buffer_is_out();
}

#[test]
fn what_a_stack_may_not_send_is_dropped_and_counted() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    let other = router.add_stack();
    router.listen(&stack, Tcp, "10.0.0.1:80", 1).unwrap();
    router.listen(&other, Tcp, "10.0.0.1:81", 1).unwrap();
    router.steering.lease(stack.id, 20_000, 256).unwrap();
    let tcp = |from: u16| segment((from, 7), Flags::ACK, b"data");
    let udp = Payload::Udp { source_port: 80, destination_port: 7, data: b"data" };
    let (own, host, six) = ("10.0.0.1", "10.0.0.99", "2001:db8::1");
    let edited = |at: usize, value: u8| {
        let mut packet = packet(own, host, &tcp(80));
        packet[at] = value;
        let _ = ipv4::write_checksum(&mut packet);
        packet
    };
    let mut checksum = packet(own, host, &tcp(80));
    checksum[10] ^= 1;
    let mut trailing = packet(own, host, &tcp(80));
    trailing.push(0);
    let mut trailing6 = packet(six, "2001:db8::99", &tcp(20_000));
    trailing6.push(0);
    let mut hopless6 = packet(six, "2001:db8::99", &tcp(20_000));
    hopless6[7] = 0;
    let raw = |protocol| Payload::Raw { protocol: wire::Protocol(protocol), data: &[0; 40] };
    let cases = [
        (packet("10.0.0.99", host, &tcp(80)), "stack-source"),
        (packet("0.0.0.0", host, &tcp(80)), "stack-source"),
        (packet("10.0.0.255", host, &tcp(80)), "stack-source"),
        (packet("2001:db8::99", "2001:db8::98", &tcp(20_000)), "stack-source"),
        (packet(own, host, &tcp(81)), "stack-port"),
        (packet("10.0.1.1", host, &tcp(80)), "stack-port"),
        (packet(own, host, &tcp(20_256)), "stack-port"),
        (packet(own, host, &udp), "stack-port"),
        (packet(six, "2001:db8::99", &tcp(80)), "stack-port"),
        (packet(own, host, &raw(1)), "stack-protocol"),
        (packet(six, "2001:db8::99", &raw(58)), "stack-protocol"),
        (packet(six, "2001:db8::99", &raw(0)), "stack-protocol"),
        (packet(six, "2001:db8::99", &raw(44)), "stack-fragment"),
        (edited(6, 0x20), "stack-fragment"),
        (edited(7, 1), "stack-fragment"),
        (edited(0, 0x46), "stack-malformed"),
        (edited(0, 0x55), "stack-malformed"),
        (edited(3, 41), "stack-malformed"),
        (edited(8, 0), "stack-malformed"),
        (checksum, "stack-malformed"),
        (trailing, "stack-malformed"),
        (
            packet(own, host, &Payload::Raw { protocol: wire::Protocol(6), data: &[0; 19] }),
            "stack-malformed",
        ),
        (
            packet(own, host, &Payload::Raw { protocol: wire::Protocol(17), data: &[0; 7] }),
            "stack-malformed",
        ),
        (vec![0x45], "stack-malformed"),
        (trailing6, "stack-malformed"),
        (hopless6, "stack-malformed"),
        (vec![0; 60], "stack-malformed"),
        (packet(own, "224.0.0.1", &tcp(80)), "stack-destination"),
        (packet(own, "127.0.0.1", &tcp(80)), "stack-destination"),
        (packet(own, "255.255.255.255", &tcp(80)), "stack-destination"),
        (packet(six, "ff02::1", &tcp(20_000)), "stack-destination"),
        (packet(six, "fe80::99", &tcp(20_000)), "stack-destination"),
        (packet(six, "::1", &tcp(20_000)), "stack-destination"),
    ];
    for (packet, reason) in &cases {
        let before: u64 = stack.refused().iter().map(|(_, count)| count).sum();
        let of = |stack: &stack::Stack| {
            let found = stack.refused().into_iter().find(|(name, _)| name == reason);
            found.map_or(0, |(_, count)| count)
        };
        let known = of(&stack);
        stack.send(packet);
        assert_eq!(router.send_of_stacks(), [], "{packet:x?}");
        assert_eq!(of(&stack), known + 1, "{reason}, not {:?}: {packet:x?}", stack.refused());
        assert_eq!(stack.refused().iter().map(|(_, count)| count).sum::<u64>(), before + 1);
    }
    let drops: u64 = router.drops().iter().map(|(_, count)| count).sum();
    assert_eq!(drops, cases.len() as u64);
    assert_eq!(stack.counters.queues.sent.get(), 0);
    assert_eq!(stack.counters.queues.refused.get(), cases.len() as u64);
    // And what it may.
    for good in [packet(own, host, &tcp(80)), packet(six, "2001:db8::99", &tcp(20_255))] {
        stack.send(&good);
        assert_eq!(router.send_of_stacks().len(), 1, "{:?}", stack.refused());
    }
    assert_eq!(stack.counters.queues.sent.get(), 2);
    router.assert_no_buffer_is_out();
}

#[test]
fn each_packet_of_a_burst_is_judged_by_itself() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.steering.lease(stack.id, 20_000, 256).unwrap();
    let (four, six) = (["10.0.0.1", "10.0.0.99"], ["2001:db8::1", "2001:db8::99"]);
    // Nothing of a burst is left for the next.
    for first in [20_000, 20_010] {
        for port in [first, 30_000, first + 1] {
            for [from, to] in [four, six] {
                stack.send(&packet(from, to, &segment((port, 7), Flags::ACK, b"data")));
            }
        }
        stack.send(&packet(four[1], four[0], &segment((first, 7), Flags::ACK, b"data")));
        let sent = router.send_of_stacks();
        let ports = sent.iter().map(|(_, frame)| {
            let version = frame[ETHERNET] >> 4;
            let at = ETHERNET + if version == 4 { 20 } else { 40 };
            (version, u16::from_be_bytes([frame[at], frame[at + 1]]))
        });
        let mut ports: Vec<_> = ports.collect();
        ports.sort_unstable();
        assert_eq!(ports, [(4, first), (4, first + 1), (6, first), (6, first + 1)]);
    }
    assert_eq!(stack.refused(), [("stack-source", 2), ("stack-port", 4)]);
    router.assert_no_buffer_is_out();
}

#[test]
fn two_stacks_of_one_machine_speak_to_each_other() {
    let mut router = Router::with_hosts();
    let (mut server, mut client) = (router.add_stack(), router.add_stack());
    router.listen(&server, Tcp, "0.0.0.0:80", 1).unwrap();
    router.steering.lease(client.id, 20_000, 256).unwrap();
    let opening = packet("10.0.1.1", "10.0.0.1", &segment((20_000, 80), Flags::SYN, &[]));
    client.send(&opening);
    assert_eq!(router.send_of_stacks(), []);
    assert_eq!(server.one(), opening);
    let answer =
        packet("10.0.0.1", "10.0.1.1", &segment((80, 20_000), Flags::SYN | Flags::ACK, &[]));
    server.send(&answer);
    assert_eq!(router.send_of_stacks(), []);
    assert_eq!(
        client.received(),
        [(answer, shm::Meta::default())],
        "its checksum is its own affair"
    );
    // To a port that nobody has: the router itself answers.
    client.send(&packet("10.0.1.1", "10.0.0.1", &segment((20_000, 81), Flags::SYN, &[])));
    assert_eq!(router.send_of_stacks(), []);
    let reset = client.one();
    assert!(Segment::parse(&reset[20..]).unwrap().header.flags().contains(Flags::RST));
    router.assert_no_buffer_is_out();
}

#[test]
fn nothing_in_a_ring_leaves_the_box_or_harms_it() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack_with(256);
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    router.steering.lease(stack.id, 20_000, 256).unwrap();
    let mut seed = 0x1234_5678_9abc_def0_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    const OWN: [&str; 6] =
        ["10.0.0.1", "10.0.1.1", "10.0.2.1", "2001:db8::1", "2001:db8:1::1", "2001:db8:2::1"];
    let good = packet("10.0.0.1", "10.0.0.99", &segment((80, 7), Flags::ACK, b"payload"));
    let good6 = packet("2001:db8::1", "2001:db8::99", &segment((80, 7), Flags::ACK, b"payload"));
    for round in 0..3000 {
        // Noise, and good packets with some bytes of noise.
        let bytes: Vec<u8> = if round % 3 == 0 {
            (0..random() as usize % 1900 + 1).map(|_| random() as u8).collect()
        } else {
            let mut bytes = if round % 3 == 1 { good.clone() } else { good6.clone() };
            for _ in 0..random() % 4 {
                let at = random() as usize % bytes.len();
                bytes[at] = random() as u8;
            }
            let _ = ipv4::write_checksum(&mut bytes);
            bytes.truncate(
                bytes.len() - (random() % 5 / 4) as usize * (random() as usize % bytes.len()),
            );
            bytes
        };
        if bytes.is_empty() {
            continue;
        }
        let meta = shm::Meta { port: random() as u8, flags: random() as u8 & 127 };
        stack.to_daemon.push(&bytes, meta).unwrap();
        for (_, frame) in router.send_of_stacks() {
            let packet = &frame[ETHERNET..];
            let (source, port) = if packet[0] >> 4 == 4 {
                let header = ipv4::Header::parse(packet).unwrap();
                assert!(!header.is_fragment() && !header.has_options());
                (header.source().to_string(), &packet[20..22])
            } else {
                let header = ipv6::Header::parse(packet).unwrap();
                (header.source().to_string(), &packet[40..42])
            };
            assert!(OWN.contains(&source.as_str()), "{source}");
            let port = u16::from_be_bytes([port[0], port[1]]);
            assert!(port == 80 || (20_000..20_256).contains(&port), "{port}");
        }
        stack.received();
        // To hosts that are not known yet.
        while router.punts.pop().is_ok() {}
    }
    assert!(stack.counters.queues.refused.get() > 1000 && stack.counters.queues.sent.get() > 300);
    router.assert_no_buffer_is_out();
}
