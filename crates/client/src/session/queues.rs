//! A stack's packet queues: a pair of rings with each worker of the daemon.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use shm::attach::{ChannelPlace, Direction};
use shm::claims::ClaimsWriter;
use shm::connections::{ConnectionsError, ConnectionsWriter};
use shm::session::{ClaimsPlace, ConnectionsPlace, GOOD_CHECKSUM, StackOpened};
use shm::{Doorbell, Filling, Meta, Producer, Segment, Taken, Trusting};
use transport::{Departure, Packet, Sink};

use crate::Error;
use crate::opened::{check_spans, doorbell, nonsense, ring_spans, rings, span};

/// Packets that are taken out of a ring at once.
const BURST: usize = 64;
/// The same when there is little to do.
const FEW: usize = 4;

/// All queues of a stack.
#[derive(Debug)]
pub struct Queues {
    /// The stack's number, as in `millrace show stacks`.
    pub number: u32,
    /// What all stacks of the machine share ([`transport::Config::seed`]).
    pub seed: [u64; 2],
    /// From the workers.
    pub inbound: Inbound,
    /// To the workers.
    pub outbound: Outbound,
    bell: Doorbell,
    claims: Option<(ClaimsWriter, [u64; 2])>,
    connections: Option<ConnectionsWriter>,
}

/// The rings from the workers.
#[derive(Debug)]
pub struct Inbound {
    rings: Vec<Trusting>,
    /// Packets that were taken out of a ring.
    taken: Vec<Taken>,
    /// A packet of several slots in one piece.
    scratch: Vec<u8>,
}

/// The rings to the workers. All packets go to one worker, so that flows stay in order.
#[derive(Debug)]
pub struct Outbound {
    ring: Filling,
    worker: Doorbell,
    /// Something was pushed since the worker was last rung.
    touched: bool,
    /// Bytes of the last packet, if it found no room; 0: it did.
    wanted: usize,
    /// The packet that is being made, if it takes several slots; others are made in their slot.
    long: Box<[u8]>,
    /// It does.
    is_long: bool,
}

impl Queues {
    /// Maps what the daemon has handed over.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Nonsense`], [`Error::System`].
    pub fn map(opened: StackOpened, files: Vec<OwnedFd>) -> Result<Self, Error> {
        check_apart(&opened)?;
        let StackOpened { stack, rings: place, seed, claims, connections } = opened;
        let workers = place.rings.len();
        if workers == 0 || files.len() != 2 + workers {
            let count = files.len();
            return Err(nonsense(format!(
                "{count} descriptors for a stack with {workers} workers"
            )));
        }
        let mut files = files.into_iter();
        let mut next = || files.next().ok_or_else(|| nonsense("a descriptor is missing"));
        let segment = Arc::new(Segment::from_file(next()?)?);
        let bell = doorbell(next()?)?;
        let claims = Some((claims_at(&segment, claims)?, claims.key));
        let connections = Some(connections_at(&segment, connections)?);
        // Stacks differ in where they send.
        let home = stack as usize % workers;
        let (mut receive, mut transmit) = (Vec::new(), None);
        for worker in 0..workers {
            let theirs = doorbell(next()?)?;
            let (from, to) = pair(&segment, &place, worker)?;
            receive.push(from);
            if worker == home {
                // SAFETY: the consumer is the daemon, which a client trusts to keep to the protocol (docs/build.md);
                // nothing overlaps, as `check_apart` saw, and this is the ring's only producer.
                transmit = Some((unsafe { to.trust() }, theirs));
            }
        }
        let Some((ring, worker)) = transmit else { return Err(nonsense("a stack without rings")) };
        let long = vec![0; usize::from(u16::MAX)].into_boxed_slice();
        Ok(Self {
            number: stack,
            seed,
            inbound: Inbound {
                rings: receive,
                taken: Vec::with_capacity(BURST),
                scratch: Vec::new(),
            },
            outbound: Outbound { ring, worker, touched: false, wanted: 0, long, is_long: false },
            bell,
            claims,
            connections,
        })
    }

    /// The table in which the stack shows its connections. `None`: it was taken already.
    pub fn take_connections(&mut self) -> Option<ConnectionsWriter> {
        self.connections.take()
    }

    /// The table in which the stack claims its flows, and the key of its tags: the workers look there when who serves has
    /// changed. `None`: it was taken already.
    pub fn take_claims(&mut self) -> Option<(ClaimsWriter, [u64; 2])> {
        self.claims.take()
    }

    /// Before sleeping: the workers ring when something comes, or when there is room again if `for_room`. `false`: there is
    /// something already, do not sleep.
    #[must_use]
    pub fn arm(&mut self, for_room: bool) -> bool {
        self.outbound.ring();
        self.inbound.rings.iter().for_each(|ring| ring.sleeps().announce());
        if for_room {
            self.outbound.ring.sleeps().announce();
        }
        let has_room = for_room && self.outbound.ring.has_room_for(self.outbound.wanted);
        !(has_room || self.inbound.has_packets())
    }

    /// The workers need not ring any more.
    pub fn withdraw(&self) {
        self.inbound.rings.iter().for_each(|ring| ring.sleeps().withdraw());
        self.outbound.ring.sleeps().withdraw();
    }

    /// Takes back what was rung.
    pub fn clear(&self) {
        self.bell.clear();
    }
}

impl AsFd for Queues {
    /// The doorbell: readable after [`Queues::arm`] when a worker has rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Rings, claims and connections lie apart.
fn check_apart(opened: &StackOpened) -> Result<(), Error> {
    let StackOpened { rings, claims, connections, .. } = opened;
    let mut spans = ring_spans(std::slice::from_ref(rings))?;
    // A table that makes no sense takes no memory, and is refused below.
    let claimed = shm::claims::bytes(claims.places).unwrap_or(0);
    let shown = shm::connections::bytes(connections.places).unwrap_or(0);
    spans.push(span(claims.offset, claimed as u64)?);
    spans.push(span(connections.offset, shown as u64)?);
    check_spans(spans)
}

fn claims_at(segment: &Arc<Segment>, place: ClaimsPlace) -> Result<ClaimsWriter, Error> {
    let outside = || nonsense("claims that do not lie within the segment");
    let bytes = shm::claims::bytes(place.places).map_err(|error| nonsense(error.to_string()))?;
    let offset = usize::try_from(place.offset).map_err(|_| outside())?;
    let region = segment.region(offset, bytes).ok_or_else(outside)?;
    ClaimsWriter::new(region, place.places).map_err(|error| nonsense(error.to_string()))
}

fn connections_at(
    segment: &Arc<Segment>,
    place: ConnectionsPlace,
) -> Result<ConnectionsWriter, Error> {
    let outside = || nonsense("a table of connections that does not lie within the segment");
    let wrong = |error: ConnectionsError| nonsense(error.to_string());
    let bytes = shm::connections::bytes(place.places).map_err(wrong)?;
    let offset = usize::try_from(place.offset).map_err(|_| outside())?;
    let region = segment.region(offset, bytes).ok_or_else(outside)?;
    ConnectionsWriter::new(region, place.places).map_err(wrong)
}

fn pair(
    segment: &Arc<Segment>,
    place: &ChannelPlace,
    worker: usize,
) -> Result<(Trusting, Producer), Error> {
    let at = |direction| place.ring(worker, direction);
    match (at(Direction::Receive), at(Direction::Transmit)) {
        (Some(receive), Some(transmit)) => rings(segment, receive, transmit),
        _ => Err(nonsense("a worker without rings")),
    }
}

impl Inbound {
    /// Whether a packet waits.
    #[inline]
    #[must_use]
    pub fn has_packets(&self) -> bool {
        self.rings.iter().any(|ring| ring.has_next())
    }

    /// Takes packets out of each ring, in bursts of at most 64, and gives back their slots. Gives how many there were.
    pub fn receive(&mut self, mut input: impl FnMut(&[Packet<'_>])) -> usize {
        let Self { rings, taken, scratch } = self;
        let mut count = 0;
        for ring in rings {
            while taken.len() < BURST {
                let Some(next) = ring.next() else { break };
                let long = next.slots() > 1;
                taken.push(next);
                if long {
                    break;
                }
            }
            count += taken.len();
            match taken.len() {
                0 => continue,
                // Memory for many is not cleared for few.
                1..=FEW => deliver::<FEW>(ring, taken, scratch, &mut input),
                _ => deliver::<BURST>(ring, taken, scratch, &mut input),
            }
            taken.drain(..).for_each(|taken| ring.release(taken));
        }
        count
    }
}

/// Packets of one slot each where they lie, `MOST` at most; the last one may be longer.
fn deliver<const MOST: usize>(
    ring: &Trusting,
    taken: &[Taken],
    scratch: &mut Vec<u8>,
    input: &mut impl FnMut(&[Packet<'_>]),
) {
    let good = |taken: &Taken| taken.meta().flags & GOOD_CHECKSUM != 0;
    let mut packets = [Packet::new(&[]); MOST];
    let mut short = 0;
    for next in taken.iter().filter(|next| next.slots() == 1) {
        let (Some(bytes), Some(place)) = (ring.bytes(next, 0), packets.get_mut(short)) else {
            continue;
        };
        *place = Packet { bytes, checksum_is_good: good(next) };
        short += 1;
    }
    if short > 0 {
        input(packets.get(..short).unwrap_or_default());
    }
    for long in taken.iter().filter(|next| next.slots() > 1) {
        scratch.resize(long.length(), 0);
        ring.copy(long, scratch);
        input(&[Packet { bytes: scratch, checksum_is_good: good(long) }]);
    }
}

impl Outbound {
    /// Whether packets wait for room.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.wanted > 0
    }

    /// Wakes the worker if it sleeps and was given something.
    #[inline]
    pub fn ring(&mut self) {
        if std::mem::take(&mut self.touched) {
            self.worker.ring(self.ring.consumer_sleeps());
        }
    }
}

impl Sink for Outbound {
    #[inline]
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.is_long = length > self.ring.capacity();
        if self.is_long {
            // What never fits is lost, as in any network: nothing behind it waits for it.
            let fits = length > self.ring.longest() || self.ring.has_room_for(length);
            self.wanted = if fits { 0 } else { length };
            return fits.then(|| self.long.get_mut(..length)).flatten();
        }
        self.wanted = if self.ring.has_room() { 0 } else { length };
        self.ring.slot(length)
    }

    #[inline]
    fn send(&mut self, departure: Departure) {
        self.touched = true;
        if self.is_long {
            let packet = self.long.get(..departure.length).unwrap_or_default();
            let _ = self.ring.push(packet, Meta::default());
        } else {
            self.ring.publish(departure.length, Meta::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use shm::attach::RingPlace;
    use shm::{Consumer, Layout};

    use super::*;

    #[test]
    fn rings_and_tables_in_the_same_memory_are_refused() {
        let ring = |offset| RingPlace { offset, slots: 4, capacity: 100 };
        let each = ring(0).layout().unwrap().bytes() as u64;
        let opened = |claims, connections| StackOpened {
            stack: 1,
            rings: ChannelPlace { rings: vec![[ring(0), ring(each)]] },
            claims: ClaimsPlace { offset: claims, places: 16, key: [0; 2] },
            connections: ConnectionsPlace { offset: connections, places: 1 },
            seed: [0; 2],
        };
        let (free, claimed) = (2 * each, shm::claims::bytes(16).unwrap() as u64);
        assert!(check_apart(&opened(free, free + claimed)).is_ok());
        assert!(check_apart(&opened(free - 64, free + claimed)).is_err());
        assert!(check_apart(&opened(free, free + claimed - 64)).is_err());
        assert!(check_apart(&opened(free, u64::MAX)).is_err());
    }

    fn departure(length: usize) -> Departure {
        Departure { length, segment_size: 0, header_length: 28 }
    }

    #[test]
    fn a_long_packet_waits_for_room_and_one_that_never_fits_does_not() {
        let layout = Layout::new(4, 100).unwrap();
        let segment = Arc::new(Segment::create("queues", layout.bytes()).unwrap());
        let region = || segment.region(0, layout.bytes()).unwrap();
        let producer = Producer::new(region(), layout).unwrap();
        let mut worker = Consumer::new(region(), layout).unwrap();
        // SAFETY: the consumer keeps to the protocol.
        let ring = unsafe { producer.trust() };
        let mut out = Outbound {
            ring,
            worker: Doorbell::new().unwrap(),
            touched: false,
            wanted: 0,
            long: vec![0; 1000].into(),
            is_long: false,
        };
        for _ in 0..3 {
            out.buffer(50).unwrap().fill(5);
            out.send(departure(50));
        }
        assert!(out.buffer(150).is_none() && out.is_starved());
        assert!(!out.ring.has_room_for(out.wanted), "a slot alone is no reason to wake up");
        assert!(out.buffer(60).is_some() && !out.is_starved(), "a short one has room");
        for _ in 0..3 {
            let taken = worker.next().unwrap();
            worker.release(taken);
        }
        out.buffer(150).unwrap().fill(7);
        out.send(departure(150));
        let taken = worker.next().unwrap();
        let mut bytes = vec![0; taken.length()];
        worker.copy(&taken, &mut bytes);
        worker.release(taken);
        assert_eq!(bytes, [7; 150]);
        // Half of the ring at most: it is lost, and nothing waits for it.
        assert!(out.buffer(201).is_some() && !out.is_starved());
        out.send(departure(201));
        assert!(worker.next().is_none());
    }
}
