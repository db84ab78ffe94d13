//! Two hosts on a link in memory, which may lose packets.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use millrace_host::{Domain, Errno, Id, Incoming, Kind, Mask, Outgoing, Sessions};
use shm::Segment;
use shm::claims::{ClaimsReader, ClaimsWriter, bytes, tag};
use shm::session::TransportProtocol;
use transport::{Config, Packet, PacketList};

/// One way through the link: ns.
const DELAY: u64 = 1_000_000;

/// A host: its sockets, and what it has sent.
pub(crate) struct Host {
    pub(crate) sessions: Sessions,
    pub(crate) out: PacketList,
}

/// A table of flows that a host claims.
pub(crate) struct Claims(ClaimsReader);

impl Claims {
    const PLACES: u32 = 64;
    const KEY: [u64; 2] = [3, 4];

    pub(crate) fn of(sessions: &mut Sessions) -> Self {
        let length = bytes(Self::PLACES).unwrap();
        let segment = Arc::new(Segment::create("claims", length).unwrap());
        let region = segment.region(0, length).unwrap();
        sessions.claim_in(ClaimsWriter::new(region.clone(), Self::PLACES).unwrap(), Self::KEY);
        Self(ClaimsReader::new(region, Self::PLACES).unwrap())
    }

    pub(crate) fn has(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.0.contains(tag(Self::KEY, TransportProtocol::Tcp, local, remote))
    }
}

/// Both ends.
pub(crate) struct Pair {
    pub(crate) now: u64,
    pub(crate) hosts: [Host; 2],
    /// Every so-many-th packet is lost; 0: none.
    pub(crate) loses: usize,
    carried: usize,
}

/// The listener of [`Pair::connected`], both ends of its connection.
pub(crate) const LISTENER: Id = Id(3);
pub(crate) const SERVER: Id = Id(4);
pub(crate) const CLIENT: Id = Id(5);

pub(crate) fn v4(host: usize) -> IpAddr {
    [10, 0, 0, 1 + host as u8].into()
}

pub(crate) fn v6(host: usize) -> IpAddr {
    [0xfd00, 0, 0, 0, 0, 0, 0, 1 + host as u16].into()
}

pub(crate) fn at(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}

impl Host {
    /// One whose secret this number makes.
    pub(crate) fn new(number: u64) -> Self {
        let config = Config {
            seed: [number, 7],
            connections_v4: 512,
            connections_v6: 512,
            time_waits: 512,
            ..Config::default()
        };
        let mut sessions = Sessions::new(config).unwrap();
        sessions.add_ports(10_240, 256);
        Self { sessions, out: PacketList::default() }
    }
}

impl Default for Pair {
    fn default() -> Self {
        let hosts = [1, 2].map(Host::new);
        Self { now: 1_000_000_000, hosts, loses: 0, carried: 0 }
    }
}

impl Pair {
    /// The server's sockets (host 1).
    pub(crate) fn server(&mut self) -> &mut Sessions {
        &mut self.hosts[1].sessions
    }

    /// The client's (host 0).
    pub(crate) fn client(&mut self) -> &mut Sessions {
        &mut self.hosts[0].sessions
    }

    /// Carries packets until nothing moves any more; time goes on by the link's delay only.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the link does not come to rest");
    }

    /// Carries what is there once.
    pub(crate) fn exchange(&mut self) {
        self.step();
    }

    /// Gives whether anything moved.
    fn step(&mut self) -> bool {
        for host in &mut self.hosts {
            host.sessions.turn(self.now, &mut host.out);
        }
        let sent = self.hosts.each_mut().map(|host| std::mem::take(&mut host.out.packets));
        if sent.iter().all(Vec::is_empty) {
            return false;
        }
        self.now += DELAY;
        for (from, packets) in sent.iter().enumerate() {
            for packet in packets {
                self.carried += 1;
                if self.loses > 0 && self.carried % self.loses == 0 {
                    continue;
                }
                let Host { sessions, out } = &mut self.hosts[1 - from];
                sessions.input(self.now, &[Packet::new(packet)], out);
            }
        }
        true
    }

    /// Lets time pass, timers included.
    pub(crate) fn run_for(&mut self, ns: u64) {
        let end = self.now + ns;
        loop {
            self.settle();
            let next = self.hosts.iter().filter_map(|host| host.sessions.next_deadline()).min();
            match next.filter(|next| *next < end) {
                Some(next) => self.now = self.now.max(next),
                None => break,
            }
        }
        self.now = self.now.max(end);
        self.settle();
    }

    /// A listener on the server at this address.
    pub(crate) fn listen(&mut self, id: Id, address: SocketAddr) {
        let server = self.server();
        server.open(id, domain(address), Kind::Stream).unwrap();
        server.bind(id, address).unwrap();
        server.listen(id, 16).unwrap();
    }

    /// Begins a connection from the client.
    pub(crate) fn connect(&mut self, id: Id, remote: SocketAddr) -> Result<(), Errno> {
        let source = if remote.ip().to_canonical().is_ipv4() { v4(0) } else { v6(0) };
        let now = self.now;
        let client = self.client();
        if !client.has(id) {
            client.open(id, domain(remote), Kind::Stream).unwrap();
        }
        client.connect(id, now, source, remote)
    }

    /// An established connection.
    pub(crate) fn connected() -> Self {
        let mut pair = Self::default();
        pair.establish();
        pair
    }

    /// Establishes a connection.
    pub(crate) fn establish(&mut self) {
        self.listen(LISTENER, at(v4(1), 80));
        assert_eq!(self.connect(CLIENT, at(v4(1), 80)), Err(Errno::INPROGRESS));
        self.settle();
        self.server().accept(LISTENER, SERVER).unwrap();
        self.quiet();
    }

    /// Forgets what happened so far.
    pub(crate) fn quiet(&mut self) {
        for host in &mut self.hosts {
            while host.sessions.next_ready().is_some() {}
        }
    }
}

fn domain(address: SocketAddr) -> Domain {
    if address.is_ipv4() { Domain::V4 } else { Domain::V6 }
}

/// `send` of one piece.
pub(crate) fn send(sessions: &mut Sessions, id: Id, bytes: &[u8]) -> Result<usize, Errno> {
    sessions.send(id, &[IoSlice::new(bytes)], Outgoing::default())
}

/// `SO_ERROR`.
pub(crate) fn error(sessions: &mut Sessions, id: Id) -> Errno {
    let value = sessions.option(id, 1, 4, 4).unwrap();
    Errno(i32::from_ne_bytes(value[..4].try_into().unwrap()))
}

/// Has closing a socket reset its connection.
pub(crate) fn reset(sessions: &mut Sessions, id: Id) {
    sessions.set_option(id, 1, 13, &[1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    sessions.close(id);
}

/// What `poll` says of a socket that is over.
pub(crate) const OVER: Mask = Mask(Mask::IN.0 | Mask::OUT.0 | Mask::HUP.0 | Mask::RDHUP.0);

/// `recv` of at most so many bytes.
pub(crate) fn recv(sessions: &mut Sessions, id: Id, most: usize) -> Result<Vec<u8>, Errno> {
    recv_with(sessions, id, most, Incoming::default())
}

/// `recv` with flags.
pub(crate) fn recv_with(
    sessions: &mut Sessions,
    id: Id,
    most: usize,
    incoming: Incoming,
) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; most];
    let received = sessions.recv(id, &mut [IoSliceMut::new(&mut bytes)], incoming)?;
    bytes.truncate(received.bytes);
    Ok(bytes)
}

/// The bits of `poll` that have a meaning of their own.
pub(crate) fn poll(sessions: &mut Sessions, id: Id) -> Mask {
    sessions.mask(id) & (Mask::IN | Mask::OUT | Mask::ERR | Mask::HUP | Mask::RDHUP)
}
