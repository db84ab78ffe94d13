//! Feature arcs: who goes through the features of an interface, and where packets go on behind them.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "router/frames.rs"]
mod frames;
mod router;

use std::net::Ipv4Addr;

use frames::{FrameBuilder, from};
use graph::{InterfaceId, Reason};
use millrace_forward::rib::{Change, Miss, Route, Target};
use millrace_forward::state::{
    Bridge, BridgeMember, DEFAULT_VRF, Features, Interface, Interfaces, Mode,
};
use router::{PORTS, Router, host, interface, interfaces, mac, prefix_of, routes};
use wire::build::Payload;
use wire::ipv4;
use wire::tcp::{Fields, Flags};

/// What TCP may ask for where there is a limit, over IPv4 and IPv6.
const MOST: [u16; 2] = [1400, 1380];
/// VLAN of port 1.
const VLAN: u16 = 100;
/// Interfaces behind the ports: the VLAN, and the IP interface of a bridge that port 2 is a member of.
const SUB: u16 = PORTS;
const SWITCHED: u16 = PORTS + 1;

/// A segment that asks for so much.
fn segment(frame: FrameBuilder, flags: Flags, size: u16) -> Vec<u8> {
    let fields = Fields {
        source_port: 1111,
        destination_port: 80,
        sequence: 7,
        acknowledgment: 0,
        flags,
        window: 65_535,
    };
    let [high, low] = size.to_be_bytes();
    // The option lies at an odd offset.
    let options = [1, 2, 4, high, low, 4, 2, 1];
    frame.payload(&Payload::Tcp { fields, options: &options, data: &[] })
}

fn syn(frame: FrameBuilder, size: u16) -> Vec<u8> {
    segment(frame, Flags::SYN, size)
}

/// The TCP header and options at the end of a frame.
fn tcp(frame: &[u8]) -> &[u8] {
    &frame[frame.len() - 28..]
}

/// Routes to 10.1N.0.0/16 and 2001:db8:1N::/48 through port N, to 10.5.0.0/16 and 2001:db8:5::/48 through the VLAN, and to
/// 10.6.0.0/16 and 2001:db8:6::/48 through the bridge. Interfaces in `limited` have the feature.
fn router(limited: &[u16]) -> Router {
    let mut all = interfaces();
    let sub = Interface {
        name: "sub".to_owned(),
        vlan: Some(VLAN),
        addresses4: vec![(Ipv4Addr::new(10, 0, 50, 1), 24)],
        ..interface(1)
    };
    let ip =
        Interface { name: "br0".to_owned(), port: None, mode: Mode::BridgeIp(0), ..interface(9) };
    all.list.extend([Some(sub), Some(ip)]);
    all.ports[1].vlans.push((VLAN, InterfaceId::new(SUB)));
    all.bridges.push(Bridge {
        name: "br0".to_owned(),
        members: vec![BridgeMember {
            interface: InterfaceId::new(2),
            vlans: Vec::new(),
            untagged: None,
        }],
        ip: Some(InterfaceId::new(SWITCHED)),
        ip_vlan: 1,
        ageing: 300,
        mac_limit: 8,
        vlan_filtering: false,
        flood_rate: 0,
    });
    all.list[2].as_mut().unwrap().mode = Mode::Member { bridge: 0, member: 0 };
    limit(&mut all, limited);
    let mut router = Router::new(Miss::Unreachable, all.clone());
    let beyond = [(0, host(0)), (1, host(1)), (SUB, host(1)), (SWITCHED, host(2))]
        .map(|(interface, mac)| (InterfaceId::new(interface), mac));
    router.rib.set_interfaces(&all, &beyond.into_iter().collect());
    let more =
        [(SUB, ["10.5.0.0/16", "2001:db8:5::/48"]), (SWITCHED, ["10.6.0.0/16", "2001:db8:6::/48"])];
    let more = more.into_iter().flat_map(|(id, prefixes)| {
        prefixes.map(|prefix| {
            Route::of_static(DEFAULT_VRF, prefix_of(prefix), Target::Port(InterfaceId::new(id)))
        })
    });
    // Those through port 2, which is no routed one, are left out.
    router.rib.apply(&routes()[..4]).unwrap();
    router.rib.apply(&more.map(Change::Add).collect::<Vec<_>>()).unwrap();
    router
}

fn limit(all: &mut Interfaces, limited: &[u16]) {
    for (id, interface) in (0..).zip(&mut all.list) {
        let tcp_mss = limited.contains(&id).then_some(MOST[0]);
        interface.as_mut().unwrap().features = Features { tcp_mss };
    }
}

/// Packets that a node has had.
fn seen(router: &Router, node: &str) -> u64 {
    router.counters.nodes[router.graph.find(node).unwrap().0 as usize].packets.get()
}

/// How a packet comes in, and by which interface.
type WayIn = (u16, u16, fn(FrameBuilder) -> FrameBuilder);

const WAYS_IN: [WayIn; 3] = [
    (0, 0, |frame| frame),
    (1, SUB, |frame| frame.vlan(VLAN)),
    (2, SWITCHED, |frame| frame.toward(mac(9))),
];
/// Where packets to that leave: the port, whether with a tag, and by which interface.
const WAYS_OUT: [(&str, &str, u16, bool, u16); 3] = [
    ("10.11.2.3", "2001:db8:11::3", 1, false, 1),
    ("10.5.2.3", "2001:db8:5::3", 1, true, SUB),
    ("10.6.2.3", "2001:db8:6::3", 2, false, SWITCHED),
];

#[test]
fn packets_pass_the_features_of_both_their_interfaces_and_no_others() {
    for limited in [vec![], vec![0], vec![1], vec![SUB], vec![SWITCHED], vec![1, SUB, SWITCHED]] {
        let mut router = router(&limited);
        let mut passes = [0, 0];
        for (port, ingress, way) in WAYS_IN {
            for (to4, to6, egress_port, tagged, egress) in WAYS_OUT {
                for (to, most) in [to4, to6].into_iter().zip(MOST) {
                    let on = [ingress, egress].map(|id| limited.contains(&id));
                    for size in [most - 1, most, most + 1, 9000] {
                        let (sent_by, sent) = router.forward(port, &syn(way(from(port, to)), size));
                        let about = format!("{limited:?}: {ingress} to {egress}, {to}, {size}");
                        let length = if tagged { 18 } else { 14 };
                        let ip = if to.contains(':') { 40 } else { 20 };
                        assert_eq!(
                            (sent_by, sent.len()),
                            (egress_port, length + ip + 28),
                            "{about}"
                        );
                        let expected = if on.contains(&true) { size.min(most) } else { size };
                        assert_eq!(tcp(&sent), tcp(&syn(from(port, to), expected)), "{about}");
                        for (passes, on) in passes.iter_mut().zip(on) {
                            *passes += u64::from(on);
                        }
                    }
                }
            }
        }
        let arcs = ["input-features", "output-features"].map(|node| seen(&router, node));
        assert_eq!(arcs, passes, "{limited:?}");
        assert_eq!(["tcp-mss-input", "tcp-mss-output"].map(|node| seen(&router, node)), passes);
        router.assert_no_buffer_is_out();
    }
}

#[test]
fn what_asks_for_nothing_is_left_alone() {
    let mut router = router(&[0, 1]);
    for to in ["10.11.2.3", "2001:db8:11::3"] {
        for frame in [
            segment(from(0, to), Flags::ACK, 9000),
            from(0, to).udp(100),
            from(0, to).echo(100),
            from(0, to).raw(6, &[0xff; 19]),
            // A header that says that it is longer than the packet.
            from(0, to).raw(6, &[0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0xf0, 2, 0, 0, 0, 0, 0, 0]),
            from(0, to).raw(6, &[]),
        ] {
            let (_, sent) = router.forward(0, &frame);
            let ip = if to.contains(':') { 54 } else { 34 };
            assert_eq!(sent[ip..], frame[ip..], "{to}");
        }
    }
    // Its data look like a SYN.
    let mut later = syn(from(0, "10.11.2.3"), 9000);
    let header = ipv4::Header::peek_mut(&mut later[14..]).unwrap();
    header.set_fragment(false, false, 100);
    ipv4::write_checksum(&mut later[14..]).unwrap();
    let (_, sent) = router.forward(0, &later);
    assert_eq!(tcp(&sent), tcp(&later));
}

#[test]
fn packets_that_are_checked_at_length_pass_too() {
    let mut router = router(&[0]);
    let options = {
        let plain = syn(from(0, "10.11.2.3"), 9000);
        let mut frame = [&plain[..34], &[1, 1, 1, 0], &plain[34..]].concat();
        frame[14] = 0x46;
        frame[17] += 4;
        ipv4::write_checksum(&mut frame[14..]).unwrap();
        frame
    };
    let (_, sent) = router.forward(0, &options);
    assert_eq!(tcp(&sent), tcp(&syn(from(0, "10.11.2.3"), MOST[0])));
    assert_eq!((seen(&router, "ip4-input"), seen(&router, "tcp-mss-input")), (1, 1));
    // For the router itself, by its address and as one of a group.
    router.receive(0, &[&from(0, "10.0.0.1").echo(8)]);
    let group = from(0, "ff02::1").toward("33:33:00:00:00:01".parse().unwrap());
    router.receive(0, &[&group.echo(8)]);
    assert_eq!((seen(&router, "ip-local"), seen(&router, "tcp-mss-input")), (2, 3));
    // What is not sound does not get that far.
    let martian = from(0, "10.11.2.3").source("127.0.0.1").udp(9);
    router.expect_drop(0, &martian, Reason::Ip4MartianSource);
    assert_eq!(seen(&router, "input-features"), 3);
}

#[test]
fn one_vector_is_sorted_by_interface() {
    let mut router = router(&[SUB]);
    let to = "10.11.2.3";
    let frames = [syn(from(1, to), 9000), syn(from(1, to).vlan(VLAN), 9000)];
    let [plain, tagged] = frames.each_ref().map(Vec::as_slice);
    let sent = router.receive(1, &[plain, tagged, tagged, plain, tagged]);
    let mut limited: Vec<bool> =
        sent.iter().map(|(_, frame)| tcp(frame) == tcp(&syn(from(1, to), MOST[0]))).collect();
    limited.sort_unstable();
    assert_eq!(limited, [false, false, true, true, true]);
}

#[test]
fn fragments_pass_one_by_one_and_keep_their_header() {
    let mut router = router(&[1]);
    let mut all = (**router.state.interfaces.load()).clone();
    all.list[1].as_mut().unwrap().mtu = 576;
    router.set_interfaces(all.clone());
    router.rib.set_interfaces(&all, &[(InterfaceId::new(1), host(1))].into_iter().collect());
    let sent = router.receive(0, &[&from(0, "10.11.2.3").udp(1000)]);
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(port, frame)| *port == 1 && frame[..6] == host(1).octets()));
    assert_eq!((seen(&router, "output-features"), seen(&router, "port-output")), (2, 2));
}

#[test]
fn features_come_and_go_while_packets_do() {
    let mut router = router(&[]);
    let frame = syn(from(0, "10.11.2.3"), 9000);
    let expected = [9000, MOST[0]].map(|size| tcp(&syn(from(0, "10.11.2.3"), size)).to_vec());
    for (round, limited) in
        [vec![], vec![1], vec![], vec![0], vec![0, 1], vec![]].iter().enumerate()
    {
        let mut all = (**router.state.interfaces.load()).clone();
        limit(&mut all, limited);
        let set = |router: &mut Router| router.set_interfaces(all.clone());
        // Packets meet either in force first.
        if round % 2 == 0 {
            set(&mut router);
        }
        let (port, _) = router.forward(0, &frame);
        assert_eq!(port, 1);
        router.rib.set_interfaces(
            &all,
            &[(InterfaceId::new(0), host(0)), (InterfaceId::new(1), host(1))].into_iter().collect(),
        );
        let (port, _) = router.forward(0, &frame);
        assert_eq!(port, 1);
        set(&mut router);
        let (_, sent) = router.forward(0, &frame);
        assert_eq!(tcp(&sent), expected[usize::from(!limited.is_empty())], "{limited:?}");
    }
}
