//! Between the stacks of one worker: packets of connections from one of its processes to another go from stack to stack, on the
//! worker's own thread. To the transport that is a path beside the network, as a link is.

use graph::StackId;
use shm::session::{LINK_LONGEST, LINK_PACKET};
use transport::{Departure, Ends, Offloads, Packet, Path, Sink};

/// Bytes that wait for a stack at most: what a few connections have under way.
pub(super) const ROOM: usize = 256 << 10;
/// Bytes of data of a packet with several segments, as on links: both headers fit in besides.
const BATCH: u32 = 65_000;
/// Packets that a stack takes in at once.
const BURST: usize = 64;

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    from: u16,
    at: usize,
    length: usize,
}

/// What waits for a stack.
#[derive(Debug)]
pub(super) struct Inbox {
    bytes: Box<[u8]>,
    used: usize,
    packets: Vec<Waiting>,
    /// What others have turned away that this stack had sent them.
    turned: Vec<(u16, Ends)>,
}

impl Inbox {
    fn new() -> Self {
        let bytes = vec![0; ROOM].into_boxed_slice();
        Self { bytes, used: 0, packets: Vec::new(), turned: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.turned.is_empty()
    }

    /// The packets, in runs of those from one stack. Gives how many there were.
    pub(super) fn packets(&self, mut each: impl FnMut(Path, &[Packet<'_>])) -> usize {
        let mut packets = [Packet::new(&[]); BURST];
        for run in self.packets.chunk_by(|one, next| one.from == next.from) {
            for run in run.chunks(BURST) {
                for (place, Waiting { at, length, .. }) in packets.iter_mut().zip(run) {
                    let bytes = self.bytes.get(*at..*at + *length).unwrap_or_default();
                    *place = Packet { bytes, checksum_is_good: true };
                }
                let from = run.first().map_or(0, |first| first.from);
                each(path(from), packets.get(..run.len()).unwrap_or_default());
            }
        }
        self.packets.len()
    }

    /// What was turned away: by whom, and between which ends.
    pub(super) fn turned(&self) -> &[(u16, Ends)] {
        &self.turned
    }
}

/// A stack's place.
#[derive(Debug)]
struct Seat {
    stack: StackId,
    /// Others may send to it.
    is_open: bool,
    /// `None`: it looks through it.
    inbox: Option<Inbox>,
}

/// The stacks of a worker. A stack's number here is its path, from 1 on.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    seats: Vec<Option<Seat>>,
    /// Packets wait.
    is_busy: bool,
}

fn path(number: u16) -> Path {
    Path { number, mtu: LINK_PACKET }
}

impl Exchange {
    /// A stack comes. Gives its number; `None`: there are too many.
    pub(super) fn join(&mut self, stack: StackId) -> Option<u16> {
        let free = self.seats.iter().position(Option::is_none);
        let at = free.unwrap_or(self.seats.len());
        let number = u16::try_from(at + 1).ok()?;
        let seat = Seat { stack, is_open: true, inbox: Some(Inbox::new()) };
        match self.seats.get_mut(at) {
            Some(place) => *place = Some(seat),
            None => self.seats.push(Some(seat)),
        }
        Some(number)
    }

    /// A stack goes: the others end the path to it.
    pub(super) fn leave(&mut self, number: u16) {
        if let Some(seat) = self.seats.get_mut(usize::from(number).wrapping_sub(1)) {
            *seat = None;
        }
    }

    /// Others send nothing to a stack.
    pub(super) fn shut(&mut self, number: u16) {
        if let Some(seat) = self.seat(number) {
            seat.is_open = false;
        }
    }

    /// The path to a stack. `None`: it is not here, or wants none.
    pub(super) fn path_to(&self, stack: StackId) -> Option<Path> {
        let is_it = |seat: &Seat| seat.is_open && seat.stack == stack;
        let at = self.seats.iter().position(|seat| seat.as_ref().is_some_and(is_it))?;
        u16::try_from(at + 1).ok().map(path)
    }

    /// Whether somebody may have something to take in. Asked once a round.
    pub(super) fn take_busy(&mut self) -> bool {
        std::mem::take(&mut self.is_busy)
    }

    fn seat(&mut self, number: u16) -> Option<&mut Seat> {
        self.seats.get_mut(usize::from(number).checked_sub(1)?)?.as_mut()
    }

    fn inbox(&mut self, number: u16) -> Option<&mut Inbox> {
        self.seat(number)?.inbox.as_mut()
    }

    /// What waits for a stack, to be given back. `None`: nothing.
    pub(super) fn take(&mut self, number: u16) -> Option<Inbox> {
        self.seat(number)?.inbox.take_if(|inbox| !inbox.is_empty())
    }

    /// All of it was looked at.
    pub(super) fn give_back(&mut self, number: u16, mut inbox: Inbox) {
        inbox.used = 0;
        inbox.packets.clear();
        inbox.turned.clear();
        if let Some(seat) = self.seat(number) {
            seat.inbox = Some(inbox);
        }
    }
}

/// All ways out of a stack: by the daemon's workers, and to other stacks of this worker.
#[derive(Debug)]
pub(super) struct Ways<'a, N> {
    network: &'a mut N,
    exchange: &'a mut Exchange,
    /// The stack's own number.
    own: u16,
    /// The number of the stack that the packet is for; 0: the network's.
    to: u16,
}

impl<'a, N: Sink> Ways<'a, N> {
    pub(super) fn new(network: &'a mut N, exchange: &'a mut Exchange, own: u16) -> Self {
        Self { network, exchange, own, to: 0 }
    }
}

impl<N: Sink> Sink for Ways<'_, N> {
    fn offloads(&self) -> Offloads {
        Offloads { path_segmentation: BATCH, ..self.network.offloads() }
    }

    #[inline]
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.to = 0;
        self.network.buffer(length)
    }

    #[inline]
    fn buffer_by(&mut self, path: u16, length: usize) -> Option<&mut [u8]> {
        self.to = path;
        // Nobody sleeps while something waits: there is room again in the next round.
        self.exchange.is_busy = true;
        let inbox = self.exchange.inbox(path)?;
        let place = inbox.used..inbox.used + length;
        inbox.bytes.get_mut(place).filter(|_| length <= usize::from(LINK_LONGEST))
    }

    fn turn_away(&mut self, path: u16, ends: &Ends) {
        self.exchange.is_busy = true;
        if let Some(inbox) = self.exchange.inbox(path) {
            // As the other end sees them.
            let ends = Ends { local: ends.remote, remote: ends.local };
            inbox.turned.push((self.own, ends));
        }
    }

    #[inline]
    fn send(&mut self, departure: Departure) {
        if self.to == 0 {
            return self.network.send(departure);
        }
        let (from, length) = (self.own, departure.length);
        if let Some(inbox) = self.exchange.inbox(self.to) {
            inbox.packets.push(Waiting { from, at: inbox.used, length });
            inbox.used += length;
        }
    }
}

#[cfg(test)]
mod tests;
