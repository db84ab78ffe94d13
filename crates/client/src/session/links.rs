//! Links to other processes of this machine: packet queues on which two stacks meet without the daemon, which has introduced
//! them ([`shm::session::LinkPlace`]).
//!
//! Each end distrusts the other as it would the network: packets are copied out of the rings before anybody looks at them,
//! and each must come from where the daemon says that the other end may send from (`guard`). Their checksums are neither
//! made nor looked at: what a process writes into a link in place of data, it could have sent as data.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use shm::book::BookReader;
use shm::session::{LINK_LONGEST, LINK_PACKET, LinkPlace, TURNED_AWAY};
use shm::{Consumer, Doorbell, Producer, Segment};
use transport::{Ends, Packet, Path};

use crate::Error;
use crate::opened::nonsense;

mod exits;
mod guard;

use exits::Exit;
pub use exits::{Exits, Ways};
pub use guard::Served;
use guard::{Guard, Verdict};

/// Packets that are taken out of a ring at once.
const BURST: usize = 64;
/// Rings that may lie in a bell before it is emptied.
const RINGS: u32 = 64;
/// Files that come with a link.
const FILES: usize = 3;

/// The other end of a path has turned away what was for these ends.
pub type Turned = (u16, Ends);

/// All links of a process. Each is a path ([`transport::Path`]) of its stack, numbered from 1.
#[derive(Debug, Default)]
pub struct Links {
    entrances: Vec<Option<Entrance>>,
    /// Where packets leave.
    pub exits: Exits,
    /// Of packets that were copied out of a ring.
    scratch: Vec<u8>,
    /// The bells: an epoll instance that tells each ring once.
    arrivals: Option<OwnedFd>,
    /// Who leases which ports, by the daemon of now.
    book: Option<Arc<BookReader>>,
    turned: Vec<Turned>,
    /// How many there are.
    count: usize,
    /// Packets that were not from where they may be, on links that are gone too.
    refused: u64,
}

/// Where packets of a link arrive.
#[derive(Debug)]
struct Entrance {
    place: LinkPlace,
    ring: Consumer,
    bell: Arc<Doorbell>,
    guard: Guard,
    /// Until the other end is known to have mapped the memory.
    unsealed: Option<Arc<Segment>>,
    rung: u32,
    descriptors: [RawFd; 2],
}

impl Links {
    /// There is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The daemon has handed over a link: its memory, this end's bell, and the book of leased ports. `is_first`: this end has
    /// asked for it. `keep` may move descriptors out of the way of others. Gives its path, and the descriptors that it has until
    /// [`remove`](Self::remove).
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Nonsense`], [`Error::System`].
    pub fn add(
        &mut self,
        place: LinkPlace,
        is_first: bool,
        files: Vec<OwnedFd>,
        keep: impl Fn(OwnedFd) -> OwnedFd,
    ) -> Result<Path, Error> {
        let count = files.len();
        let files: Result<[OwnedFd; FILES], _> = files.try_into();
        let [segment, bell, book] =
            files.map_err(|_| nonsense(format!("{count} descriptors for a link")))?;
        if self.book.is_none() {
            self.book = Some(Arc::new(BookReader::from_file(book)?));
        }
        let Some(book) = self.book.clone() else { return Err(nonsense("a link without a book")) };
        let (segment, bell) = (keep(segment), keep(bell));
        let descriptors = [segment.as_raw_fd(), bell.as_raw_fd()];
        let system =
            |what| move |source: rustix::io::Errno| Error::System { what, source: source.into() };
        let arrivals = match &self.arrivals {
            Some(arrivals) => arrivals,
            None => {
                let made = epoll::create(CreateFlags::CLOEXEC).map_err(system("bells of links"))?;
                self.arrivals.insert(keep(made))
            }
        };
        let segment = Arc::new(Segment::from_file(segment)?);
        let layout = LinkPlace::layout()?;
        let second = LinkPlace::second()?;
        let region = |offset| segment.region(offset, layout.bytes());
        let (Some(to), Some(from)) = (region(0), region(second)) else {
            return Err(nonsense("a link whose memory is too short"));
        };
        let (out, back) = if is_first { (to, from) } else { (from, to) };
        let (producer, ring) = (Producer::new(out, layout)?, Consumer::new(back, layout)?);
        let free = self.entrances.iter().position(Option::is_none);
        let at = free.unwrap_or(self.entrances.len());
        let number = u16::try_from(at + 1).map_err(|_| nonsense("too many links"))?;
        let events = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(arrivals, &bell, EventData::new_u64(number.into()), events)
            .map_err(system("a link's bell"))?;
        let bell = Doorbell::from_file(bell);
        let bell = bell.map_err(|source| Error::System { what: "a link's bell", source })?;
        let bell = Arc::new(bell);
        let guard = Guard::new(place.peer, book);
        let entrance = Entrance {
            place,
            ring,
            bell: Arc::clone(&bell),
            guard,
            unsealed: Some(segment),
            rung: 0,
            descriptors,
        };
        if free.is_none() {
            self.entrances.push(None);
        }
        if let Some(empty) = self.entrances.get_mut(at) {
            *empty = Some(entrance);
        }
        self.exits.put(at, Exit::new(producer, bell));
        self.count += 1;
        Ok(Path { number, mtu: LINK_PACKET })
    }

    /// A link ends: its descriptors are closed after `before` was called with them. Gives its number, unless it is of an earlier
    /// daemon's.
    pub fn remove(&mut self, path: u16, before: impl FnOnce([RawFd; 2])) -> Option<u32> {
        let at = usize::from(path).checked_sub(1)?;
        let entrance = self.entrances.get_mut(at)?.take()?;
        self.count -= 1;
        if let Some(arrivals) = &self.arrivals {
            let _ = epoll::delete(arrivals, &*entrance.bell);
        }
        before(entrance.descriptors);
        let is_known = !entrance.guard.is_stale;
        let number = entrance.place.link;
        drop(entrance);
        self.exits.take(at);
        is_known.then_some(number)
    }

    /// The path of the link of that number, of this daemon's.
    #[must_use]
    pub fn path_of(&self, link: u32) -> Option<Path> {
        let is_it = |entrance: &Entrance| entrance.place.link == link && !entrance.guard.is_stale;
        let at = self.entrances.iter().position(|one| one.as_ref().is_some_and(is_it))?;
        Some(Path { number: u16::try_from(at + 1).ok()?, mtu: LINK_PACKET })
    }

    /// The other end of a path serves there: its packets may come from there.
    pub fn learn(&mut self, path: u16, served: Served) {
        if let Some(entrance) = self.entrance(path) {
            entrance.guard.learn(served);
        }
    }

    /// Another daemon has come: connections go on over these links, no new ones come.
    pub fn outlive_daemon(&mut self) {
        self.book = None;
        for entrance in self.entrances.iter_mut().flatten() {
            entrance.guard.is_stale = true;
        }
    }

    fn entrance(&mut self, path: u16) -> Option<&mut Entrance> {
        self.entrances.get_mut(usize::from(path).checked_sub(1)?)?.as_mut()
    }

    /// Takes packets out of each ring, and gives those to `input` that come from where they may. `own`: the router's addresses.
    /// Gives how many there were.
    pub fn receive(
        &mut self,
        own: &[IpAddr],
        mut input: impl FnMut(Path, &[Packet<'_>], &mut Exits),
    ) -> usize {
        let Self { entrances, exits, scratch, turned, refused, .. } = self;
        let mut count = 0;
        for (at, entrance) in entrances.iter_mut().enumerate() {
            let Some(entrance) = entrance else { continue };
            if !entrance.ring.has_next() {
                continue;
            }
            let path = Path { number: at as u16 + 1, mtu: LINK_PACKET };
            count += entrance.receive(path, own, (scratch, turned, refused), exits, &mut input);
        }
        count
    }

    /// What the other ends have turned away since this was asked last.
    pub fn take_turned(&mut self) -> Vec<Turned> {
        std::mem::take(&mut self.turned)
    }

    /// Whether the other ends have turned something away.
    #[inline]
    #[must_use]
    pub fn has_turned(&self) -> bool {
        !self.turned.is_empty()
    }

    /// Whether a packet waits.
    #[inline]
    #[must_use]
    pub fn has_packets(&self) -> bool {
        self.count > 0 && self.entrances.iter().flatten().any(|one| one.ring.has_next())
    }

    /// Before sleeping: the other ends ring when something comes, or when there is room where none was. `false`: do not sleep.
    #[must_use]
    pub fn arm(&mut self) -> bool {
        if self.count == 0 {
            return true;
        }
        self.exits.ring();
        self.entrances.iter().flatten().for_each(|one| one.ring.sleeps().announce());
        let has_room = self.exits.await_room();
        !(has_room || self.has_packets())
    }

    /// The other ends need not ring any more.
    pub fn withdraw(&self) {
        if self.count > 0 {
            self.entrances.iter().flatten().for_each(|one| one.ring.sleeps().withdraw());
            self.exits.withdraw();
        }
    }

    /// The bells: readable when one was rung, or hung up.
    #[must_use]
    pub fn bells(&self) -> Option<BorrowedFd<'_>> {
        self.arrivals.as_ref().filter(|_| self.count > 0).map(AsFd::as_fd)
    }

    /// Takes back what was rung. Gives the paths whose other ends are gone, or are no good.
    pub fn heed(&mut self) -> Vec<u16> {
        let mut gone = self.exits.lame();
        let Some(arrivals) = &self.arrivals else { return gone };
        let mut events: Vec<Event> = Vec::with_capacity(BURST);
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        if epoll::wait(arrivals, rustix::buffer::spare_capacity(&mut events), Some(&now)).is_err() {
            return gone;
        }
        for event in events {
            let (path, flags) = (event.data.u64() as u16, event.flags);
            let Some(entrance) = self.entrance(path) else { continue };
            entrance.rung += 1;
            if entrance.rung >= RINGS {
                entrance.rung = 0;
                // What is left rings again.
                entrance.bell.clear();
            }
            if flags.intersects(EventFlags::HUP | EventFlags::RDHUP | EventFlags::ERR) {
                gone.push(path);
            }
        }
        gone
    }

    /// Packets that were refused, in all.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Entrance {
    fn receive(
        &mut self,
        path: Path,
        own: &[IpAddr],
        (scratch, turned, refused): (&mut Vec<u8>, &mut Vec<Turned>, &mut u64),
        exits: &mut Exits,
        input: &mut impl FnMut(Path, &[Packet<'_>], &mut Exits),
    ) -> usize {
        const LONGEST: usize = LINK_LONGEST as usize;
        scratch.resize(BURST * LINK_PACKET as usize + LONGEST, 0);
        let mut rest = &mut scratch[..];
        let mut packets = [Packet::new(&[]); BURST];
        let (mut good, mut count) = (0, 0);
        while count < BURST && rest.len() >= LONGEST {
            let Some(taken) = self.ring.next() else { break };
            count += 1;
            let length = taken.length().min(rest.len());
            let (room, after) = std::mem::take(&mut rest).split_at_mut(length);
            rest = after;
            self.ring.copy(&taken, room);
            let flags = taken.meta().flags;
            self.ring.release(taken);
            let bytes = &*room;
            if flags & TURNED_AWAY != 0 {
                turned.extend(guard::turned(bytes).map(|ends| (path.number, ends)));
                continue;
            }
            match self.guard.judge(bytes, own) {
                Verdict::Take => {
                    if let Some(place) = packets.get_mut(good) {
                        *place = Packet { bytes, checksum_is_good: true };
                        good += 1;
                    }
                }
                Verdict::TurnAway(ends) => {
                    *refused += 1;
                    exits.turn_away(path.number, &ends);
                }
                Verdict::Drop => *refused += 1,
            }
        }
        if let Some(segment) = self.unsealed.take_if(|_| count > 0) {
            // The other end has mapped it, too: nobody takes pages out any more. It may have seen to that itself.
            let _ = segment.close();
        }
        input(path, packets.get(..good).unwrap_or_default(), exits);
        self.bell.ring(self.ring.producer_sleeps());
        count
    }
}

#[cfg(test)]
mod tests;
