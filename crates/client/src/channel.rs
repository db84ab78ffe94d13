//! The rings of one thread: receiving and looking.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shm::Doorbell;

use crate::lease::Lease;
use crate::pair::Pair;
use crate::{Error, Packet, events};

/// How often the attach socket is looked at while there is nothing to do. An end of the daemon is to be noticed
/// within 100 ms.
const LOOK: Duration = Duration::from_millis(20);

/// What a channel has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Packets sent to a port or returned to the graph.
    pub sent: u64,
    /// Packets that were not sent because the queue was full: once for each try.
    pub full: u64,
    /// Packets dropped because their marks made no sense.
    pub malformed: u64,
}

/// Packets for one thread, from all workers of the daemon and to them. `Send`: open several, move each to its
/// thread.
#[derive(Debug)]
pub struct Channel {
    pub(crate) pairs: Vec<Pair>,
    /// The pair whose turn it is to be looked at first.
    first: usize,
    /// The pair that bytes without a worker go to, as long as it has room.
    pub(crate) home: usize,
    /// Long packets are put together here.
    pub(crate) scratch: Vec<u8>,
    pub(crate) counters: Counters,
    pub(crate) doorbell: Doorbell,
    /// Doorbell and attach socket.
    pub(crate) events: OwnedFd,
    /// The daemon was told that this side sleeps.
    pub(crate) armed: bool,
    gone: bool,
    look_at: Instant,
    /// Last, so that the memory is given back before the queues.
    pub(crate) lease: Arc<Lease>,
}

impl Channel {
    pub(crate) fn new(
        index: usize,
        pairs: Vec<Pair>,
        doorbell: Doorbell,
        lease: Arc<Lease>,
    ) -> Result<Self, Error> {
        let events = events::events(&doorbell, &*lease.connection)?;
        let home = index.checked_rem(pairs.len()).unwrap_or(0);
        Ok(Self {
            pairs,
            first: home,
            home,
            scratch: Vec::new(),
            counters: Counters::default(),
            doorbell,
            events,
            armed: false,
            gone: false,
            look_at: Instant::now(),
            lease,
        })
    }

    /// Takes up to `limit` packets and appends them to `packets`; gives how many. It never waits and makes no
    /// system call, but for a look at the attach socket every 20 ms while nothing comes.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], when nothing is left to receive; [`Error::Forked`].
    #[inline]
    pub fn receive(&mut self, packets: &mut Vec<Packet>, limit: usize) -> Result<usize, Error> {
        self.check_process()?;
        if self.armed {
            self.disarm();
        }
        let mut taken = 0;
        for turn in 0..self.pairs.len() {
            let worker = (self.first + turn) % self.pairs.len();
            let Some(pair) = self.pairs.get_mut(worker) else { break };
            while taken < limit {
                let Some(packet) = pair.next(worker) else { break };
                packets.push(packet);
                taken += 1;
            }
        }
        if taken == 0 {
            self.pairs.iter_mut().for_each(Pair::give_back);
            self.look_for_daemon()?;
        } else {
            self.counters.received += taken as u64;
            self.first = (self.first + 1).checked_rem(self.pairs.len()).unwrap_or(0);
        }
        Ok(taken)
    }

    /// Whether a packet waits.
    #[must_use]
    pub fn has_packets(&self) -> bool {
        self.is_ours() && self.pairs.iter().any(|pair| pair.has_next())
    }

    /// A packet's bytes where they lie: all of them, or the first piece of one that has several. None for a packet
    /// of another channel, and in a forked child.
    #[inline]
    #[must_use]
    pub fn bytes(&self, packet: &Packet) -> &[u8] {
        self.piece(packet, 0).unwrap_or_default()
    }

    /// The same, to change.
    #[inline]
    #[must_use]
    pub fn bytes_mut<'a>(&'a mut self, packet: &'a mut Packet) -> &'a mut [u8] {
        self.piece_mut(packet, 0).unwrap_or_default()
    }

    /// A piece of a long packet, 0 being the first. `None` beyond the last, or for a packet of another channel.
    #[inline]
    #[must_use]
    pub fn piece(&self, packet: &Packet, piece: u32) -> Option<&[u8]> {
        self.mapped(packet.worker)?.bytes(packet, piece)
    }

    /// The same, to change.
    #[inline]
    #[must_use]
    pub fn piece_mut<'a>(&'a mut self, packet: &'a mut Packet, piece: u32) -> Option<&'a mut [u8]> {
        self.mapped_mut(packet.worker)?.bytes_mut(packet, piece)
    }

    /// Copies a packet, however many pieces it has, as much as fits; gives bytes copied.
    pub fn copy(&self, packet: &Packet, target: &mut [u8]) -> usize {
        self.mapped(packet.worker).map_or(0, |pair| pair.copy(packet, target))
    }

    /// The same, to memory that need not be initialised: the bytes copied are so then.
    pub fn copy_into(&self, packet: &Packet, target: &mut [MaybeUninit<u8>]) -> usize {
        self.mapped(packet.worker).map_or(0, |pair| pair.copy_into(packet, target))
    }

    /// Drops a packet: its slots, or its buffer, go back to the daemon. In a forked child they are the parent's.
    #[inline]
    pub fn release(&mut self, packet: Packet) {
        if let Some(pair) = self.mapped_mut(packet.worker) {
            pair.release(packet);
        }
    }

    /// Drops all of them.
    pub fn release_burst(&mut self, packets: &mut Vec<Packet>) {
        for packet in packets.drain(..) {
            self.release(packet);
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let malformed = self.pairs.iter().map(|pair| pair.malformed()).sum();
        Counters { malformed, ..self.counters }
    }

    /// Whether its memory is mapped: not in a forked child.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.lease.connection.is_ours()
    }

    #[inline]
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.is_ours() { Ok(()) } else { Err(Error::Forked) }
    }

    #[inline]
    fn mapped(&self, worker: usize) -> Option<&Pair> {
        self.pairs.get(worker).filter(|_| self.is_ours())
    }

    #[inline]
    pub(crate) fn mapped_mut(&mut self, worker: usize) -> Option<&mut Pair> {
        let ours = self.is_ours();
        self.pairs.get_mut(worker).filter(|_| ours)
    }

    /// Looks at the attach socket, when the last look is long enough ago.
    pub(crate) fn look_for_daemon(&mut self) -> Result<(), Error> {
        self.check_process()?;
        let now = Instant::now();
        if !self.gone && now >= self.look_at {
            self.look_at = now + LOOK;
            self.gone = self.lease.connection.is_closed();
        }
        if self.gone { Err(Error::DaemonGone) } else { Ok(()) }
    }

    /// Looks at once, and whether the daemon still has the queues.
    pub(crate) fn look_now(&mut self) -> Result<(), Error> {
        self.gone |= events::is_hung_up(&self.doorbell);
        self.look_at = Instant::now();
        self.look_for_daemon()
    }
}
