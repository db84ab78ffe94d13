//! The connections and UDP sockets as others see them: a table in memory that is shared with whoever steers packets here, who
//! shows it to people, and resets the connections in it when this process dies.
//!
//! A record is written when a connection gets its FIFOs, and when it gives them back: cleared, unless something is left to
//! wait for. What changes otherwise is written when somebody looks, a few times a second: packets cost nothing more.

mod udp;

use std::net::SocketAddr;

use shm::connections::{
    CongestionControl, ConnectionsWriter, Count, Record, Sequences, State as Shown,
};
use shm::session::TransportProtocol;
use transport::{Buffers, ConnectionId, Glance, Info, Reason, Stack, State, UdpId};

use udp::UdpSockets;

/// Between two looks: ns.
const PERIOD: u64 = 100_000_000;
/// Places that a look goes by, and records that it writes, at most.
const PLACES: u32 = 4096;
const RECORDS: u32 = 512;
/// The same while somebody waits for all records to be up to date.
const RECORDS_ASKED: u32 = 4096;

/// What was written last at a place.
#[derive(Debug, Clone, Copy)]
struct Seen {
    glance: Glance,
    /// When the connection began: ns.
    since: u64,
}

/// Whose data waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner {
    Connection(ConnectionId),
    Udp(UdpId),
}

/// Bytes that wait for the application, and to be sent, in other places than the stack.
pub(crate) type Beside = (usize, usize);

/// The writer's side of the table.
#[derive(Debug)]
pub struct Journal {
    writer: ConnectionsWriter,
    seen: Vec<Option<Seen>>,
    /// Where the next look begins.
    next: u32,
    /// When the next look is due: ns.
    due: u64,
    /// A wish to see all, and places to be gone by until it is fulfilled.
    wish: Option<(u64, u32)>,
    udp: UdpSockets,
    /// Packets that were refused before the stack saw them.
    pub(crate) refused: u64,
}

impl Journal {
    /// Of a table that is empty.
    #[must_use]
    pub fn new<B: Buffers>(writer: ConnectionsWriter, now: u64, stack: &Stack<B>) -> Self {
        let seen = vec![None; writer.places() as usize];
        let (next, due, wish, udp, refused) = (0, 0, None, UdpSockets::default(), 0);
        let mut journal = Self { writer, seen, next, due, wish, udp, refused };
        for place in 0..stack.places().min(journal.writer.places()) {
            journal.note(now, place, stack);
        }
        journal
    }

    /// Brings the table up to date, every 100 ms at most.
    pub fn look<B: Buffers>(&mut self, now: u64, stack: &Stack<B>) {
        self.look_beside(now, stack, |_| (0, 0));
    }

    /// The same with what waits where the stack does not see it.
    pub(crate) fn look_beside<B: Buffers>(
        &mut self,
        now: u64,
        stack: &Stack<B>,
        beside: impl FnMut(Owner) -> Beside,
    ) {
        if now >= self.due {
            self.show_beside(now, stack, beside);
        }
    }

    /// Writes what there is now at a place.
    pub(crate) fn note<B: Buffers>(&mut self, now: u64, place: u32, stack: &Stack<B>) {
        self.note_beside(now, place, stack, |_| (0, 0));
    }

    fn note_beside<B: Buffers>(
        &mut self,
        now: u64,
        place: u32,
        stack: &Stack<B>,
        mut beside: impl FnMut(Owner) -> Beside,
    ) {
        let Some(seen) = self.seen.get_mut(place as usize) else { return };
        let Some(glance) = stack.glance(place) else {
            if seen.take().is_some() {
                self.writer.clear(place);
            }
            return;
        };
        let since = seen.filter(|seen| seen.glance.id == glance.id).map_or(now, |seen| seen.since);
        let Some(info) = stack.info(glance.id) else { return };
        let linked = stack.path(glance.id) != 0;
        let beside = beside(Owner::Connection(glance.id));
        self.writer.write(place, &Record { linked, ..record(&info, beside, since, now) });
        *seen = Some(Seen { glance, since });
    }

    /// Brings the table up to date at once: to be called when somebody looks, by who does not look by itself.
    pub fn show<B: Buffers>(&mut self, now: u64, stack: &Stack<B>) {
        self.show_beside(now, stack, |_| (0, 0));
    }

    fn show_beside<B: Buffers>(
        &mut self,
        now: u64,
        stack: &Stack<B>,
        mut beside: impl FnMut(Owner) -> Beside,
    ) {
        self.due = now + PERIOD;
        let used = stack.places().min(self.writer.places());
        if self.wish.is_none() {
            self.wish = self.writer.asked().map(|asked| (asked, used));
        }
        let anew = self.wish.is_some();
        self.udp.show(&mut self.writer, (now, anew), stack, |id| beside(Owner::Udp(id)));
        let (mut records, places) = match self.wish {
            Some((_, left)) => (RECORDS_ASKED, left.min(used)),
            None => (RECORDS, PLACES.min(used)),
        };
        let mut gone_by = 0;
        while gone_by < places && records > 0 {
            let place = self.next % used;
            self.next = place + 1;
            gone_by += 1;
            let seen = self.seen.get(place as usize).and_then(|seen| seen.map(|seen| seen.glance));
            // Queues change without a segment: who asks gets all anew.
            if self.wish.is_some() || seen != stack.glance(place) {
                self.note_beside(now, place, stack, &mut beside);
                records -= 1;
            }
        }
        self.count(stack);
        match self.wish {
            Some((asked, _)) if gone_by >= places => {
                self.writer.answer(asked);
                self.wish = None;
            }
            Some((asked, left)) => self.wish = Some((asked, left - gone_by)),
            None => {}
        }
    }

    fn count<B: Buffers>(&mut self, stack: &Stack<B>) {
        let counters = stack.counters();
        let placed = stack.placed() as u64;
        let dropped = Reason::ALL.iter().map(|reason| counters.dropped(*reason)).sum();
        for count in Count::ALL {
            let value = match count {
                Count::Connections => placed,
                Count::TimeWaits => stack.time_waits() as u64,
                Count::Unlisted => placed.saturating_sub(self.writer.places().into()),
                Count::Established => counters.established,
                Count::Retransmissions => counters.retransmissions,
                Count::Timeouts => counters.timeouts,
                Count::Resets => counters.resets_out,
                Count::AcceptQueue => counters.dropped(Reason::AcceptQueue),
                Count::SynQueue => counters.dropped(Reason::SynQueue),
                Count::NoSlot => counters.dropped(Reason::NoSlot),
                Count::Dropped => dropped,
                Count::LinkRefused => self.refused,
                Count::UnlistedSockets => {
                    stack.udp_places().saturating_sub(self.writer.sockets()).into()
                }
            };
            self.writer.count(count, value);
        }
    }
}

fn record(info: &Info, beside: Beside, since: u64, now: u64) -> Record {
    let millis = |age: Option<u64>| {
        age.map_or(u32::MAX, |ns| u32::try_from(ns / 1_000_000).unwrap_or(u32::MAX - 1))
    };
    let bytes =
        |here: u32, beside: usize| here.saturating_add(u32::try_from(beside).unwrap_or(u32::MAX));
    let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let (unacknowledged, next, expected) = info.sequences;
    Record {
        protocol: TransportProtocol::Tcp,
        local: canonical(info.ends.local),
        remote: canonical(info.ends.remote),
        state: shown(info.state),
        opened_here: info.opened_here,
        waits: info.waits,
        linked: false,
        negotiated: (info.negotiated.1, info.negotiated.2),
        scales: info.scales,
        congestion: CongestionControl::named(info.congestion),
        backoff: info.timeouts.0,
        mss: info.mss,
        path_mtu: info.path_mtu,
        since,
        at: now,
        sequences: Sequences {
            unacknowledged: unacknowledged.0,
            next: next.0,
            expected: expected.0,
            timestamps: info.timestamps,
        },
        windows: (info.own_window, info.peer_window),
        congestion_window: info.window,
        threshold: info.threshold,
        in_flight: info.in_flight,
        queues: (bytes(info.readable, beside.0), bytes(info.queued, beside.1)),
        rtt: (info.srtt, info.rttvar),
        least_rtt: info.min_rtt,
        timeout: info.rto,
        retransmissions: info.retransmissions,
        lost: info.lost,
        bytes_sent: info.data.bytes_sent,
        bytes_acknowledged: info.data.bytes_acked,
        bytes_received: info.data.bytes_received,
        delivery_rate: info.delivery_rate,
        idle: (millis(info.ages.0), millis(info.ages.1)),
        segments: (info.data.segments_out, info.data.segments_in),
    }
}

fn shown(state: State) -> Shown {
    match state {
        State::Closed => Shown::Closed,
        State::SynSent => Shown::SynSent,
        State::SynReceived => Shown::SynReceived,
        State::Established => Shown::Established,
        State::FinWait1 => Shown::FinWait1,
        State::FinWait2 => Shown::FinWait2,
        State::CloseWait => Shown::CloseWait,
        State::Closing => Shown::Closing,
        State::LastAck => Shown::LastAck,
        State::TimeWait => Shown::TimeWait,
    }
}
