//! Two stacks, the wire between them, and what is done to both.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use transport::options::{Keepalive, PathProbing};
use transport::{
    Algorithm, Config, ConnectionId, Ecn, Event, Fragmentation, ListenerId, Message, Options,
    Packet, PacketList, Rings, Stack, UdpId, UdpOptions,
};

use crate::bytes::Bytes;
use crate::packets::{self, ADDRESSES_V4, ADDRESSES_V6};

/// Packets that may leave within one call of `input` for each that came in. What is more than answers
/// waits for `flush`.
const ANSWERS: usize = 4;
/// Sockets of a kind at most.
const SOCKETS: usize = 16;

struct Host {
    stack: Stack<Rings>,
    listeners: Vec<ListenerId>,
    connections: Vec<ConnectionId>,
    datagrams: Vec<UdpId>,
    /// On the way to it.
    wire: VecDeque<Vec<u8>>,
    /// What it has sent last.
    sent: VecDeque<Vec<u8>>,
    /// Right edges of windows by the segments' source and destination, without scale.
    edges: HashMap<(SocketAddr, SocketAddr), u32>,
}

pub struct World {
    hosts: [Host; 2],
    now: u64,
    options: Options,
}

fn address(host: usize, v6: bool) -> IpAddr {
    if v6 { ADDRESSES_V6[host].into() } else { ADDRESSES_V4[host].into() }
}

fn options(bytes: &mut Bytes<'_>) -> Options {
    let (bits, more) = (bytes.word(), bytes.byte());
    let bit = |place: u32| bits >> place & 1 != 0;
    Options {
        no_delay: bit(0),
        cork: bit(1),
        quick_ack: bit(2),
        // Without scale edges can be compared.
        window_scale: false,
        timestamps: bit(3),
        sack: bit(4),
        fast_open: bit(5),
        pacing: bit(6),
        mtu_discovery: bit(7),
        ecn: [Ecn::Off, Ecn::Passive, Ecn::Active, Ecn::Accurate][usize::from(bits >> 8 & 3)],
        congestion: [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr, Algorithm::Cubic]
            [usize::from(bits >> 10 & 3)],
        path_probing: [PathProbing::Off, PathProbing::BlackHole, PathProbing::Always]
            [usize::from(bits >> 12 & 3) % 3],
        receive_buffer: 500 << (more & 7),
        receive_buffer_limit: 500 << (more & 7),
        transmit_buffer: 500 << (more >> 3 & 7),
        keepalive: bit(14).then_some(Keepalive {
            idle: 1_000_000_000,
            interval: 1_000_000_000,
            count: 3,
        }),
        user_timeout: if bit(15) { 10_000_000_000 } else { 0 },
        ..Options::default()
    }
}

impl World {
    pub fn new(bytes: &mut Bytes<'_>) -> Self {
        let options = options(bytes);
        let host = |seed| {
            let config = Config {
                connections_v4: 64,
                connections_v6: 64,
                seed: [seed, 7],
                ..Config::default()
            };
            Host {
                stack: Stack::new(config, Rings).expect("memory"),
                listeners: Vec::new(),
                connections: Vec::new(),
                datagrams: Vec::new(),
                wire: VecDeque::new(),
                sent: VecDeque::new(),
                edges: HashMap::new(),
            }
        };
        let mut world = Self { hosts: [host(1), host(2)], now: 1_000_000_000, options };
        world.listen(1, 2);
        world
    }

    fn listen(&mut self, host: usize, backlog: usize) {
        let options = self.options.clone();
        let host = &mut self.hosts[host];
        if host.listeners.len() < SOCKETS {
            let any = SocketAddr::from(([0u16; 8], 80 + host.listeners.len() as u16));
            host.listeners.extend(host.stack.listen(any, backlog, &options));
        }
    }

    pub fn act(&mut self, operation: u8, bytes: &mut Bytes<'_>) {
        let host = usize::from(operation & 1);
        match operation >> 1 & 15 {
            0..=2 => {
                if let Some(packet) = self.hosts[host].wire.pop_front() {
                    self.deliver(host, packet);
                }
            }
            3 => drop(self.hosts[host].wire.pop_front()),
            4 => {
                if let Some(packet) = self.hosts[host].wire.front().cloned() {
                    self.deliver(host, packet);
                }
            }
            5 => self.hosts[host].wire.rotate_left(usize::from(!self.hosts[host].wire.is_empty())),
            6 | 7 => {
                // One that the other has sent, changed.
                let back = usize::from(bytes.byte() & 15);
                if let Some(mut packet) = self.hosts[1 - host].sent.get(back).cloned() {
                    packets::change(&mut packet, bytes);
                    self.deliver(host, packet);
                }
            }
            8 => {
                let length = usize::from(bytes.byte());
                let packet = bytes.take(length).to_vec();
                self.deliver(host, packet);
            }
            9 => {
                let back = usize::from(bytes.byte() & 15);
                let quoted = self.hosts[host].sent.get(back).cloned();
                if let Some(error) = quoted.and_then(|quoted| packets::icmp_error(&quoted, bytes)) {
                    self.deliver(host, error);
                }
            }
            10 | 11 => self.pass(1 << (bytes.byte() % 38)),
            12 => self.flush(),
            _ => self.call(host, bytes),
        }
    }

    fn call(&mut self, host: usize, bytes: &mut Bytes<'_>) {
        let (what, which) = (bytes.byte(), usize::from(bytes.byte()));
        let changed = (what & 15 == 7).then(|| options(bytes));
        let Host { stack, connections, listeners, .. } = &mut self.hosts[host];
        let id = connections.get(which % connections.len().max(1)).copied();
        let mut buffer = [0; 3000];
        match (what & 15, id) {
            (0, _) if connections.len() < SOCKETS => {
                let v6 = which & 1 != 0;
                let port = if which & 2 != 0 { 80 } else { 0 };
                let remote = SocketAddr::new(address(1 - host, v6), 80 + (which as u16 >> 5));
                let local = address(host, v6);
                connections.extend(stack.connect(self.now, local, port, remote, &self.options));
            }
            (1, _) => {
                let Some(listener) = listeners.get(which % listeners.len().max(1)) else { return };
                if connections.len() < SOCKETS {
                    connections.extend(stack.accept(*listener));
                }
            }
            (2 | 3, Some(id)) => {
                let length = usize::from(bytes.word()) % buffer.len();
                let _ = stack.send(id, &buffer[..length]);
            }
            (4 | 5, Some(id)) => {
                let length = usize::from(bytes.word()) % buffer.len();
                let _ = stack.recv(id, &mut buffer[..length]);
                let _ = (stack.is_finished(id), stack.info(id));
            }
            (6, Some(id)) => drop(stack.shutdown(id)),
            (7, Some(id)) => {
                // Buffers, scale and the like stay as they are.
                let _ = stack.set_options(id, changed.unwrap_or_default());
            }
            (8, Some(id)) => {
                stack.close(id);
                connections.retain(|other| *other != id);
            }
            (9, Some(id)) => {
                stack.abort(id);
                connections.retain(|other| *other != id);
            }
            (10, _) => self.listen(host, which % 4),
            (11.., _) => self.call_udp(host, what, which, bytes),
            _ => {}
        }
    }

    fn call_udp(&mut self, host: usize, what: u8, which: usize, bytes: &mut Bytes<'_>) {
        let Host { stack, datagrams, .. } = &mut self.hosts[host];
        let v6 = which & 1 != 0;
        let id = datagrams.get(which % datagrams.len().max(1)).copied();
        let remote = SocketAddr::new(address(1 - host, v6), bytes.word() % 4 * 1000);
        let group: IpAddr =
            if v6 { [0xff15, 0, 0, 0, 0, 0, 0, 1].into() } else { [239, 0, 0, 1].into() };
        let mut list = PacketList::default();
        let mut buffer = [0; 600];
        match (what >> 4, id) {
            (0..=2, _) if datagrams.len() < SOCKETS => {
                let fragmentation = match which >> 1 & 3 {
                    0 => Fragmentation::Allowed,
                    1 => Fragmentation::BeyondPath,
                    2 => Fragmentation::Refused,
                    _ => Fragmentation::Probing,
                };
                let options = UdpOptions {
                    share: what & 16 != 0,
                    errors_v4: what & 32 != 0,
                    errors_v6: what & 32 != 0,
                    fragmentation,
                    receive_buffer: 5000,
                    ..UdpOptions::default()
                };
                let any = if v6 { [0u16; 8].into() } else { IpAddr::from([0; 4]) };
                let local = SocketAddr::new(any, remote.port());
                datagrams.extend(stack.udp_bind(local, &options));
            }
            (3 | 4, Some(id)) => drop(stack.udp_connect(id, address(host, v6), remote)),
            (5..=8, Some(id)) => {
                let length = usize::from(bytes.word()) % buffer.len();
                let to = (what & 16 == 0).then_some(remote);
                let to = if which & 4 != 0 { Some(SocketAddr::new(group, 1000)) } else { to };
                let from = Some(address(host, v6));
                let segment_size = u16::from(bytes.byte());
                let ecn = Some(which as u8);
                let message = Message { to, from, data: &buffer[..length], segment_size, ecn };
                let _ = stack.udp_send(self.now, id, &message, &mut list);
            }
            (9 | 10, Some(id)) => {
                let _ = (stack.udp_recv_run(id, &mut buffer), stack.udp_trouble(id));
                let _ = stack.udp_report(id);
            }
            (11, Some(id)) => drop(stack.udp_join(id, group, None)),
            (12, Some(id)) => drop(stack.udp_leave(id, group, None)),
            (13, Some(id)) => {
                stack.udp_close(id);
                datagrams.retain(|other| *other != id);
            }
            _ => {}
        }
        self.send(host, list);
    }

    fn deliver(&mut self, host: usize, packet: Vec<u8>) {
        let mut list = PacketList::default();
        self.hosts[host].stack.input(self.now, &[Packet::new(&packet)], &mut list);
        assert!(list.packets.len() <= ANSWERS, "{} answers to one packet", list.packets.len());
        self.send(host, list);
        self.take_events(host);
    }

    fn take_events(&mut self, host: usize) {
        let Host { stack, connections, .. } = &mut self.hosts[host];
        let mut count = 0;
        while let Some(event) = stack.poll_event() {
            count += 1;
            if let Event::Gone(id, _) = event {
                connections.retain(|other| *other != id);
            }
        }
        assert!(count < 20 * SOCKETS, "{count} events");
    }

    fn flush(&mut self) {
        for host in [0, 1] {
            let mut list = PacketList::default();
            self.hosts[host].stack.flush(self.now, &mut list);
            self.send(host, list);
            self.take_events(host);
        }
    }

    fn pass(&mut self, time: u64) {
        self.now += time;
        for host in [0, 1] {
            let mut list = PacketList::default();
            self.hosts[host].stack.expire(self.now, &mut list);
            self.send(host, list);
        }
        self.flush();
    }

    fn send(&mut self, from: usize, list: PacketList) {
        for packet in list.packets {
            if let Some(told) = packets::check(&packet) {
                self.check_edge(from, &told);
            }
            let host = &mut self.hosts[from];
            host.sent.push_front(packet.clone());
            host.sent.truncate(16);
            let wire = &mut self.hosts[1 - from].wire;
            wire.push_back(packet);
            // What nobody asks for is lost.
            if wire.len() > 64 {
                wire.pop_front();
            }
        }
    }

    /// RFC 9293 3.8.6: a window is not taken back.
    fn check_edge(&mut self, from: usize, told: &packets::Told) {
        const SYN_RST: u8 = 6;
        let edges = &mut self.hosts[from].edges;
        if told.flags & SYN_RST != 0 {
            edges.remove(&told.flow);
            return;
        }
        let edge = told.ack.wrapping_add(told.window.into());
        let before = edges.insert(told.flow, edge);
        if let Some(before) = before {
            assert!(edge.wrapping_sub(before) as i32 >= 0, "{before} to {edge}: {:?}", told.flow);
        }
    }

    /// Everything is given up; then nothing may be left.
    pub fn end(mut self) {
        for host in &mut self.hosts {
            for id in std::mem::take(&mut host.connections) {
                host.stack.abort(id);
            }
            for listener in std::mem::take(&mut host.listeners) {
                host.stack.close_listener(listener);
            }
            host.edges.clear();
        }
        for _ in 0..200 {
            self.pass(60_000_000_000);
        }
        for host in &mut self.hosts {
            assert_eq!((host.stack.connections(), host.stack.next_deadline()), (0, None));
        }
    }
}
