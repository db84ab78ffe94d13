//! What comes for a stack reaches it, and nobody else.

use graph::{Reason, Served as _};
use millrace_forward::steering::ServedFrames;
use shm::session::TransportProtocol::{Tcp, Udp};
use wire::build::Payload;
use wire::tcp::{Flags, Segment};
use wire::{icmpv4, ipv4};

use crate::frames::from;
use crate::router::{self, Router};
use crate::stack::{packet, segment};
use crate::{ETHERNET, cut, syn};

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
