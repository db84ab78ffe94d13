//! What a client may do, and what it asks for before.

use graph::Filter;
use shm::attach::Take;
use wire::{EtherType, Protocol};

use crate::client_ends::Request;

/// A client's conduct, from none to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    /// There is no client.
    Nobody,
    /// Its filter matches nothing.
    Bystander,
    /// It gets a copy of every packet and reads them all.
    Reader,
    /// The same, but it reads nothing.
    Deaf,
    /// It takes packets, and says all the time that it sleeps.
    Sleeper,
    /// It rings the worker's bell without end.
    Ringer,
    /// The same, with a descriptor in every message.
    Descriptors,
    /// It has as many filters as a user may have, and nothing matches.
    Filters,
    /// It has 256 of them, which it is refused.
    ManyFilters,
    /// It has all that one user may have: connections, requests, channels; gets copies of every packet, reads them all, and
    /// says all the time that it sleeps.
    Everything,
    /// Its user has 64 connections, each with a request for one channel, and does the same with the 16 that the daemon grants.
    Connections,
    /// It writes garbage over all its memory.
    Garbage,
    /// It tries to take the pages out of its memory, which is closed against that.
    Holes,
    /// It sends packets of minimum size to a port that it has not.
    Refused,
    /// The same with long packets.
    RefusedLong,
    /// It sends packets that no buffer takes, in as many slots as possible.
    Absurd,
    /// It has as many stacks as a user may have, and they send nothing.
    Stacks,
    /// The same, and all of them send packets from an address that is not theirs, as fast as they can.
    StacksThatSend,
    /// The same with long packets.
    StacksThatSendLong,
}

impl Conduct {
    /// In the order of turns: without a client first.
    pub(super) const ALL: [Self; 19] = [
        Self::Nobody,
        Self::Bystander,
        Self::Reader,
        Self::Deaf,
        Self::Sleeper,
        Self::Ringer,
        Self::Descriptors,
        Self::Filters,
        Self::ManyFilters,
        Self::Everything,
        Self::Connections,
        Self::Garbage,
        Self::Holes,
        Self::Refused,
        Self::RefusedLong,
        Self::Absurd,
        Self::Stacks,
        Self::StacksThatSend,
        Self::StacksThatSendLong,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nobody => "no client",
            Self::Bystander => "has a filter that nothing matches",
            Self::Reader => "reads copies of all packets",
            Self::Deaf => "gets copies and never reads",
            Self::Sleeper => "says all the time that it sleeps",
            Self::Ringer => "rings the bell all the time",
            Self::Descriptors => "sends descriptors over the bell all the time",
            Self::Filters => "has 8 filters that nothing matches",
            Self::ManyFilters => "256 filters, which it is refused",
            Self::Everything => "16 requests for copies, read and asleep",
            Self::Connections => "64 connections, of which 16 are granted",
            Self::Garbage => "writes garbage over its memory",
            Self::Holes => "tries to take pages out of its memory",
            Self::Refused => "sends 60 B to no port",
            Self::RefusedLong => "sends 1,514 B to no port",
            Self::Absurd => "sends 65,535 B in slots of 60 B",
            Self::Stacks => "has 256 stacks, which send nothing",
            Self::StacksThatSend => "has 256 stacks, which send what they may not",
            Self::StacksThatSendLong => "has 256 stacks, which send 1,500 B that they may not",
        }
    }

    /// Whether it has stacks.
    pub(super) fn has_stacks(self) -> bool {
        matches!(self, Self::Stacks | Self::StacksThatSend | Self::StacksThatSendLong)
    }

    /// Requests that it has made: the defaults of `clients.queues`, `clients.filters` and `sessions.stacks`, but for one that goes
    /// beyond.
    pub(super) fn requests(self) -> u16 {
        match self {
            Self::Filters => 8,
            Self::Everything | Self::Connections => 16,
            Self::ManyFilters => 256,
            _ if self.has_stacks() => 256,
            _ => 1,
        }
    }

    /// Channels of each request, for one that has not those that are asked for: together the default of
    /// `clients.channels`.
    pub(super) fn channels(self) -> Option<u16> {
        match self {
            Self::Nobody => Some(0),
            Self::Filters | Self::ManyFilters | Self::Connections => Some(1),
            _ if self.has_stacks() => Some(1),
            Self::Everything => Some(8),
            _ => None,
        }
    }

    /// What its request of that number asks for.
    pub(super) fn request(self, number: u16) -> Request {
        let take = match self {
            Self::Refused | Self::RefusedLong | Self::Absurd => Take::Nothing,
            _ => Take::Copy,
        };
        // The traffic is UDP to port 53.
        let filter = match self {
            Self::Bystander => Filter {
                protocol: Some(graph::Match::Ip(Protocol::UDP)),
                destination_port: Some(5353),
                ..Filter::default()
            },
            _ => Filter::default(),
        };
        let filter = match self {
            // Each is of another kind, as far as there are kinds, and matches but for its port.
            Self::Filters | Self::ManyFilters => Filter {
                protocol: (number % 2 == 0).then_some(graph::Match::Ip(Protocol::UDP)),
                ether_type: (number % 4 < 2).then_some(EtherType::IPV4),
                destination_port: Some(5353 + number),
                ..Filter::default()
            },
            _ => filter,
        };
        let (slots, capacity) = if self == Self::Absurd { (4096, 60) } else { (256, 2048) };
        let closed = self != Self::Garbage;
        Request { closed, take, filter, slots, capacity }
    }
}
