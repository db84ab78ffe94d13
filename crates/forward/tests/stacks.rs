//! Stacks beside the router, through the whole graph: frames in, rings out; rings in, frames out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;
#[path = "router/stack.rs"]
mod stack;

use frames::from;
use graph::{InterfaceId, Reason, Served as _};
use millrace_forward::rib::{Change, Route, Target};
use millrace_forward::state::{DEFAULT_VRF, Settings};
use millrace_forward::steering::ServedFrames;
use millrace_forward::{Cause, nodes};
use router::Router;
use shm::session::TransportProtocol::{Tcp, Udp};
use stack::{packet, segment};
use wire::build::Payload;
use wire::tcp::{Flags, Segment};
use wire::{icmpv4, ipv4, ipv6};

const ETHERNET: usize = 14;

fn syn(port: u16) -> Payload<'static> {
    segment((port, 80), Flags::SYN, &[])
}

#[test]
fn a_syn_and_its_answer_pass_between_the_network_and_a_stack() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    for (own, host) in [("10.0.0.1", "10.0.0.99"), ("2001:db8::1", "2001:db8::99")] {
        // A short one is padded on the wire.
        let mut frame = from(0, own).payload(&syn(1111));
        let packet_in = frame[ETHERNET..].to_vec();
        frame.resize(frame.len().max(60), 0);
        assert_eq!(router.receive(0, &[&frame]), []);
        assert_eq!(stack.one(), packet_in, "from the IP header on, without padding");
        let answer = packet(own, host, &segment((80, 1111), Flags::SYN | Flags::ACK, &[]));
        stack.send(&answer);
        let sent = router.send_of_stacks();
        assert_eq!(sent.len(), 1, "{:?}", router.drops());
        let (port, frame) = &sent[0];
        assert_eq!((*port, &frame[ETHERNET..]), (0, &answer[..]), "as it was, hop count included");
        assert_eq!(frame[..6], router::host(0).octets());
    }
    assert_eq!(router.drops(), []);
    let queues = &stack.counters.queues;
    assert_eq!((queues.delivered.get(), queues.sent.get()), (2, 2));
    assert_eq!(queues.delivered_bytes.get(), 40 + 60);
    assert_eq!(queues.sent_bytes.get(), 40 + 60);
    router.assert_no_buffer_is_out();
}

#[test]
fn datagrams_and_answers_to_what_a_stack_opened_reach_it() {
    let mut router = Router::with_hosts();
    let (mut server, mut client) = (router.add_stack(), router.add_stack());
    router.listen(&server, Udp, "10.0.0.1:2222", 1).unwrap();
    router.steering.lease(client.id, 20_000, 256).unwrap();
    let datagram = from(0, "10.0.0.1").udp(20);
    let answer = from(0, "10.0.0.1").payload(&segment((443, 20_255), Flags::ACK, b"hello"));
    let beside = from(0, "10.0.0.1").payload(&segment((443, 20_256), Flags::RST, &[]));
    let elsewhere = from(0, "10.0.1.1").udp(20);
    router.receive(0, &[&datagram, &answer, &beside]);
    assert_eq!(server.one(), datagram[ETHERNET..]);
    assert_eq!(client.one(), answer[ETHERNET..]);
    assert_eq!(router.dropped(Reason::ResetNotAllowed), 1);
    // The listener is of one address.
    assert_eq!(router.receive(0, &[&elsewhere]).len(), 1, "ICMP: port unreachable");
    assert_eq!(server.received(), []);
    router.assert_no_buffer_is_out();
}

#[test]
fn nobody_home_is_said_with_a_reset() {
    let mut router = Router::with_hosts();
    for own in ["10.0.0.1", "2001:db8::1"] {
        let cases = [
            (Flags::SYN, &b""[..], (0, 1001, Flags::RST | Flags::ACK)),
            (Flags::SYN | Flags::FIN, b"abc", (0, 1005, Flags::RST | Flags::ACK)),
            (Flags(0), b"abcd", (0, 1004, Flags::RST | Flags::ACK)),
            (Flags::ACK, b"abcd", (2000, 0, Flags::RST)),
            (Flags::SYN | Flags::ACK, b"", (2000, 0, Flags::RST)),
        ];
        for (flags, data, expected) in cases {
            let (port, frame) =
                router.forward(0, &from(0, own).hops(3).payload(&segment((7, 9), flags, data)));
            let packet = &frame[ETHERNET..];
            let (tcp, hops, intact) = if let Ok(header) = ipv4::Header::parse(packet) {
                let pseudo = wire::checksum::Sum::new().pseudo_v4(
                    header.source(),
                    header.destination(),
                    header.protocol(),
                    20,
                );
                let segment = Segment::parse(&packet[20..]).unwrap();
                (segment, header.ttl(), segment.is_intact(pseudo))
            } else {
                let header = ipv6::Header::parse(packet).unwrap();
                let (from, to) = (header.source(), header.destination());
                let pseudo =
                    wire::checksum::Sum::new().pseudo_v6(from, to, wire::Protocol::TCP, 20);
                let segment = Segment::parse(&packet[40..]).unwrap();
                (segment, header.hop_limit(), segment.is_intact(pseudo))
            };
            let said = (tcp.header.sequence(), tcp.header.acknowledgment(), tcp.header.flags());
            assert_eq!((port, said, hops, intact), (0, expected, 64, true), "{flags:?}");
            assert_eq!((tcp.header.source_port(), tcp.header.destination_port()), (9, 7));
            assert_eq!(packet.len(), if own.contains(':') { 60 } else { 40 });
        }
        router.expect_drop(
            0,
            &from(0, own).payload(&segment((7, 9), Flags::RST | Flags::ACK, &[])),
            Reason::ResetNotAllowed,
        );
        let mut broken = from(0, own).payload(&segment((7, 9), Flags::SYN, b"x"));
        *broken.last_mut().unwrap() ^= 1;
        router.expect_drop(0, &broken, Reason::TcpMalformed);
        let mut short = from(0, own).raw(6, &[0; 19]);
        router.expect_drop(0, &short, Reason::TcpMalformed);
        short = from(0, own).raw(6, &[0xf0; 40]);
        router.expect_drop(0, &short, Reason::TcpMalformed);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn nothing_is_said_to_a_group_or_in_its_name() {
    let mut router = Router::with_hosts();
    // Martians would not come as far as this.
    let settings = Settings { martians: false, ..**router.state.settings.load() };
    router.state.settings.store(std::sync::Arc::new(settings));
    for source in ["224.0.0.5", "255.255.255.255", "127.0.0.1", "0.0.0.0", "240.0.0.1"] {
        let frame = from(0, "10.0.0.1").source(source).payload(&syn(7));
        router.expect_drop(0, &frame, Reason::ResetNotAllowed);
    }
    for source in ["ff02::1", "::1"] {
        let frame = from(0, "2001:db8::1").source(source).payload(&syn(7));
        router.expect_drop(0, &frame, Reason::ResetNotAllowed);
    }
}

#[test]
fn after_a_reload_old_flows_stay_and_new_ones_go_to_the_new_stack() {
    let mut router = Router::with_hosts();
    let (mut old, mut new) = (router.add_stack(), router.add_stack());
    let listener = router.listen(&old, Tcp, "0.0.0.0:80", 1).unwrap();
    old.claim(Tcp, "10.0.0.1:80", "10.0.0.99:7");
    router.listen(&new, Tcp, "0.0.0.0:80", 1).unwrap();
    router.steering.unlisten(old.id, listener).unwrap();
    let frame = |port, flags| from(0, "10.0.0.1").payload(&segment((port, 80), flags, b"x"));
    let (data, other) = (frame(7, Flags::ACK), frame(8, Flags::ACK));
    let (again, answer) = (frame(7, Flags::SYN), frame(7, Flags::SYN | Flags::ACK));
    assert_eq!(router.receive(0, &[&data, &other, &again, &answer]), []);
    let at = |frame: &[u8]| frame[ETHERNET..].to_vec();
    let packets = |all: Vec<(Vec<u8>, shm::Meta)>| all.into_iter().map(|(one, _)| one).collect();
    let (olds, news): (Vec<_>, Vec<_>) = (packets(old.received()), packets(new.received()));
    assert_eq!(olds, [at(&data), at(&answer)]);
    assert_eq!(news, [at(&other), at(&again)], "who opens a flow comes to who serves now");
    // What it still has, it may answer.
    let answer = packet("10.0.0.1", "10.0.0.99", &segment((80, 7), Flags::ACK, b"y"));
    old.send(&answer);
    assert_eq!(router.send_of_stacks().len(), 1);
}

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
fn resets_have_a_rate() {
    let mut router = Router::with_hosts();
    let frame = from(0, "10.0.0.1").payload(&syn(7));
    let mut sent = 0;
    for _ in 0..8 {
        sent += router.receive(0, &[&frame[..]; 32]).len();
    }
    // A tenth of a second's worth of 1,000 a second, and 8 milliseconds.
    assert!((100..=108).contains(&sent), "{sent}");
    assert_eq!(router.dropped(Reason::ResetRateLimited), 256 - sent as u64);
    router.assert_no_buffer_is_out();
}

#[test]
fn a_reset_leaves_by_the_link_where_the_sender_is_link_local() {
    let mut router = Router::with_hosts();
    let own = router::mac(0).link_local().to_string();
    let stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    let frame = from(0, &own).source("fe80::99").payload(&syn(7));
    let (port, frame) = router.forward(0, &frame);
    assert_eq!((port, &frame[..6]), (0, &router::host(0).octets()[..]));
    let segment = Segment::parse(&frame[ETHERNET + 40..]).unwrap();
    assert!(segment.header.flags().contains(Flags::RST), "no stack knows which link it would be");
}

#[test]
fn a_packet_whose_route_leads_on_is_for_no_stack() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    let whole = from(0, "2001:db8::1").payload(&syn(7));
    let routed = |left: u8| {
        let header = [6, 0, 0, left, 0, 0, 0, 0];
        from(0, "2001:db8::1").raw(43, &[&header[..], &whole[ETHERNET + 40..]].concat())
    };
    assert_eq!(router.receive(0, &[&routed(0)]), []);
    assert_eq!(stack.one(), routed(0)[ETHERNET..]);
    let (_, told) = router.forward(0, &routed(1));
    assert_eq!(told[ETHERNET + 40..ETHERNET + 42], [4, 0], "a parameter problem");
    assert_eq!(stack.received(), []);
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
fn a_syn_waits_for_a_server_that_has_yet_to_come() {
    let mut router = Router::with_hosts();
    let old = router.add_stack();
    let listener = router.listen(&old, Tcp, "[::]:80", 1).unwrap();
    router.steering.set_vacant(listener, true);
    router.end_stack(&old);
    let (four, six) =
        (from(0, "10.0.0.1").payload(&syn(7)), from(0, "2001:db8::1").payload(&syn(7)));
    assert_eq!(router.receive(0, &[&four, &six]), []);
    let waiting: Vec<_> = std::iter::from_fn(|| router.punts.pop().ok()).collect();
    assert_eq!(waiting.len(), 2, "{:?}", router.drops());
    assert!(waiting.iter().all(|punt| punt.cause == Cause::Early as u16));
    assert_eq!(router.drops(), []);
    // Of a connection that is over: the router answers.
    let late = from(0, "10.0.0.1").payload(&segment((7, 80), Flags::ACK, &[]));
    assert_eq!(router.receive(0, &[&late]).len(), 1);
    let mut new = router.add_stack();
    router.listen(&new, Tcp, "[::]:80", 1).unwrap();
    for (punt, frame) in waiting.into_iter().zip([four, six]) {
        assert_eq!(router.inject(punt.packet, nodes::RELEASED), []);
        assert_eq!(new.one(), frame[ETHERNET..]);
    }
    router.assert_no_buffer_is_out();
}

#[test]
fn no_more_syns_wait_than_would_be_reset() {
    let mut router = Router::with_hosts();
    let old = router.add_stack();
    let listener = router.listen(&old, Tcp, "[::]:80", 1).unwrap();
    router.steering.set_vacant(listener, true);
    router.end_stack(&old);
    let settings = Settings { icmp_rate: 3, ..**router.state.settings.load() };
    router.state.settings.store(std::sync::Arc::new(settings));
    let frame = from(0, "10.0.0.1").payload(&syn(7));
    let frames: Vec<&[u8]> = (0..100).map(|_| &frame[..]).collect();
    assert_eq!(router.receive(0, &frames), []);
    let waiting: Vec<_> = std::iter::from_fn(|| router.punts.pop().ok()).collect();
    assert_eq!(waiting.len() as u64 + router.dropped(Reason::LocalPort), 100);
    assert!((1..50).contains(&waiting.len()), "{}", waiting.len());
    drop(waiting);
    router.assert_no_buffer_is_out();
}

#[test]
fn a_packet_from_a_network_is_not_from_this_router() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    let spoofed = from(0, "10.0.0.1").source("10.0.1.1").payload(&syn(7));
    router.expect_drop(0, &spoofed, Reason::Ip4MartianSource);
    let spoofed = from(0, "2001:db8::1").source("2001:db8:1::1").payload(&syn(7));
    router.expect_drop(0, &spoofed, Reason::Ip6MartianSource);
    let parts = cut(
        &from(0, "10.0.0.1").source("10.0.1.1").payload(&segment((7, 80), Flags::SYN, &[1; 900])),
        512,
    );
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    assert_eq!(router.receive(0, &parts), []);
    assert_eq!(router.dropped(Reason::Ip4MartianSource), 2);
    assert_eq!(stack.received(), []);
    router.assert_no_buffer_is_out();
}

#[test]
fn errors_about_a_stacks_packets_reach_it() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.steering.lease(stack.id, 20_000, 256).unwrap();
    let lost = packet("10.0.0.1", "10.10.0.9", &segment((20_000, 80), Flags::ACK, b"12345678"));
    let message = icmpv4::Message::Unreachable { code: 4, mtu: 1400 };
    let error = from(0, "10.0.0.1").payload(&Payload::Icmpv4 { message, data: &lost[..28] });
    assert_eq!(router.receive(0, &[&error]), []);
    assert_eq!(stack.one(), error[ETHERNET..]);
    // About a packet that was not ours, or with a broken checksum.
    let stranger = packet("10.0.1.1", "10.10.0.9", &segment((20_000, 80), Flags::ACK, b"12345678"));
    let about = from(0, "10.0.0.1").payload(&Payload::Icmpv4 { message, data: &stranger[..28] });
    router.expect_drop(0, &about, Reason::IcmpUnhandled);
    let mut broken = error.clone();
    broken[ETHERNET + 27] ^= 1;
    router.expect_drop(0, &broken, Reason::IcmpMalformed);
    // IPv6, from this router itself: no route there.
    let lost = packet("2001:db8::1", "2001:db9::9", &segment((20_000, 80), Flags::ACK, &[]));
    stack.send(&lost);
    assert_eq!(router.send_of_stacks(), []);
    let error = stack.one();
    assert_eq!((error[40], &error[48..]), (1, &lost[..]));
    // Longer than the way out takes.
    let long =
        packet("2001:db8::1", "2001:db8::99", &segment((20_000, 80), Flags::ACK, &[7; 1500]));
    stack.send(&long);
    assert_eq!(router.send_of_stacks(), []);
    let error = stack.one();
    assert_eq!((error[40], &error[44..48]), (2, &1500_u32.to_be_bytes()[..]), "packet too big");
    assert_eq!(stack.received(), []);
    router.assert_no_buffer_is_out();
}

#[test]
fn the_kernel_gets_what_no_stack_has() {
    let mut router = Router::with_hosts();
    let stack = router.add_stack();
    router.listen(&stack, Tcp, "[::]:80", 1).unwrap();
    let served = ServedFrames::new(router.state.clone(), router.steering.reader());
    for (own, others) in [("10.0.0.1", "10.0.0.5"), ("2001:db8::1", "2001:db8::5")] {
        assert!(served.serves(&from(0, own).payload(&syn(7))));
        assert!(served.serves(&from(0, own).vlan(5).payload(&syn(7))));
        assert!(!served.serves(&from(0, own).payload(&segment((7, 81), Flags::SYN, &[]))));
        assert!(!served.serves(&from(0, own).udp(20)));
        assert!(!served.serves(&from(0, others).payload(&syn(7))), "not the router's address");
    }
    let mut foreign = from(0, "10.0.0.1").payload(&syn(7));
    foreign[12..14].copy_from_slice(&[0x88, 0xcc]);
    assert!(!served.serves(&foreign) && !served.serves(&foreign[..13]));
}

#[test]
fn a_full_ring_costs_its_stack_and_nobody_else() {
    let mut router = Router::with_hosts();
    let (mut slow, mut quick) = (router.add_stack_with(8), router.add_stack());
    router.listen(&slow, Tcp, "10.0.0.1:80", 1).unwrap();
    router.listen(&quick, Tcp, "10.0.0.1:81", 1).unwrap();
    let to_slow = from(0, "10.0.0.1").payload(&syn(7));
    let to_quick = from(0, "10.0.0.1").payload(&segment((7, 81), Flags::SYN, &[]));
    let frames: Vec<&[u8]> = (0..12).flat_map(|_| [&to_slow[..], &to_quick[..]]).collect();
    assert_eq!(router.receive(0, &frames), []);
    assert_eq!((slow.received().len(), quick.received().len()), (8, 12));
    assert_eq!(router.dropped(Reason::StackFull), 4);
    assert_eq!(slow.counters.queues.full.get(), 4);
    router.assert_no_buffer_is_out();
}

#[test]
fn when_a_stack_has_ended_its_peers_are_told() {
    let mut router = Router::with_hosts();
    let mut stack = router.add_stack();
    router.listen(&stack, Tcp, "10.0.0.1:80", 1).unwrap();
    let data = from(0, "10.0.0.1").payload(&segment((7, 80), Flags::ACK, b"hello"));
    assert_eq!(router.receive(0, &[&data]), []);
    assert_eq!(stack.received().len(), 1);
    router.end_stack(&stack);
    let (_, frame) = router.forward(0, &data);
    let reset = Segment::parse(&frame[ETHERNET + 20..]).unwrap().header;
    assert_eq!((reset.flags(), reset.sequence()), (Flags::RST, 2000));
    // A new stack at its place has nothing to do with it.
    let mut next = router.add_stack();
    assert_eq!((next.id.place(), next.id == stack.id), (stack.id.place(), false));
    router.forward(0, &data);
    assert_eq!(next.received(), []);
    assert_eq!(router.listen(&stack, Tcp, "10.0.0.1:80", 1).ok(), None);
    router.assert_no_buffer_is_out();
}

/// A frame's fragments, of `size` bytes of payload each.
fn cut(frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (link, packet) = frame.split_at(ETHERNET);
    let (header, payload) = packet.split_at(20);
    let count = payload.len().div_ceil(size);
    let part = |(at, chunk): (usize, &[u8])| {
        let mut header = header.to_vec();
        let fixed = ipv4::Header::peek_mut(&mut header).unwrap();
        fixed.set_fragment(false, at + 1 < count, (at * size / 8) as u16);
        fixed.set_total_length((20 + chunk.len()) as u16);
        ipv4::write_checksum(&mut header).unwrap();
        [link, &header, chunk].concat()
    };
    payload.chunks(size).enumerate().map(part).collect()
}

#[test]
fn fragments_reach_a_stack_as_the_datagram_that_they_were() {
    let mut router = Router::with_hosts();
    let (mut stack, mut small) = (router.add_stack(), router.add_stack_with(4));
    router.listen(&stack, Udp, "10.0.0.1:2222", 1).unwrap();
    router.listen(&small, Udp, "10.0.1.1:2222", 1).unwrap();
    // The datagram itself is longer than any buffer.
    for length in [1000, 8900] {
        let frame = from(0, "10.0.0.1").udp(length);
        let parts = cut(&frame, 800);
        let (last, first) = parts.split_last().unwrap();
        let first: Vec<&[u8]> = first.iter().rev().map(Vec::as_slice).collect();
        assert_eq!(router.receive(0, &first), []);
        assert_eq!(stack.received(), [], "not before it is whole");
        assert_eq!(router.receive(0, &[last]), []);
        let got = stack.one();
        assert_eq!(got[20..], frame[ETHERNET + 20..]);
        let header = ipv4::Header::parse(&got).unwrap();
        assert_eq!((header.is_fragment(), usize::from(header.total_length())), (false, got.len()));
    }
    // Longer than half of a ring: it can't go.
    let parts = cut(&from(0, "10.0.1.1").udp(8000), 800);
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    assert_eq!(router.receive(0, &parts), []);
    assert_eq!((small.received().len(), router.dropped(Reason::StackFull)), (0, 1));
    assert_eq!(small.counters.queues.full.get(), 1);
    // TCP in fragments to nobody is reset like any other.
    let parts = cut(&from(0, "10.0.0.1").payload(&segment((7, 9), Flags::SYN, &[5; 3000])), 800);
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let sent = router.receive(0, &parts);
    let reset = Segment::parse(&sent[0].1[ETHERNET + 20..]).unwrap().header;
    assert_eq!((sent.len(), reset.acknowledgment()), (1, 1000 + 3001));
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
