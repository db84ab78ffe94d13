//! ICMP errors about packets of translated flows.

use std::net::IpAddr;

use graph::InterfaceId;
use millrace_forward::flow::{Flow, Rewrite};
use wire::build::Payload;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use crate::frames::from;
use crate::router::{self, FLOWS, Router, host, interfaces, mac};
use crate::{error4, error6, link};

/// A router whose flow 10.0.0.99:1111 to 10.11.2.3:2222 leaves by port 1 as 10.0.1.1:4444, and its answers come back; the
/// same for IPv6.
fn with_translated_flow() -> Router {
    let mut router = Router::with_hosts_and(FLOWS);
    let to = |router: &mut Router, tuple, port: u16, rewrite| {
        let (source_mac, destination_mac) = (mac(port as u8), host(port));
        let flow =
            Flow { tuple, egress: InterfaceId::new(port), source_mac, destination_mac, rewrite };
        router.flows.insert(&flow, &interfaces()).unwrap();
    };
    for (inside, outside, remote) in [
        ("10.0.0.99", "10.0.1.1", "10.11.2.3"),
        ("2001:db8::99", "2001:db8:1::1", "2001:db8:11::3"),
    ] {
        let [inside, outside, remote] = [inside, outside, remote].map(router::ip);
        let rewrite =
            Rewrite { source: Some(outside), source_port: Some(4444), ..Rewrite::default() };
        to(&mut router, udp((inside, 1111), (remote, 2222)), 1, rewrite);
        let rewrite = Rewrite {
            destination: Some(inside),
            destination_port: Some(1111),
            ..Rewrite::default()
        };
        to(&mut router, udp((remote, 2222), (outside, 4444)), 0, rewrite);
    }
    router
}

fn udp((source, from): (IpAddr, u16), (destination, to): (IpAddr, u16)) -> FiveTuple {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            FiveTuple::V4(FiveTuple4::new((source, from), (destination, to), Protocol::UDP))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            FiveTuple::V6(FiveTuple6::new((source, from), (destination, to), Protocol::UDP))
        }
        _ => panic!("two families"),
    }
}

#[test]
fn errors_about_translated_packets_go_to_who_sent_them() {
    let mut router = with_translated_flow();
    let frame = from(0, "10.11.2.3").udp(100);
    let (port, sent) = router.forward(0, &frame);
    let header = ipv4::Header::parse(&sent[14..]).unwrap();
    assert_eq!((port, header.source().to_string()), (1, "10.0.1.1".to_owned()));

    let frame = from(0, "10.11.2.3").hops(1).udp(100);
    let (message, quoted) = error4(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv4::Message::TimeExceeded { code: 0 });
    assert_eq!(quoted, frame[14..], "as it came");
    let frame = from(0, "10.11.2.3").dont_fragment().udp(1500);
    let (message, quoted) = error4(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv4::Message::Unreachable { code: 4, mtu: 1500 });
    assert_eq!(quoted, frame[14..14 + 548]);
    let fragments = router.receive(0, &[&from(0, "10.11.2.3").udp(1500)]);
    assert_eq!(fragments.len(), 2, "what is fragmented is translated");
    let header = ipv4::Header::parse(&fragments[0].1[14..]).unwrap();
    assert_eq!(header.source().to_string(), "10.0.1.1");

    let frame = from(0, "2001:db8:11::3").hops(1).udp(100);
    let (message, quoted) = error6(&router.forward(0, &frame), 0);
    assert_eq!((message, &quoted[..]), (icmpv6::Message::TimeExceeded { code: 0 }, &frame[14..]));
    let frame = from(0, "2001:db8:11::3").udp(1460);
    let (message, quoted) = error6(&router.forward(0, &frame), 0);
    assert_eq!(message, icmpv6::Message::PacketTooBig { mtu: 1500 });
    assert_eq!(quoted, frame[14..14 + 1232]);
}

#[test]
fn errors_from_outside_about_translated_packets_reach_who_sent_them() {
    let mut router = with_translated_flow();
    for (destination, on_the_way) in
        [("10.11.2.3", "10.0.1.77"), ("2001:db8:11::3", "2001:db8:1::77")]
    {
        for from_whom in [destination, on_the_way] {
            let frame = from(0, destination).udp(100);
            let outside = router.forward(0, &frame).1;
            let data = &outside[14..];
            let back = from(1, if data[0] >> 4 == 4 { "10.0.1.1" } else { "2001:db8:1::1" });
            let back = back.source(from_whom);
            let error = if data[0] >> 4 == 4 {
                let message = icmpv4::Message::Unreachable { code: 4, mtu: 1400 };
                back.payload(&wire::build::Payload::Icmpv4 { message, data })
            } else {
                let message = icmpv6::Message::PacketTooBig { mtu: 1400 };
                back.payload(&wire::build::Payload::Icmpv6 { message, data })
            };
            let (port, sent) = router.forward(1, &error);
            assert_eq!((port, link(&sent)), (0, (host(0), mac(0))));
            let quoted = match ipv4::Header::parse(&sent[14..]) {
                Ok(header) => {
                    assert_eq!(header.destination().to_string(), "10.0.0.99");
                    assert_eq!(header.source().to_string(), from_whom);
                    icmpv4::Header::parse(&sent[34..]).unwrap().1
                }
                Err(_) => {
                    let header = ipv6::Header::parse(&sent[14..]).unwrap();
                    assert_eq!(IpAddr::V6(header.destination()), router::ip("2001:db8::99"));
                    let (from, to) = (header.source(), header.destination());
                    icmpv6::Header::parse(&sent[54..], from, to).unwrap().1
                }
            };
            // The quoted packet has one hop less than the one that was sent.
            let mut wanted = frame[14..].to_vec();
            match wanted[0] >> 4 {
                4 => ipv4::decrement_ttl(ipv4::Header::checked_mut(&mut wanted).unwrap()).unwrap(),
                _ => wanted[7] -= 1,
            }
            assert_eq!(quoted, wanted);
        }
    }
    // Of who is not in the flow, nothing is translated.
    let sent = router.forward(1, &from(1, "10.0.1.1").udp(10));
    assert_eq!(error4(&sent, 1).0, icmpv4::Message::Unreachable { code: 3, mtu: 0 });
}

#[test]
fn errors_from_inside_about_translated_packets_show_no_inside_address() {
    let mut router = with_translated_flow();
    let ends = [
        ("10.0.0.99", "10.0.0.77", "10.0.1.1", "10.11.2.3"),
        ("2001:db8::99", "2001:db8::77", "2001:db8:1::1", "2001:db8:11::3"),
    ];
    for (host, on_the_way, outside, remote) in ends {
        let answer = Payload::Udp { source_port: 2222, destination_port: 4444, data: &[7; 40] };
        let answer = from(1, outside).source(remote).payload(&answer);
        let (port, inside) = router.forward(1, &answer);
        assert_eq!(port, 0);
        for from_whom in [host, on_the_way] {
            let data = &inside[14..];
            let back = from(0, remote).source(from_whom);
            let error = if data[0] >> 4 == 4 {
                let message = icmpv4::Message::Unreachable { code: 3, mtu: 0 };
                back.payload(&Payload::Icmpv4 { message, data })
            } else {
                let message = icmpv6::Message::Unreachable { code: 4 };
                back.payload(&Payload::Icmpv6 { message, data })
            };
            let (port, sent) = router.forward(0, &error);
            assert_eq!(port, 1);
            let (ends, quoted) = match ipv4::Header::parse(&sent[14..]) {
                Ok(header) => {
                    let ends: (IpAddr, IpAddr) =
                        (header.source().into(), header.destination().into());
                    (ends, icmpv4::Header::parse(&sent[34..]).unwrap().1)
                }
                Err(_) => {
                    let header = ipv6::Header::parse(&sent[14..]).unwrap();
                    let (from, to) = (header.source(), header.destination());
                    let quoted = icmpv6::Header::parse(&sent[54..], from, to).unwrap().1;
                    ((from.into(), to.into()), quoted)
                }
            };
            assert_eq!(ends, (router::ip(outside), router::ip(remote)), "from {from_whom}");
            // As the answer was, with one hop less.
            let mut wanted = answer[14..].to_vec();
            match wanted[0] >> 4 {
                4 => ipv4::decrement_ttl(ipv4::Header::checked_mut(&mut wanted).unwrap()).unwrap(),
                _ => wanted[7] -= 1,
            }
            assert_eq!(quoted, wanted);
        }
    }
    router.assert_no_buffer_is_out();
}
