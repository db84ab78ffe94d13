//! Fragments put together again, for packets to this router itself (RFC 791 3.2, RFC 8200 4.5).
//!
//! Bounded in every way: so many datagrams at once, fewer from one source, so many fragments of
//! each, and a time. A fragment that overlaps another takes its whole datagram with it (RFC 5722;
//! for IPv4 for the reasons of RFC 1858 and RFC 3128); a repeated one is ignored.

use std::net::IpAddr;

use graph::InterfaceId;

use crate::state::VrfId;

#[cfg(test)]
mod tests;

/// Datagrams in work at once.
pub(crate) const DATAGRAMS: usize = 64;
/// Of these, from one source.
pub(crate) const PER_SOURCE: usize = 16;
/// Fragments of one datagram. The longest one in fragments of IPv6's smallest MTU is 54; of IPv4's
/// old 576 bytes it is 119.
pub(crate) const FRAGMENTS: usize = 128;
/// Bytes that fit a datagram's payload.
const LONGEST: usize = 65_535;
/// Bytes of a first fragment that are kept to be quoted.
const QUOTED: usize = 1280;
/// How long a datagram may take: seconds (RFC 8200 4.5; within RFC 1122 3.3.2's 60 to 120).
const PATIENCE: u64 = 60;

/// What the fragments of a datagram share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// The same addresses in another VRF are other hosts.
    pub(crate) vrf: VrfId,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) identification: u32,
    /// IPv4's protocol; 0 for IPv6, where the first fragment alone counts.
    pub(crate) protocol: u8,
}

/// A fragment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) key: Key,
    /// Where its payload belongs: bytes.
    pub(crate) offset: usize,
    /// Whether another fragment follows.
    pub(crate) more: bool,
    /// Interface that it came in on.
    pub(crate) interface: InterfaceId,
    /// The link header before the packet.
    pub(crate) link: &'a [u8],
    /// The whole packet.
    pub(crate) packet: &'a [u8],
    /// Bytes of it that come before the fragmented part, in the datagram too.
    pub(crate) header: usize,
    /// Where its payload starts in the packet.
    pub(crate) payload: usize,
    /// A byte of the header, and what it is in the datagram: IPv6's next header.
    pub(crate) patch: Option<(usize, u8)>,
}

impl Piece<'_> {
    /// The datagram's header, as this fragment has it.
    fn header(&self) -> Vec<u8> {
        let mut header = self.packet.get(..self.header).unwrap_or(&[]).to_vec();
        if let Some((place, value)) =
            self.patch.and_then(|(at, value)| Some((header.get_mut(at)?, value)))
        {
            *place = value;
        }
        header
    }
}

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Others are missing.
    Waits,
    /// The datagram is complete: the first fragment's header, but for its length, and the payload.
    Whole(Vec<u8>),
    /// So many fragments were thrown away, this one among them.
    Refused(usize),
    /// It was thrown away: others are to follow, and it is no multiple of 8 bytes.
    Uneven,
}

/// What was given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    /// Fragments that were there.
    pub(crate) fragments: usize,
    /// The first fragment, if it was among them.
    pub(crate) first: Option<First>,
}

/// The first fragment of a datagram that was given up: to be quoted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// Interface that it came in on.
    pub(crate) interface: InterfaceId,
    /// Where the packet starts in `frame`.
    pub(crate) network: usize,
    /// Its frame's start.
    pub(crate) frame: Vec<u8>,
}

#[derive(Debug)]
struct Datagram {
    key: Key,
    since: u64,
    /// The datagram's header, and the fragment that brought it.
    first: Option<(Vec<u8>, First)>,
    payload: Vec<u8>,
    /// Start and end of each fragment's payload.
    ranges: Vec<(usize, usize)>,
    length: Option<usize>,
}

/// Datagrams that wait for fragments.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    datagrams: Vec<Datagram>,
}

impl Reassembly {
    /// Adds a fragment. `now`: any clock.
    pub(crate) fn add(&mut self, piece: &Piece<'_>, now: u64) -> Added {
        let payload = piece.packet.get(piece.payload..).unwrap_or(&[]);
        let end = piece.offset + payload.len();
        if piece.more && payload.len() % 8 != 0 {
            return Added::Uneven;
        }
        if payload.is_empty() || piece.header + end > LONGEST {
            return Added::Refused(1);
        }
        // RFC 6946: one that is whole by itself has nothing to do with others.
        if piece.offset == 0 && !piece.more {
            return Added::Whole([&piece.header(), payload].concat());
        }
        let known = self.datagrams.iter().position(|datagram| datagram.key == piece.key);
        let at = known.unwrap_or_else(|| {
            self.datagrams.push(Datagram::new(piece.key, now));
            self.datagrams.len() - 1
        });
        let Some(datagram) = self.datagrams.get_mut(at) else { return Added::Refused(1) };
        match datagram.insert(piece, payload) {
            Inserted::Misfit => Added::Refused(self.datagrams.swap_remove(at).ranges.len() + 1),
            Inserted::Known => Added::Waits,
            Inserted::New if !datagram.is_complete() => Added::Waits,
            Inserted::New => match self.datagrams.swap_remove(at).into_whole() {
                Some(bytes) => Added::Whole(bytes),
                None => Added::Refused(1),
            },
        }
    }

    /// Gives up a datagram that has waited too long, one at a call. `hz`: the clock's ticks per second.
    pub(crate) fn expire(&mut self, now: u64, hz: u64) -> Option<Expired> {
        let late = |datagram: &Datagram| now.saturating_sub(datagram.since) >= PATIENCE * hz;
        let at = self.datagrams.iter().position(late)?;
        Some(self.datagrams.swap_remove(at).give_up())
    }

    /// Gives up a datagram when there are too many: the oldest of a source that has too many, else
    /// the oldest of all. To be called after [`Self::add`].
    pub(crate) fn make_room(&mut self) -> Option<Expired> {
        let newest = self.datagrams.last()?.key.source;
        let of_newest = |datagram: &Datagram| datagram.key.source == newest;
        let crowded = self.datagrams.iter().filter(|datagram| of_newest(datagram)).count();
        let full = self.datagrams.len() > DATAGRAMS;
        if !full && crowded <= PER_SOURCE {
            return None;
        }
        let candidates = self.datagrams.iter().enumerate();
        let (at, _) = candidates
            .filter(|(_, datagram)| crowded <= PER_SOURCE || of_newest(datagram))
            .min_by_key(|(_, datagram)| datagram.since)?;
        Some(self.datagrams.swap_remove(at).give_up())
    }
}

enum Inserted {
    New,
    Known,
    Misfit,
}

impl Datagram {
    fn new(key: Key, since: u64) -> Self {
        let (payload, ranges) = (Vec::new(), Vec::new());
        Self { key, since, first: None, payload, ranges, length: None }
    }

    fn insert(&mut self, piece: &Piece<'_>, payload: &[u8]) -> Inserted {
        let (start, end) = (piece.offset, piece.offset + payload.len());
        let last_differs = !piece.more && self.length.is_some_and(|length| length != end);
        let beyond = self.length.is_some_and(|length| end > length)
            || !piece.more && self.ranges.iter().any(|(_, other)| *other > end);
        if last_differs || beyond || self.ranges.len() >= FRAGMENTS {
            return Inserted::Misfit;
        }
        if self.ranges.contains(&(start, end)) {
            return Inserted::Known;
        }
        if self.ranges.iter().any(|(from, to)| start < *to && *from < end) {
            return Inserted::Misfit;
        }
        self.ranges.push((start, end));
        if !piece.more {
            self.length = Some(end);
        }
        if start == 0 {
            let quoted = piece.packet.get(..QUOTED).unwrap_or(piece.packet);
            let frame = [piece.link, quoted].concat();
            let (interface, network) = (piece.interface, piece.link.len());
            self.first = Some((piece.header(), First { interface, network, frame }));
        }
        if self.payload.len() < end {
            self.payload.resize(end, 0);
        }
        if let Some(place) = self.payload.get_mut(start..end) {
            place.copy_from_slice(payload);
        }
        Inserted::New
    }

    fn is_complete(&self) -> bool {
        let there: usize = self.ranges.iter().map(|(from, to)| to - from).sum();
        self.first.is_some() && self.length == Some(there)
    }

    fn into_whole(self) -> Option<Vec<u8>> {
        let (header, _) = self.first?;
        let fits = header.len() + self.payload.len() <= LONGEST;
        fits.then(|| [header, self.payload].concat())
    }

    fn give_up(self) -> Expired {
        Expired { fragments: self.ranges.len(), first: self.first.map(|(_, first)| first) }
    }
}
