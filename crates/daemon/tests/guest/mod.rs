//! A process with a stack of its own, in as few words as possible.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use client::session::{Link, Queues};
use host::Parts;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::sockopt;
use rustix::time::{ClockId, clock_gettime};
use shm::attach::{Channel, Received, Refusal};
use shm::claims::{ClaimsWriter, tag};
use shm::session::{
    Abandon, CarrierId, Deposit, Event, Hand, OpenStack, Reply, Request, TransportProtocol,
    WaitOut, Withdraw, pack, unpack,
};
use transport::{
    Config, ConnectionId, Contents, Ends, ListenerId, Options, Packet, PacketList, Rings, Stack,
    TimeWait,
};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const ASKED: OpenStack = OpenStack { slots: 1024, capacity: 1984, claims: 1024, connections: 64 };

/// ns of the monotonic clock.
pub(crate) fn clock() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A process.
pub(crate) struct Guest {
    pub(crate) link: Link,
    /// The same connection.
    raw: Channel,
    pub(crate) queues: Queues,
    claims: (ClaimsWriter, [u64; 2]),
    pub(crate) stack: Stack<Rings>,
    /// What was said without having been asked for.
    pub(crate) events: Vec<Event>,
}

impl Guest {
    pub(crate) fn attach(socket: &Path) -> Self {
        let link = Link::open(Some(socket), "guest", |file| file).unwrap();
        let raw = Channel::of(link.as_fd().try_clone_to_owned().unwrap());
        hear_within(&raw, PATIENCE);
        let mut queues = link.open_stack(&ASKED, |file| file).unwrap();
        let claims = queues.take_claims().unwrap();
        let config = Config { seed: queues.seed, ..Config::default() };
        let stack = Stack::new(config, Rings).unwrap();
        Self { link, raw, queues, claims, stack, events: Vec::new() }
    }

    pub(crate) fn number(&self) -> u32 {
        self.queues.number
    }

    /// Serves what a socket is bound to: the listener's number, and the stack's.
    pub(crate) fn serve(&mut self, socket: &TcpListener, address: IpAddr) -> (u32, ListenerId) {
        let listening = self.link.listen(self.number(), 1, socket.as_fd()).unwrap();
        let address = SocketAddr::new(address, listening.address.port());
        let listener = self.stack.listen(address, 64, &Options::default()).unwrap();
        (listening.listener, listener)
    }

    /// A turn of the stack.
    pub(crate) fn turn(&mut self) {
        let now = clock();
        let Self { stack, queues, .. } = self;
        let Queues { inbound, outbound, .. } = queues;
        inbound.receive(|packets| stack.input(now, packets, outbound));
        stack.expire(now, outbound);
        stack.flush(now, outbound);
        outbound.ring();
        while stack.poll_event().is_some() {}
    }

    /// Turns until something is there.
    pub(crate) fn until<R>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self) -> Option<R>,
    ) -> R {
        let start = Instant::now();
        loop {
            self.turn();
            if let Some(found) = look(self) {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    pub(crate) fn accept(&mut self, listener: ListenerId) -> ConnectionId {
        let id = self.until("a connection", |guest| guest.stack.accept(listener));
        let ends = self.ends(id);
        self.claim(&ends);
        id
    }

    fn claim(&mut self, ends: &Ends) {
        let tag = self.tag(ends);
        assert!(self.claims.0.insert(tag));
    }

    fn tag(&self, ends: &Ends) -> u64 {
        tag(self.claims.1, TransportProtocol::Tcp, ends.local, ends.remote)
    }

    pub(crate) fn ends(&self, id: ConnectionId) -> Ends {
        transport::Transport::ends(&self.stack, id).unwrap()
    }

    /// Asks, and hears the answer.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        file: Option<&OwnedFd>,
    ) -> (Reply, Vec<OwnedFd>) {
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        self.raw.send(request, &files).unwrap();
        loop {
            let Received { message, files } = self.raw.receive::<Reply>().unwrap();
            match message {
                Reply::Event(event) => self.events.push(event),
                reply => return (reply, files),
            }
        }
    }

    /// The next thing that it is told, if something is there or comes soon.
    pub(crate) fn event(&mut self) -> Option<Event> {
        if !self.events.is_empty() {
            return Some(self.events.remove(0));
        }
        match self.raw.receive::<Reply>().unwrap().message {
            Reply::Event(event) => Some(event),
            other => panic!("{other:?}"),
        }
    }

    /// Whether something was said without having been asked for, within a moment.
    pub(crate) fn has_event(&self) -> bool {
        hear_within(&self.raw, Duration::from_millis(200));
        let came = !self.events.is_empty() || self.raw.receive::<Reply>().is_ok();
        hear_within(&self.raw, PATIENCE);
        came
    }

    /// A carrier for a connection of this stack.
    pub(crate) fn carrier(&self, socket: &Path) -> (Channel, CarrierId) {
        carrier(socket, self.number()).unwrap()
    }

    pub(crate) fn export(&mut self, id: ConnectionId) -> (OwnedFd, u64) {
        let ends = self.ends(id);
        let now = clock();
        self.stack.hold(&ends, now + 2_000_000_000);
        let exported = self.stack.export(now, id, Contents::Copied).unwrap();
        (file(&[&exported.bytes]), now)
    }

    pub(crate) fn deposit(&mut self, id: ConnectionId, name: CarrierId) {
        let ends = self.ends(id);
        let (file, at) = self.export(id);
        let asked = Deposit { stack: self.number(), id: name, at };
        let reply = self.ask(&Request::Deposit(asked), Some(&file)).0;
        assert_eq!(reply, Reply::Deposited(name));
        let tag = self.tag(&ends);
        self.claims.0.remove(tag);
    }

    /// Asks for a connection: `None` when somebody else is asked for it.
    pub(crate) fn withdraw(&mut self, name: CarrierId) -> Result<Option<ConnectionId>, Refusal> {
        let asked = Withdraw { stack: self.number(), id: name };
        let (reply, files) = self.ask(&Request::Withdraw(asked), None);
        let withdrawn = match reply {
            Reply::Withdrawn(withdrawn) => withdrawn,
            Reply::Recalling(_) => return Ok(None),
            Reply::Refused(refusal) => return Err(refusal),
            other => panic!("{other:?}"),
        };
        let bytes = contents(&files[0]);
        let parcel = unpack(&bytes, 1).unwrap()[0];
        let now = clock();
        let connection = Parts::of(parcel).unwrap().connection;
        let age = now.saturating_sub(withdrawn.at);
        let id = self.stack.import(now, age, connection, &mut None).unwrap();
        let ends = self.ends(id);
        self.claim(&ends);
        Ok(Some(id))
    }

    pub(crate) fn abandon(&mut self, file: &OwnedFd, at: u64, count: u32) -> Reply {
        let asked = Abandon { stack: self.number(), at, count };
        self.ask(&Request::Abandon(asked), Some(file)).0
    }

    /// Leaves connections in TIME-WAIT, as bytes that were written at that time.
    pub(crate) fn wait_out(&mut self, bytes: &[u8], at: u64) -> Reply {
        let asked = WaitOut { stack: self.number(), at };
        self.ask(&Request::WaitOut(asked), Some(&raw_file(bytes))).0
    }

    pub(crate) fn hand(&mut self, listener: u32, (file, at): &(OwnedFd, u64), count: u32) -> Reply {
        let asked = Hand { stack: self.number(), listener, at: *at, count };
        self.ask(&Request::Hand(asked), Some(file)).0
    }
}

/// How long whoever hears something there waits for it.
fn hear_within(channel: &Channel, longest: Duration) {
    sockopt::set_socket_timeout(channel, sockopt::Timeout::Recv, Some(longest)).unwrap();
}

/// Asks for a carrier. The reply stays in it.
pub(crate) fn carrier(socket: &Path, stack: u32) -> Result<(Channel, CarrierId), Reply> {
    let channel = Channel::connect(socket).unwrap();
    hear_within(&channel, PATIENCE);
    channel.send(&Request::Carrier(stack), &[]).unwrap();
    let mut bytes = [0; 512];
    let (count, _) =
        rustix::net::recv(&channel, &mut bytes[..], rustix::net::RecvFlags::PEEK).unwrap();
    match shm::attach::parse(&bytes[..count]).unwrap() {
        Reply::Carried(id) => Ok((channel, id)),
        other => Err(other),
    }
}

/// A file with these connections.
pub(crate) fn file(connections: &[&[u8]]) -> OwnedFd {
    let parcels: Vec<Vec<u8>> =
        connections.iter().map(|connection| Parts { own: &[], connection }.joined()).collect();
    raw_file(&pack(parcels.iter().map(Vec::as_slice)).unwrap())
}

pub(crate) fn raw_file(bytes: &[u8]) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    assert_eq!(rustix::io::write(&file, bytes), Ok(bytes.len()));
    file
}

fn contents(file: &OwnedFd) -> Vec<u8> {
    let size = rustix::fs::fstat(file).unwrap().st_size;
    let mut bytes = vec![0; usize::try_from(size).unwrap()];
    assert_eq!(rustix::io::pread(file, &mut bytes[..], 0), Ok(bytes.len()));
    bytes
}

/// Two stacks in memory, with a connection between them.
struct Couple {
    stacks: [Stack<Rings>; 2],
    ids: [ConnectionId; 2],
    /// ns.
    now: u64,
}

impl Couple {
    /// The first one's end is `local`, and it has accepted the connection.
    fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let stack = || Stack::new(Config::default(), Rings).unwrap();
        let (mut ours, mut theirs) = (stack(), stack());
        let options = Options::default();
        let listener = ours.listen(local, 5, &options).unwrap();
        let id = theirs.connect(1, remote.ip(), remote.port(), local, &options).unwrap();
        let mut couple = Self { stacks: [ours, theirs], ids: [id; 2], now: 0 };
        couple.run();
        couple.ids[0] = couple.stacks[0].accept(listener).unwrap();
        couple
    }

    fn run(&mut self) {
        let [ours, theirs] = &mut self.stacks;
        let mut lists = [PacketList::default(), PacketList::default()];
        for _ in 0..20 {
            self.now += 1_000_000;
            let now = self.now;
            theirs.flush(now, &mut lists[0]);
            for packet in std::mem::take(&mut lists[0].packets) {
                ours.input(now, &[Packet::new(&packet)], &mut lists[1]);
            }
            ours.flush(now, &mut lists[1]);
            for packet in std::mem::take(&mut lists[1].packets) {
                theirs.input(now, &[Packet::new(&packet)], &mut lists[0]);
            }
        }
    }
}

/// An established connection between these ends, as the one at `local` has exported it.
pub(crate) fn established(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let Couple { stacks: [mut ours, _], ids, .. } = Couple::new(local, remote);
    ours.export(clock(), ids[0], Contents::Copied).unwrap().bytes
}

/// Connections with these ends that are in TIME-WAIT, as bytes that can have been written at any time.
pub(crate) fn waiting(all: &[(SocketAddr, SocketAddr)]) -> Vec<u8> {
    let (mut waits, mut written) = (Vec::new(), 0);
    for (local, remote) in all {
        let mut couple = Couple::new(*local, *remote);
        for side in 0..2 {
            couple.stacks[side].close(couple.ids[side]);
            couple.run();
        }
        written = couple.now;
        waits.extend(couple.stacks[0].export_time_waits(written, 1));
    }
    assert_eq!(waits.len(), all.len());
    TimeWait::write(&waits, written)
}
