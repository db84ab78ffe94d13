//! Connections whose FIFOs lie in shared memory, with a process beside them that lies: another thread scribbles over
//! indices and contents through a mapping of its own, as fast as it can, while the stack transmits from them and receives
//! into them. Only that connection suffers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shm::{Region, Segment};
use transport::options::{MILLISECOND, SECOND};
use transport::{
    Buffers, ByteFifo, Config, ConnectionId, Contents, Grant, Opening, Options, Packet, PacketList,
    Pair, Reason, Stack, Write,
};
use wire::checksum::Sum;
use wire::{Protocol, ipv4, tcp};

/// Bytes of a FIFO, a power of two.
const CAPACITY: usize = 1 << 15;
/// Its words: bytes read and written since the beginning; then its bytes.
const READ: usize = 0;
const WRITTEN: usize = 64;
const BYTES: usize = 128;
const PLACE: usize = BYTES + CAPACITY;

/// Which end of a FIFO is the stack's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reads,
    Writes,
}

/// A ring in shared memory.
#[derive(Debug)]
struct Shared {
    region: Region,
    end: End,
    /// The index of its own end, which it need not read back; `None`: it believes even that of the shared memory, and
    /// says of lengths what it finds there.
    own: Cell<Option<u32>>,
    held: Rc<Cell<usize>>,
    /// Lies before each word is read, besides the thread that does: a seed's lies come again.
    liar: Option<RefCell<Liar>>,
}

impl Shared {
    fn word(&self, offset: usize, end: End) -> u32 {
        self.liar.iter().for_each(|liar| liar.borrow_mut().lie());
        let own = self.own.get().filter(|_| self.end == end);
        own.or_else(|| self.region.load(offset)).unwrap_or(0)
    }

    fn set(&self, offset: usize, end: End, value: u32) {
        self.region.store(offset, value);
        if self.end == end {
            self.own.set(self.own.get().map(|_| value));
        }
    }

    /// Where the readable bytes begin, and how many there are.
    fn span(&self) -> (u32, usize) {
        let (read, written) = (self.word(READ, End::Reads), self.word(WRITTEN, End::Writes));
        let length = written.wrapping_sub(read) as usize;
        // The careful one knows what it may have.
        (read, if self.own.get().is_some() { length.min(CAPACITY) } else { length })
    }

    fn around(start: u32, count: usize) -> (usize, usize) {
        let at = start as usize % CAPACITY;
        (at, count.min(CAPACITY - at))
    }

    fn copy_out(&self, start: u32, target: &mut [u8]) -> usize {
        let (at, first) = Self::around(start, target.len());
        let (front, back) = target.split_at_mut(first);
        let back_length = back.len().min(CAPACITY - first);
        self.region.read(BYTES + at, front) + self.region.read(BYTES, &mut back[..back_length])
    }

    fn copy_in(&self, start: u32, bytes: &[u8]) -> usize {
        let bytes = &bytes[..bytes.len().min(CAPACITY)];
        let (at, first) = Self::around(start, bytes.len());
        let (front, back) = bytes.split_at(first);
        self.region.write(BYTES + at, front) + self.region.write(BYTES, back)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.held.set(self.held.get() - 1);
    }
}

impl ByteFifo for Shared {
    fn len(&self) -> usize {
        self.span().1
    }

    fn room(&self) -> usize {
        CAPACITY.saturating_sub(self.span().1)
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let (start, length) = self.span();
        let room = CAPACITY.saturating_sub(length).saturating_sub(offset);
        let start = start.wrapping_add(length as u32).wrapping_add(offset as u32);
        self.copy_in(start, &bytes[..bytes.len().min(room)])
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        let (start, length) = self.span();
        self.copy_out(start.wrapping_add(length as u32).wrapping_add(offset as u32), target)
    }

    fn commit(&mut self, count: usize) {
        let count = count.min(self.room()) as u32;
        self.set(WRITTEN, End::Writes, self.word(WRITTEN, End::Writes).wrapping_add(count));
    }

    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        let (start, length) = self.span();
        let count = target.len().min(length.saturating_sub(offset));
        self.copy_out(start.wrapping_add(offset as u32), &mut target[..count])
    }

    fn consume(&mut self, count: usize) {
        let (start, length) = self.span();
        self.set(READ, End::Reads, start.wrapping_add(count.min(length) as u32));
    }

    fn resize(&mut self, _: usize) -> usize {
        CAPACITY
    }
}

/// Gives each connection a pair of places; the first of a stack's connections has those that somebody else writes, too.
struct Segments {
    segment: Arc<Segment>,
    opened: usize,
    careful: bool,
    /// Of the liar, if there is one.
    seed: Option<u64>,
    held: Rc<Cell<usize>>,
}

const CONNECTIONS: usize = 2;

impl Segments {
    fn new(careful: bool, seed: Option<u64>) -> Self {
        let segment = Segment::create("fifos", 2 * CONNECTIONS * PLACE).unwrap();
        let (segment, held) = (Arc::new(segment), Rc::default());
        Self { segment, opened: 0, careful, seed, held }
    }
}

impl Buffers for Segments {
    type Fifo = Shared;

    fn open(&mut self, _: &Opening) -> Grant<Shared> {
        if self.opened == CONNECTIONS {
            return Grant::Refused;
        }
        let fifo = |place: usize, end| {
            let region = self.segment.region((2 * self.opened + place) * PLACE, PLACE).unwrap();
            self.held.set(self.held.get() + 1);
            let own = Cell::new((self.careful || self.opened > 0).then_some(0));
            let seed = self.seed.filter(|_| self.opened == 0);
            let liar = seed.map(|seed| RefCell::new(Liar::new(region.clone(), seed)));
            Shared { region, end, own, held: Rc::clone(&self.held), liar }
        };
        let pair = Pair { receive: fifo(0, End::Writes), transmit: fifo(1, End::Reads) };
        self.opened += 1;
        Grant::Given(pair)
    }

    fn close(&mut self, _: ConnectionId, _: Pair<Shared>) {}
}

fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Writes into a FIFO whatever might hurt.
struct Liar {
    region: Region,
    next: Box<dyn FnMut() -> u64 + Send>,
}

impl std::fmt::Debug for Liar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Liar").finish_non_exhaustive()
    }
}

impl Liar {
    fn new(region: Region, seed: u64) -> Self {
        Self { region, next: Box::new(random(seed)) }
    }

    fn lie(&mut self) {
        let (number, region) = ((self.next)(), &self.region);
        let word = if number & 1 == 0 { READ } else { WRITTEN };
        let (value, old) = ((number >> 32) as u32, region.load(word).unwrap());
        match number >> 1 & 15 {
            0 => region.store(word, value),
            1 => region.store(word, old.wrapping_add(value % 3000)),
            2 => region.store(word, old.wrapping_sub(value % 3000)),
            3 => region.store(WRITTEN, region.load(READ).unwrap().wrapping_add(value % 40_000)),
            4 => region.store(word, u32::MAX - value % 100),
            5 => region.write(BYTES + value as usize % CAPACITY, &[value as u8; 700]) > 0,
            _ => true,
        };
    }
}

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const OWN: usize = 0;
const PEER: usize = 1;

struct Wire {
    stacks: [Stack<Segments>; 2],
    now: u64,
    /// Packets on the way to each.
    flying: [Vec<Vec<u8>>; 2],
    next: Box<dyn FnMut() -> u64>,
    /// What was advertised by the own stack on the connection that suffers: the highest right edge so far.
    edge: Option<u32>,
    /// Its port.
    port: u16,
    packets: usize,
}

impl Wire {
    /// Lets both stacks talk, losing some; what leaves must be sound.
    fn round(&mut self) {
        for _ in 0..3 {
            self.now += (self.next)() % (4 * MILLISECOND);
            for side in [OWN, PEER] {
                let mut list = PacketList::default();
                let arrived: Vec<Vec<u8>> = std::mem::take(&mut self.flying[side]);
                let packets: Vec<Packet<'_>> =
                    arrived.iter().map(|bytes| Packet::new(bytes)).collect();
                self.stacks[side].input(self.now, &packets, &mut list);
                self.stacks[side].expire(self.now, &mut list);
                self.stacks[side].flush(self.now, &mut list);
                while self.stacks[side].poll_event().is_some() {}
                assert!(list.packets.len() < 200, "{} packets at once", list.packets.len());
                for packet in list.packets {
                    self.packets += 1;
                    self.check(side, &packet);
                    if (self.next)() % 20 != 0 {
                        self.flying[1 - side].push(packet);
                    }
                }
            }
        }
    }

    /// Whole, with right sums, and with a window that is not taken back (RFC 9293 3.8.6).
    fn check(&mut self, side: usize, packet: &[u8]) {
        let header = ipv4::Header::parse(packet).unwrap();
        assert_eq!(usize::from(header.total_length()), packet.len());
        let bytes = &packet[header.header_length()..];
        let segment = tcp::Segment::parse(bytes).unwrap();
        let (source, destination) = (header.source(), header.destination());
        let pseudo = Sum::new().pseudo_v4(source, destination, Protocol::TCP, bytes.len() as u16);
        assert!(segment.is_intact(pseudo), "the sum of {} bytes", bytes.len());
        let header = segment.header;
        let tells = header.flags().0 & (tcp::Flags::SYN | tcp::Flags::RST).0 == 0;
        if side == OWN && header.source_port() == self.port && tells {
            let edge = header.acknowledgment().wrapping_add(u32::from(header.window()) << SCALE);
            let before = self.edge.replace(edge).unwrap_or(edge);
            let more = edge.wrapping_sub(before) as i32;
            assert!(more >= 0, "the window was taken back by {more}");
        }
    }

    /// Exports the connection that suffers, and imports it again.
    fn renew(&mut self, id: ConnectionId, contents: Contents) -> ConnectionId {
        let own = &mut self.stacks[OWN];
        let Ok(mut exported) = own.export(self.now, id, contents) else { return id };
        own.import(self.now, 0, &exported.bytes, &mut exported.fifos).unwrap_or(id)
    }
}

/// Ends the liar, also when the test has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Windows are in words of so many bits more than the header's.
const SCALE: u32 = 0;
const GOOD: usize = 100_000;

/// One run. Gives how many packets there were.
fn run(seed: u64, careful: bool, contents: Option<Contents>) -> usize {
    let buffers = Segments::new(careful, Some(seed));
    let theirs = buffers.segment.as_fd().try_clone_to_owned().unwrap();
    let theirs = Arc::new(Segment::from_file(theirs).unwrap());
    let held = Rc::clone(&buffers.held);
    let mut next = random(seed);
    let stack = |number, buffers| {
        Stack::new(Config { seed: [number, seed], ..Config::default() }, buffers).unwrap()
    };
    let mut wire = Wire {
        stacks: [stack(1, buffers), stack(2, Segments::new(true, None))],
        now: SECOND,
        flying: Default::default(),
        next: Box::new(random(seed ^ 0xabcd)),
        edge: None,
        port: 4000,
        packets: 0,
    };
    let address = (ADDRESSES[PEER], 80).into();
    let options = Options { window_scale: false, ..Options::default() };
    let listener = wire.stacks[PEER].listen(address, 5, &options).unwrap();
    let mut ids = [[None; 2]; CONNECTIONS];
    for (place, ids) in ids.iter_mut().enumerate() {
        let (local, port) = (ADDRESSES[OWN].into(), 4000 + place as u16);
        let own = wire.stacks[OWN].connect(wire.now, local, port, address, &options).unwrap();
        let accepted = (0..10_000).find_map(|_| {
            wire.round();
            wire.stacks[PEER].accept(listener)
        });
        *ids = [Some(own), accepted];
    }
    let [[Some(mut odd), Some(odd_peer)], [Some(good), Some(good_peer)]] = ids else {
        panic!("no connections: {ids:?}")
    };
    let (begun, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let liars = [0, 1].map(|place| {
            Liar::new(theirs.region(place * PLACE, PLACE).unwrap(), seed * 7 + place as u64)
        });
        let liar = scope.spawn(|| scribble(liars, &stop, &begun));
        while !begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let until_here = Stop(&stop);
        let data: Vec<u8> =
            (0..GOOD as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut sent, mut received) = ([0, 0], [Vec::new(), Vec::new()]);
        let mut buffer = vec![0; 65_536];
        let mut rounds = 0;
        while rounds < 400 || received.iter().any(|received| received.len() < GOOD) {
            rounds += 1;
            assert!(rounds < 20_000, "the other connection stands: {sent:?}");
            for (side, id) in [good, good_peer].into_iter().enumerate() {
                sent[side] += wire.stacks[side].send(id, &data[sent[side]..]).unwrap();
                let count = wire.stacks[side].recv(id, &mut buffer).unwrap();
                received[side].extend_from_slice(&buffer[..count]);
            }
            // What the liar's application says has no more to do with the FIFOs than the rest.
            let (stack, number) = (&mut wire.stacks[OWN], next());
            let count = (number >> 8) as usize % 5000;
            match number & 7 {
                0 => stack.sent(odd, Write { more: true, ..Write::default() }),
                1 => stack.received(odd, count),
                2 => drop(stack.send(odd, &data[..count])),
                3 => drop(stack.recv(odd, &mut buffer[..count])),
                4 => drop(stack.peek(odd, count, &mut buffer[..count])),
                _ => stack.sent(odd, Write::default()),
            }
            let _ = wire.stacks[PEER].send(odd_peer, &data[..count]);
            let _ = wire.stacks[PEER].recv(odd_peer, &mut buffer);
            wire.round();
            if let Some(contents) = contents.filter(|_| number % 64 == 0) {
                odd = wire.renew(odd, contents);
            }
        }
        for (side, received) in received.iter().enumerate() {
            assert!(*received == data, "seed {seed}: other bytes arrived at {side}");
        }
        let peer = wire.stacks[PEER].counters();
        assert_eq!(
            [Reason::TcpHeader, Reason::TcpChecksum].map(|reason| peer.dropped(reason)),
            [0, 0]
        );
        for (side, id) in [(OWN, odd), (OWN, good), (PEER, odd_peer), (PEER, good_peer)] {
            wire.stacks[side].abort(id);
        }
        for _ in 0..100 {
            wire.now += 10 * SECOND;
            wire.round();
        }
        drop(until_here);
        liar.join().unwrap();
    });
    assert_eq!([OWN, PEER].map(|side: usize| wire.stacks[side].connections()), [0, 0]);
    assert_eq!(held.get(), 0, "FIFOs that nobody gave back");
    wire.packets
}

/// Lies until told to stop.
fn scribble(mut liars: [Liar; 2], stop: &AtomicBool, begun: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        liars.iter_mut().for_each(Liar::lie);
        begun.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_process_that_lies_harms_only_its_connection() {
    let ways = [None, Some(Contents::InPlace), Some(Contents::Copied)];
    for seed in 1..=24 {
        let packets = run(seed, seed % 2 == 0, ways[seed as usize % 3]);
        assert!(packets > 100, "seed {seed}: {packets} packets");
    }
}
