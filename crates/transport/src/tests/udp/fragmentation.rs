//! Datagrams that a link of the path does not take whole.

use super::super::pair::icmp_unreachable;
use super::*;

/// A connected socket of the client, with the packets that it sends.
struct Sender {
    hosts: Hosts,
    id: UdpId,
}

impl Sender {
    fn new(fragmentation: Fragmentation) -> Self {
        let mut hosts = Hosts::new();
        let options = UdpOptions { fragmentation, ..UdpOptions::default() };
        let id = hosts.stacks[CLIENT].udp_bind(v4(CLIENT, 7), &options).unwrap();
        hosts.stacks[CLIENT].udp_connect(id, v4(CLIENT, 0).ip(), v4(SERVER, 7)).unwrap();
        Self { hosts, id }
    }

    /// Sends so many bytes. Gives the packet.
    fn send(&mut self, length: usize) -> Result<Vec<u8>, UdpError> {
        let (mut list, data) = (PacketList::default(), vec![0; length]);
        self.hosts.stacks[CLIENT].udp_send(1, self.id, &Message::new(&data), &mut list)?;
        assert_eq!(list.packets.len(), 1);
        Ok(list.packets.remove(0))
    }

    fn learn(&mut self, original: &[u8], mtu: u16) {
        self.hosts.hand_over(CLIENT, &[icmp_unreachable(&original[..28], 4, mtu)]);
    }
}

/// Whether routers may cut a packet.
fn may_be_cut(packet: &[u8]) -> bool {
    packet[6] & 0x40 == 0
}

#[test]
fn a_narrow_path_is_learned() {
    let mut sender = Sender::new(Fragmentation::Refused);
    assert_eq!(sender.send(1473), Err(UdpError::TooLong { length: 1473, most: 1472 }));
    let original = sender.send(1472).unwrap();
    assert_eq!((original.len(), may_be_cut(&original)), (1500, false));
    sender.learn(&original, 1400);
    assert_eq!(sender.hosts.stacks[CLIENT].path_mtu(v4(SERVER, 0).ip()), 1400);
    assert_eq!(sender.send(1), Err(UdpError::Trouble(UdpTrouble::TooBig(1400))));
    assert_eq!(sender.send(1400), Err(UdpError::TooLong { length: 1400, most: 1372 }));
}

#[test]
fn what_the_path_does_not_take_may_be_cut_the_rest_may_not() {
    let mut sender = Sender::new(Fragmentation::BeyondPath);
    let original = sender.send(1472).unwrap();
    assert!(!may_be_cut(&original));
    let long = sender.send(1473).unwrap();
    assert!(may_be_cut(&long) && long.len() == 1501);
    sender.learn(&original, 1400);
    assert_eq!(sender.send(1), Err(UdpError::Trouble(UdpTrouble::TooBig(1400))));
    assert!(may_be_cut(&sender.send(1373).unwrap()));
    assert!(!may_be_cut(&sender.send(1372).unwrap()));
    assert_eq!(sender.send(65_507).unwrap().len(), 65_535);
    assert_eq!(sender.send(65_508), Err(UdpError::TooLong { length: 65_508, most: 65_507 }));
}

#[test]
fn what_goes_by_a_path_below_552_bytes_may_be_cut() {
    // RFC 1191 3: a path may take as little as 68 bytes; nothing is made as small as that, and Linux believes no less than 552.
    let mut sender = Sender::new(Fragmentation::BeyondPath);
    let original = sender.send(400).unwrap();
    assert!(!may_be_cut(&original));
    sender.learn(&original, 296);
    assert_eq!(sender.hosts.stacks[CLIENT].path_mtu(v4(SERVER, 0).ip()), 552);
    assert_eq!(sender.send(1), Err(UdpError::Trouble(UdpTrouble::TooBig(552))));
    assert!([1, 400, 600].into_iter().all(|length| may_be_cut(&sender.send(length).unwrap())));
    // Who lets nobody cut gets no more than that.
    let mut strict = Sender::new(Fragmentation::Refused);
    let original = strict.send(400).unwrap();
    strict.learn(&original, 296);
    assert_eq!(strict.send(1), Err(UdpError::Trouble(UdpTrouble::TooBig(552))));
    assert!(!may_be_cut(&strict.send(400).unwrap()));
}

#[test]
fn a_probe_goes_beyond_what_is_known_of_the_path() {
    let mut sender = Sender::new(Fragmentation::Probing);
    let original = sender.send(1472).unwrap();
    sender.learn(&original, 1400);
    assert_eq!(sender.send(1), Err(UdpError::Trouble(UdpTrouble::TooBig(1400))));
    assert!(!may_be_cut(&sender.send(1472).unwrap()));
    assert_eq!(sender.send(1473), Err(UdpError::TooLong { length: 1473, most: 1472 }));
}

#[test]
fn who_leaves_it_to_the_path_is_not_told() {
    let mut sender = Sender::new(Fragmentation::Allowed);
    let original = sender.send(1472).unwrap();
    assert!(may_be_cut(&original));
    sender.learn(&original, 1400);
    assert!(sender.send(1472).is_ok());
}

#[test]
fn the_first_link_counts_as_the_path() {
    let mut sender = Sender::new(Fragmentation::BeyondPath);
    let peer = v4(SERVER, 0).ip();
    let stack = &mut sender.hosts.stacks[CLIENT];
    for (mtu, known) in [(9000, 1500), (1300, 1300), (1400, 1300)] {
        stack.note_first_link(1, peer, mtu);
        assert_eq!(stack.path_mtu(peer), known, "{mtu}");
    }
    assert!(may_be_cut(&sender.send(1273).unwrap()) && !may_be_cut(&sender.send(1272).unwrap()));
}

#[test]
fn what_may_be_cut_has_numbers_of_its_own_for_each_flow() {
    let mut sender = Sender::new(Fragmentation::Allowed);
    let number = |packet: &[u8]| u16::from_be_bytes([packet[4], packet[5]]);
    let [one, two] = [(); 2].map(|()| number(&sender.send(2000).unwrap()));
    assert_eq!(two, one.wrapping_add(1));
    // Another stack of the machine, with the same seed, at another port.
    let mut other = Hosts::new();
    let id = other.bind(CLIENT, v4(CLIENT, 8));
    let mut list = PacketList::default();
    let message = Message::to(v4(SERVER, 7), &[0; 2000]);
    other.stacks[CLIENT].udp_send(1, id, &message, &mut list).unwrap();
    assert_ne!(number(&list.packets[0]), one);
}

#[test]
fn over_ipv6_the_caller_is_told_to_cut() {
    let mut hosts = Hosts::new();
    let id = hosts.bind(CLIENT, v6(CLIENT, 7));
    let mut send = |length: usize| {
        let (mut list, data) = (PacketList::default(), vec![7; length]);
        let message = Message::to(v6(SERVER, 9), &data);
        let sent = hosts.stacks[CLIENT].udp_send(1, id, &message, &mut list);
        sent.map(|_| list.packets.remove(0))
    };
    assert_eq!(send(1452).map(|packet| (packet.len(), packet[6])), Ok((1500, 17)));
    let [one, two] = [(); 2].map(|()| send(1453).unwrap());
    assert_eq!((one.len(), one[6], &one[40..44]), (1509, 44, &[17, 0, 0, 0][..]));
    let upper = wire::ipv6::upper_layer(&one).unwrap();
    assert_eq!((upper.protocol.0, upper.offset), (17, 48));
    assert_ne!(one[44..48], two[44..48]);
    assert_eq!(send(65_479).map(|packet| packet.len()), Ok(65_535));
    assert_eq!(send(65_480), Err(UdpError::TooLong { length: 65_480, most: 65_479 }));
}

#[test]
fn an_error_about_the_first_fragment_is_told() {
    let mut hosts = Hosts::new();
    let options = UdpOptions { errors_v6: true, ..UdpOptions::default() };
    let id = hosts.stacks[CLIENT].udp_bind(v6(CLIENT, 7), &options).unwrap();
    let mut list = PacketList::default();
    let message = Message::to(v6(SERVER, 9), &[7; 2000]);
    hosts.stacks[CLIENT].udp_send(1, id, &message, &mut list).unwrap();
    let mut first = list.packets.remove(0);
    first.truncate(1280);
    let network = wire::build::Network::V6(wire::ipv6::Fields {
        source: crate::ends::to_v6(v6(SERVER, 0).ip()),
        destination: crate::ends::to_v6(v6(CLIENT, 0).ip()),
        next_header: wire::Protocol::ICMPV6,
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    });
    let message = wire::icmpv6::Message::Unreachable { code: 4 };
    for (offset, told) in [(0, true), (8, false)] {
        first[43] = offset | 1;
        let payload = wire::build::Payload::Icmpv6 { message, data: &first[..100] };
        let mut error = vec![0; 600];
        let length = wire::build::packet(&mut error, &network, &payload).unwrap();
        error.truncate(length);
        hosts.hand_over(CLIENT, &[error]);
        let report = hosts.stacks[CLIENT].udp_report(id);
        assert_eq!(report.map(|report| report.data), told.then(|| vec![7; 100 - 56]));
    }
}
