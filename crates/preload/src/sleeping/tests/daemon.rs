//! In the daemon's place: hands out a stack's queues, sends datagrams at random times, and sleeps as a worker does.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use shm::attach::{Channel, ChannelPlace, RingPlace};
use shm::bell::{Caller, Drain, RINGS, Watch, inward, outward};
use shm::session::{
    ClaimsPlace, ConnectionsPlace, GOOD_CHECKSUM, PROTOCOL, Placement, Reply, Request, StackOpened,
    VERSION, Welcome,
};
use shm::{Consumer, Meta, Producer, Segment};

use super::{END, HEADERS, PATIENCE, PORT, READY, Random, SLEEPERS};

/// Datagrams that a sleeper may owe an answer to.
const OWED: u64 = 3;
const CLAIMS: u32 = 64;

pub(super) struct Daemon(OwnedFd);

/// What a worker of the daemon has of a stack.
pub(super) struct Worker {
    out: Producer,
    back: Consumer,
    caller: Caller,
    watch: Watch,
    drain: Drain,
    pub(super) session: Channel,
}

impl Daemon {
    pub(super) fn listen(path: &Path) -> Self {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let listener = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(path).unwrap()).unwrap();
        listen(&listener, 1).unwrap();
        Self(listener)
    }

    /// The process comes, and hears where its stack is to run.
    pub(super) fn meet(self, placement: Placement) -> Channel {
        let session = Channel::of(accept_with(&self.0, SocketFlags::CLOEXEC).unwrap());
        let Request::Hello(_) = session.receive::<Request>().unwrap().message else { panic!() };
        let (protocol, daemon, addresses) = (PROTOCOL, VERSION.into(), Vec::new());
        let welcome = Welcome { protocol, daemon, client: 1, addresses, placement };
        session.send(&Reply::Welcome(welcome), &[]).unwrap();
        session
    }

    pub(super) fn serve(self) -> Worker {
        let session = self.meet(Placement::Inline);
        let hear = || session.receive::<Request>().unwrap().message;
        let Request::OpenStack(asked) = hear() else { panic!() };
        let place = |offset| RingPlace { offset, slots: asked.slots, capacity: asked.capacity };
        let layout = place(0).layout().unwrap();
        let step = layout.bytes().next_multiple_of(64);
        let claims = 2 * step;
        let connections = claims + shm::claims::bytes(CLAIMS).unwrap().next_multiple_of(64);
        let length = connections + shm::connections::bytes(asked.connections).unwrap();
        let segment = Arc::new(Segment::create("millrace-test", length).unwrap());
        let region = |at| segment.region(at, layout.bytes()).unwrap();
        let (out, back) = (
            Producer::new(region(0), layout).unwrap(),
            Consumer::new(region(step), layout).unwrap(),
        );
        let (caller, bell) = outward().unwrap();
        let (watch, drain, own) = inward().unwrap();
        let opened = StackOpened {
            stack: 1,
            rings: ChannelPlace { rings: vec![[place(0), place(step as u64)]] },
            claims: ClaimsPlace { offset: claims as u64, places: CLAIMS, key: [1, 2] },
            connections: ConnectionsPlace { offset: connections as u64, places: asked.connections },
            seed: [3, 4],
        };
        let files = [segment.as_fd(), bell.as_fd(), own.as_fd()];
        session.send(&Reply::StackOpened(opened), &files).unwrap();
        let Request::StartStack(1) = hear() else { panic!() };
        session.send(&Reply::StackStarted(1), &[]).unwrap();
        Worker { out, back, caller, watch, drain, session }
    }
}

impl Worker {
    /// Sends so many datagrams, and waits for as many answers. Gives how often it has slept.
    pub(super) fn play(mut self, steps: u64) -> u64 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let (mut sent, mut answered) = ([0; SLEEPERS], [0; SLEEPERS]);
        let (mut slept, mut rings) = (0, 0);
        self.wait_until_ready();
        while answered.iter().sum::<u64>() < steps {
            let to = random.below(SLEEPERS as u64) as usize;
            let owes = sent[to] - answered[to];
            if sent.iter().sum::<u64>() < steps && owes < OWED && random.below(4) > 0 {
                self.send(to, sent[to]);
                sent[to] += 1;
            }
            let most = if random.below(64) == 0 { 20_000 } else { 300 };
            random.dawdle(most);
            if !self.receive(&mut answered) && sent != answered && random.below(8) == 0 {
                slept += 1;
                rings += u32::from(self.sleep());
            }
            if rings >= RINGS {
                self.drain.drain();
                rings = 0;
            }
        }
        (0..SLEEPERS).for_each(|to| self.send(to, END));
        slept
    }

    /// Datagrams that come before are answered by ICMP.
    fn wait_until_ready(&mut self) {
        let end = Instant::now() + Duration::from_secs(PATIENCE);
        for _ in 0..SLEEPERS {
            while self.take().is_none_or(|(_, number)| number != READY) {
                assert!(Instant::now() < end, "the sleepers don't begin");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Until an answer comes, of which one at least is owed. Gives whether the bell was rung.
    fn sleep(&mut self) -> bool {
        self.back.sleeps().announce();
        let sleeps = !self.back.has_next();
        if sleeps {
            let mut files = [PollFd::new(&self.watch, PollFlags::IN)];
            let longest = Timespec { tv_sec: PATIENCE as i64, tv_nsec: 0 };
            let woken = poll(&mut files, Some(&longest)).unwrap() > 0;
            assert!(woken, "asleep for {PATIENCE} s; has an answer: {}", self.back.has_next());
            self.watch.clear();
        }
        self.back.sleeps().withdraw();
        sleeps
    }

    fn send(&mut self, to: usize, number: u64) {
        let mut packet = [0; HEADERS + 8];
        packet[0] = 0x45;
        packet[3] = packet.len() as u8;
        (packet[8], packet[9]) = (64, 17);
        packet[12..16].copy_from_slice(&[192, 0, 2, 9]);
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        let words = packet[..20].chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        let sum: u32 = words.map(u32::from).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[20..22].copy_from_slice(&9_u16.to_be_bytes());
        packet[22..24].copy_from_slice(&(PORT + to as u16).to_be_bytes());
        packet[24..26].copy_from_slice(&16_u16.to_be_bytes());
        packet[HEADERS..].copy_from_slice(&number.to_be_bytes());
        self.out.push(&packet, Meta { port: 0, flags: GOOD_CHECKSUM }).unwrap();
        if self.out.consumer_sleeps().claim_wake() {
            self.caller.ring();
        }
    }

    /// Takes answers out; each sleeper's have to come in order. Gives whether there were any.
    fn receive(&mut self, answered: &mut [u64; SLEEPERS]) -> bool {
        let mut came = false;
        while let Some((from, number)) = self.take() {
            let expected = &mut answered[from];
            assert_eq!(number, *expected, "sleeper {from} has missed one");
            *expected += 1;
            came = true;
        }
        came
    }

    /// The next datagram: the sleeper that has sent it, and what it carries.
    fn take(&mut self) -> Option<(usize, u64)> {
        let taken = self.back.next()?;
        let mut packet = [0; HEADERS + 8];
        assert_eq!(self.back.copy(&taken, &mut packet), packet.len());
        self.back.release(taken);
        assert_eq!(packet[9], 17, "no datagram");
        let from = u16::from_be_bytes([packet[20], packet[21]]) - PORT;
        Some((usize::from(from), u64::from_be_bytes(*packet.last_chunk().unwrap())))
    }
}
