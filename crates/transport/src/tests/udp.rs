//! Datagrams between two stacks.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::pair::{ADDRESSES, CLIENT, SERVER};
use crate::*;

mod batch;
mod errors;
mod fragmentation;
mod memory;

const V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)];

struct Hosts {
    stacks: [Stack<Rings>; 2],
    now: u64,
}

fn v4(host: usize, port: u16) -> SocketAddr {
    (ADDRESSES[host], port).into()
}

fn v6(host: usize, port: u16) -> SocketAddr {
    (V6[host], port).into()
}

impl Hosts {
    fn new() -> Self {
        let stack = || {
            let config = Config { connections_v4: 100, connections_v6: 100, ..Config::default() };
            Stack::new(config, Rings).unwrap()
        };
        Self { stacks: [stack(), stack()], now: 1 }
    }

    fn bind(&mut self, host: usize, address: SocketAddr) -> UdpId {
        self.stacks[host].udp_bind(address, &UdpOptions::default()).unwrap()
    }

    /// Sends and hands over; what came back at once goes to the sender.
    fn send(&mut self, host: usize, id: UdpId, message: &Message<'_>) -> Result<usize, UdpError> {
        let mut list = PacketList::default();
        let sent = self.stacks[host].udp_send(self.now, id, message, &mut list)?;
        self.hand_over(1 - host, &list.packets);
        Ok(sent)
    }

    fn hand_over(&mut self, to: usize, packets: &[Vec<u8>]) {
        let mut answers = PacketList::default();
        for packet in packets {
            self.stacks[to].input(self.now, &[Packet::new(packet)], &mut answers);
        }
        let mut none = PacketList::default();
        for answer in &answers.packets {
            self.stacks[1 - to].input(self.now, &[Packet::new(answer)], &mut none);
        }
        assert!(none.packets.is_empty(), "an answer to an answer");
    }

    fn recv(&mut self, host: usize, id: UdpId) -> Option<(Vec<u8>, Received)> {
        let mut buffer = [0; 3000];
        let head = self.stacks[host].udp_recv(id, &mut buffer).unwrap()?;
        Some((buffer[..head.length].to_vec(), head))
    }
}

#[test]
fn datagrams_go_both_ways_over_both_versions() {
    let mut hosts = Hosts::new();
    let server = hosts.bind(SERVER, "[::]:53".parse().unwrap());
    for (from, to) in [(v4(CLIENT, 0), v4(SERVER, 53)), (v6(CLIENT, 0), v6(SERVER, 53))] {
        let client = hosts.bind(CLIENT, from);
        let port = hosts.stacks[CLIENT].udp_ends(client).unwrap().0;
        assert!(port.port() >= 32_768);
        for data in [&b"query"[..], b"", b"odd"] {
            assert_eq!(hosts.send(CLIENT, client, &Message::to(to, data)), Ok(1));
            assert_eq!(hosts.stacks[SERVER].poll_event(), Some(Event::UdpReadable(server)));
            let (bytes, head) = hosts.recv(SERVER, server).unwrap();
            assert_eq!((&bytes[..], head.from, head.to, head.ttl), (data, port, to, 64));
            assert_eq!(head.at, hosts.now);
            let answer = Message { from: Some(to.ip()), ..Message::to(head.from, b"answer") };
            hosts.send(SERVER, server, &answer).unwrap();
            assert_eq!(hosts.recv(CLIENT, client).unwrap().0, b"answer");
        }
    }
}

#[test]
fn a_connected_socket_hears_its_peer_only() {
    let mut hosts = Hosts::new();
    let server = hosts.bind(SERVER, v4(SERVER, 53));
    let [a, b] = [hosts.bind(CLIENT, v4(CLIENT, 1000)), hosts.bind(CLIENT, v4(CLIENT, 1001))];
    hosts.stacks[SERVER].udp_connect(server, v4(SERVER, 0).ip(), v4(CLIENT, 1000)).unwrap();
    hosts.send(CLIENT, b, &Message::to(v4(SERVER, 53), b"stranger")).unwrap();
    assert_eq!(hosts.recv(SERVER, server), None);
    // The stranger was told, as nobody has the port for it.
    assert_eq!(hosts.stacks[SERVER].counters().unreachables_out, 1);
    hosts.send(CLIENT, a, &Message::to(v4(SERVER, 53), b"peer")).unwrap();
    assert_eq!(hosts.recv(SERVER, server).unwrap().0, b"peer");
    hosts.send(SERVER, server, &Message::new(b"back")).unwrap();
    assert_eq!(hosts.recv(CLIENT, a).unwrap().0, b"back");
    // Others may have the port beside it, and get what is left.
    let rest = hosts.bind(SERVER, "0.0.0.0:53".parse().unwrap());
    hosts.send(CLIENT, b, &Message::to(v4(SERVER, 53), b"stranger")).unwrap();
    assert_eq!(hosts.recv(SERVER, rest).unwrap().0, b"stranger");
    hosts.stacks[SERVER].udp_disconnect(server).unwrap();
    hosts.send(CLIENT, b, &Message::to(v4(SERVER, 53), b"again")).unwrap();
    assert_eq!(hosts.recv(SERVER, server).unwrap().0, b"again");
}

#[test]
fn a_closed_port_is_told_to_who_asks() {
    let mut hosts = Hosts::new();
    for (local, remote) in [(v4(CLIENT, 0), v4(SERVER, 9)), (v6(CLIENT, 0), v6(SERVER, 9))] {
        let [plain, asks] = [false, true].map(|errors| {
            let (errors_v4, errors_v6) = (errors, errors);
            let options = UdpOptions { errors_v4, errors_v6, ..UdpOptions::default() };
            hosts.stacks[CLIENT].udp_bind(local, &options).unwrap()
        });
        let connected = hosts.bind(CLIENT, local);
        hosts.stacks[CLIENT].udp_connect(connected, local.ip(), remote).unwrap();
        for id in [plain, asks, connected] {
            hosts.send(CLIENT, id, &Message::to(remote, b"?")).unwrap();
        }
        let events: Vec<Event> = std::iter::from_fn(|| hosts.stacks[CLIENT].poll_event()).collect();
        assert_eq!(events, [Event::UdpError(asks), Event::UdpError(connected)]);
        let stack = &mut hosts.stacks[CLIENT];
        assert_eq!(stack.udp_trouble(plain), None);
        assert_eq!(stack.udp_trouble(asks), Some((UdpTrouble::Failed(Failure::Refused), remote)));
        let told = Err(UdpError::Trouble(UdpTrouble::Failed(Failure::Refused)));
        assert_eq!(stack.udp_recv(connected, &mut []), told);
        assert_eq!(stack.udp_recv(connected, &mut []), Ok(None));
    }
}

#[test]
fn groups_are_joined_and_left() {
    let mut hosts = Hosts::new();
    let pairs: [(IpAddr, SocketAddr, SocketAddr); 2] = [
        ("239.1.1.1".parse().unwrap(), v4(CLIENT, 500), "0.0.0.0:600".parse().unwrap()),
        ("ff15::7".parse().unwrap(), v6(CLIENT, 500), "[::]:600".parse().unwrap()),
    ];
    for (group, from, any) in pairs {
        let to = SocketAddr::new(group, 600);
        let options = UdpOptions { share: true, v6_only: true, ..UdpOptions::default() };
        let [all, one, other] =
            [(); 3].map(|()| hosts.stacks[SERVER].udp_bind(any, &options).unwrap());
        let sender = hosts.bind(CLIENT, from);
        hosts.stacks[SERVER].udp_join(all, group, None).unwrap();
        hosts.stacks[SERVER].udp_join(one, group, Some(from.ip())).unwrap();
        let stranger = if group.is_ipv4() { v4(SERVER, 0) } else { v6(SERVER, 0) };
        hosts.stacks[SERVER].udp_join(other, group, Some(stranger.ip())).unwrap();
        hosts.send(CLIENT, sender, &Message::to(to, b"all")).unwrap();
        let got = [all, one, other].map(|id| hosts.recv(SERVER, id).is_some());
        assert_eq!(got, [true, true, false]);
        hosts.stacks[SERVER].udp_leave(all, group, None).unwrap();
        assert_eq!(hosts.stacks[SERVER].udp_leave(all, group, None), Err(UdpError::Group));
        hosts.send(CLIENT, sender, &Message::to(to, b"fewer")).unwrap();
        let got = [all, one].map(|id| hosts.recv(SERVER, id).map(|(_, head)| head.ttl));
        assert_eq!(got, [None, Some(1)], "time to live of multicast");
        assert_eq!(hosts.stacks[SERVER].udp_groups().filter(|(g, _)| *g == group).count(), 2);
        // Nobody answers about what was sent to many.
        assert_eq!(hosts.stacks[SERVER].counters().unreachables_out, 0);
    }
}

#[test]
fn a_member_without_room_keeps_nothing_from_the_others() {
    let mut hosts = Hosts::new();
    let to = SocketAddr::from(([239, 1, 1, 1], 600));
    let small = UdpOptions { reuse_address: true, receive_buffer: 70, ..UdpOptions::default() };
    let plain = UdpOptions { reuse_address: true, ..UdpOptions::default() };
    let members = [small, plain].map(|options| {
        let any = "0.0.0.0:600".parse().unwrap();
        let id = hosts.stacks[SERVER].udp_bind(any, &options).unwrap();
        hosts.stacks[SERVER].udp_join(id, to.ip(), None).unwrap();
        id
    });
    let sender = hosts.bind(CLIENT, v4(CLIENT, 500));
    for text in [b"one", b"two"] {
        hosts.send(CLIENT, sender, &Message::to(to, text)).unwrap();
    }
    let mut read = |id| {
        let all = std::iter::from_fn(|| hosts.recv(SERVER, id).map(|(data, _)| data));
        all.collect::<Vec<_>>()
    };
    assert_eq!(read(members[0]), [b"one"]);
    assert_eq!(read(members[1]), [b"one", b"two"]);
    assert_eq!(hosts.stacks[SERVER].counters().dropped(Reason::UdpQueue), 1);
}

#[test]
fn a_sender_hears_its_own_group() {
    let mut hosts = Hosts::new();
    let id = hosts.bind(CLIENT, "0.0.0.0:600".parse().unwrap());
    let group = SocketAddr::from(([239, 1, 1, 1], 600));
    hosts.stacks[CLIENT].udp_join(id, group.ip(), None).unwrap();
    let message = Message { from: Some(v4(CLIENT, 0).ip()), ..Message::to(group, b"hello") };
    hosts.send(CLIENT, id, &message).unwrap();
    assert_eq!(hosts.recv(CLIENT, id).unwrap().0, b"hello");
    let options = UdpOptions { multicast_loop: false, ..UdpOptions::default() };
    hosts.stacks[CLIENT].udp_set_options(id, &options).unwrap();
    hosts.send(CLIENT, id, &message).unwrap();
    assert_eq!(hosts.recv(CLIENT, id), None);
}

#[test]
fn addresses_are_taken_once_unless_shared() {
    let mut hosts = Hosts::new();
    let stack = &mut hosts.stacks[CLIENT];
    let plain = UdpOptions::default();
    let bind = |stack: &mut Stack<Rings>, text: &str, options: &UdpOptions| {
        stack.udp_bind(text.parse().unwrap(), options)
    };
    let first = bind(stack, "[::]:5", &plain).unwrap();
    for text in ["[::]:5", "0.0.0.0:5", "10.0.0.1:5", "[fd00::1]:5"] {
        assert_eq!(bind(stack, text, &plain), Err(UdpError::InUse), "{text}");
    }
    stack.udp_close(first);
    assert_eq!(stack.udp_recv(first, &mut []), Err(UdpError::Gone));
    let only = UdpOptions { v6_only: true, ..plain.clone() };
    bind(stack, "[::]:5", &only).unwrap();
    bind(stack, "0.0.0.0:5", &plain).unwrap();
    let shared = UdpOptions { share: true, ..plain.clone() };
    bind(stack, "10.0.0.1:6", &shared).unwrap();
    bind(stack, "10.0.0.1:6", &shared).unwrap();
    assert_eq!(bind(stack, "10.0.0.1:6", &plain), Err(UdpError::InUse));
}

#[test]
fn those_that_share_get_whole_flows() {
    let mut hosts = Hosts::new();
    let options = UdpOptions { share: true, ..UdpOptions::default() };
    let servers =
        [(); 3].map(|()| hosts.stacks[SERVER].udp_bind(v4(SERVER, 53), &options).unwrap());
    let mut counts = [0; 3];
    for port in 1000..1060 {
        let client = hosts.bind(CLIENT, v4(CLIENT, port));
        for _ in 0..3 {
            hosts.send(CLIENT, client, &Message::to(v4(SERVER, 53), b"x")).unwrap();
        }
        for (place, id) in servers.into_iter().enumerate() {
            let got = std::iter::from_fn(|| hosts.recv(SERVER, id)).count();
            assert!(got == 0 || got == 3);
            counts[place] += got;
        }
    }
    assert!(counts.iter().all(|count| *count > 15) && counts.iter().sum::<usize>() == 180);
}

#[test]
fn what_can_not_be_sent_is_refused() {
    let mut hosts = Hosts::new();
    let any = hosts.bind(CLIENT, "0.0.0.0:5".parse().unwrap());
    let id = hosts.bind(CLIENT, v4(CLIENT, 6));
    let mut send = |id, to: &str, length: usize| {
        hosts.send(CLIENT, id, &Message::to(to.parse().unwrap(), &vec![0; length])).unwrap_err()
    };
    assert_eq!(send(any, "10.0.0.2:7", 1), UdpError::Address, "no source address");
    assert_eq!(send(id, "[fd00::2]:7", 1), UdpError::Address);
    assert_eq!(send(id, "10.0.0.2:0", 1), UdpError::Address);
    assert_eq!(send(id, "255.255.255.255:7", 1), UdpError::Broadcast);
    let too_long = UdpError::TooLong { length: 65_508, most: 65_507 };
    assert_eq!(send(id, "10.0.0.2:7", 65_508), too_long);
    assert_eq!(hosts.send(CLIENT, id, &Message::new(b"")), Err(UdpError::NoDestination));
}

#[test]
fn checksums_count_and_may_be_absent_over_ipv4_only() {
    let mut hosts = Hosts::new();
    let server = hosts.bind(SERVER, "[::]:7".parse().unwrap());
    for (from, to, optional) in
        [(v4(CLIENT, 8), v4(SERVER, 7), true), (v6(CLIENT, 8), v6(SERVER, 7), false)]
    {
        let client = hosts.bind(CLIENT, from);
        let mut list = PacketList::default();
        hosts.stacks[CLIENT].udp_send(1, client, &Message::to(to, b"data"), &mut list).unwrap();
        let good = list.packets.remove(0);
        let field = good.len() - 4 - 2;
        let mut bad = good.clone();
        bad[field] ^= 1;
        let mut absent = good;
        absent[field..field + 2].fill(0);
        hosts.hand_over(SERVER, &[bad]);
        assert_eq!(hosts.recv(SERVER, server), None);
        hosts.hand_over(SERVER, &[absent]);
        assert_eq!(hosts.recv(SERVER, server).is_some(), optional);
    }
    assert_eq!(hosts.stacks[SERVER].counters().dropped(Reason::UdpChecksum), 2 + 1);
}

#[test]
fn of_those_that_reuse_an_address_the_last_is_heard() {
    let mut hosts = Hosts::new();
    let options = UdpOptions { reuse_address: true, ..UdpOptions::default() };
    let any: SocketAddr = "0.0.0.0:600".parse().unwrap();
    let [one, two] = [(); 2].map(|()| hosts.stacks[SERVER].udp_bind(any, &options).unwrap());
    let refused = hosts.stacks[SERVER].udp_bind(any, &UdpOptions::default());
    assert_eq!(refused, Err(UdpError::InUse));
    let client = hosts.bind(CLIENT, v4(CLIENT, 7));
    let group = SocketAddr::from(([239, 1, 1, 1], 600));
    for id in [one, two] {
        hosts.stacks[SERVER].udp_join(id, group.ip(), None).unwrap();
    }
    for (to, expected) in [(v4(SERVER, 600), [false, true]), (group, [true, true])] {
        hosts.send(CLIENT, client, &Message::to(to, b"x")).unwrap();
        assert_eq!([one, two].map(|id| hosts.recv(SERVER, id).is_some()), expected);
    }
    hosts.stacks[SERVER].udp_close(two);
    hosts.send(CLIENT, client, &Message::to(v4(SERVER, 600), b"x")).unwrap();
    assert!(hosts.recv(SERVER, one).is_some());
}
