//! What a client may do, and what it asks for before.

use graph::Filter;
use shm::attach::Take;
use wire::Protocol;

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
}

/// What it asks the daemon for.
pub(super) struct Request {
    /// Whether its memory is closed, as the daemon does it. Then a file's writes are refused too, which stand for those
    /// into memory here.
    pub(super) closed: bool,
    pub(super) take: Take,
    pub(super) filter: Filter,
    /// Of each ring, and bytes of each.
    pub(super) slots: u32,
    pub(super) capacity: u32,
}

impl Conduct {
    /// In the order of turns: without a client first.
    pub(super) const ALL: [Self; 11] = [
        Self::Nobody,
        Self::Bystander,
        Self::Reader,
        Self::Deaf,
        Self::Sleeper,
        Self::Ringer,
        Self::Garbage,
        Self::Holes,
        Self::Refused,
        Self::RefusedLong,
        Self::Absurd,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nobody => "no client",
            Self::Bystander => "has a filter that nothing matches",
            Self::Reader => "reads copies of all packets",
            Self::Deaf => "gets copies and never reads",
            Self::Sleeper => "says all the time that it sleeps",
            Self::Ringer => "rings the bell all the time",
            Self::Garbage => "writes garbage over its memory",
            Self::Holes => "tries to take pages out of its memory",
            Self::Refused => "sends 60 B to no port",
            Self::RefusedLong => "sends 1,514 B to no port",
            Self::Absurd => "sends 65,535 B in slots of 60 B",
        }
    }

    pub(super) fn request(self) -> Request {
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
        let (slots, capacity) = if self == Self::Absurd { (4096, 60) } else { (256, 2048) };
        let closed = self != Self::Garbage;
        Request { closed, take, filter, slots, capacity }
    }
}
