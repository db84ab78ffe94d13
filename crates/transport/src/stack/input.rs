//! Packets in, in batches: all keys are looked up together, so that their cache misses overlap.

use tables::NO_FLOW;
use wire::Protocol;
use wire::flow::FiveTuple;

use super::Stack;
use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::packet::{Packet, Sink};
use crate::reason::Reason;
use crate::segment::{self, Segment, Upper, bits};
use crate::tcp::input::{may_be_replaced, recent};
use crate::tcp::state::State;
use crate::time_wait::TIME_WAIT;

/// Packets that are looked up together.
const GROUP: usize = 64;
/// So many connections stay in the processor's nearest caches by themselves.
const NEAR: usize = 256;
/// Packets that a connection's place is asked for ahead of its turn, and what its place points to.
const AHEAD: usize = 16;
const AHEAD_FAR: usize = 6;

/// The connection of the last segment over IPv4 that came alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recent {
    addresses: u64,
    /// As they lie in the packet.
    ports: u32,
    /// `NO_FLOW`: there is none.
    value: u32,
}

impl Recent {
    pub(super) const NONE: Self = Self { addresses: 0, ports: 0, value: NO_FLOW };
}

impl<B: Buffers> Stack<B> {
    /// Takes packets in; `now`: ns. What must be answered at once goes into `sink`, the rest waits
    /// for [`flush`](Self::flush).
    pub fn input<S: Sink + ?Sized>(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut S) {
        self.now = self.now.max(now);
        self.shared.offloads = sink.offloads();
        self.shared.allowance = usize::MAX;
        if let [packet] = packets {
            if let Err(reason) = self.take_lone(packet, sink) {
                self.shared.counters.drop(reason);
            }
            return;
        }
        for group in packets.chunks(GROUP) {
            self.moved = false;
            self.look_up(group);
            self.take_group(group, sink);
        }
    }

    /// The same where there is no memory for more of connections' data: segments are left out, and come again.
    pub fn input_datagrams<S: Sink + ?Sized>(
        &mut self,
        now: u64,
        packets: &[Packet<'_>],
        sink: &mut S,
    ) {
        self.now = self.now.max(now);
        self.shared.offloads = sink.offloads();
        self.shared.allowance = usize::MAX;
        let is_segment = |upper: Upper<'_>| upper.protocol == Protocol::TCP;
        for packet in packets {
            if segment::upper(packet.bytes).is_ok_and(is_segment) {
                continue;
            }
            if let Err(reason) = self.take_unusual(packet, sink) {
                self.shared.counters.drop(reason);
            }
        }
    }

    fn take_group<S: Sink + ?Sized>(&mut self, group: &[Packet<'_>], sink: &mut S) {
        let far = self.slab.len() > NEAR;
        let (mut next_v4, mut next_v6) = (0, 0);
        if far {
            for value in self.values_v4.iter().chain(&self.values_v6).take(AHEAD) {
                self.slab.prefetch(*value);
            }
        }
        for packet in group {
            let (values, next) = match packet.bytes.first().map(|first| first >> 4) {
                Some(4) => (&self.values_v4, &mut next_v4),
                Some(6) => (&self.values_v6, &mut next_v6),
                _ => {
                    self.take_or_drop(packet, NO_FLOW, sink);
                    continue;
                }
            };
            let at = |ahead| values.get(*next + ahead).copied().unwrap_or(NO_FLOW);
            let value = at(0);
            if far {
                self.slab.prefetch(at(AHEAD));
                self.slab.prefetch_far(at(AHEAD_FAR));
            }
            *next += 1;
            self.take_or_drop(packet, value, sink);
        }
    }

    /// Takes a packet that comes alone. Mostly its connection is the one of the packet before.
    #[inline(always)]
    fn take_lone<S: Sink + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let Some((upper, addresses)) = segment::plain(packet.bytes) else {
            return self.take_unusual(packet, sink);
        };
        let found = segment::check(packet, &upper)?;
        let ports = upper.bytes.first_chunk().map_or(0, |ports| u32::from_ne_bytes(*ports));
        let mut segment = Segment::of(&found, upper.ecn);
        if !segment.is_read() {
            segment.read_options();
        }
        self.shared.counters.segments_in += 1;
        if (self.recent.addresses, self.recent.ports) != (addresses, ports) {
            self.recent = Recent { addresses, ports, value: self.look_up_one(packet.bytes) };
        }
        match self.recent.value {
            NO_FLOW => self.take_stray(packet.bytes, &segment, sink),
            value => self.take_segment(value, &segment, sink),
        }
    }

    #[inline(never)]
    fn take_unusual<S: Sink + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        self.moved = false;
        let value = self.look_up_one(packet.bytes);
        self.take_packet(packet, value, sink)
    }

    #[inline(never)]
    fn look_up_one(&self, packet: &[u8]) -> u32 {
        match segment::key(packet) {
            Some(FiveTuple::V4(flow)) => self.flows_v4.lookup(&flow.key()),
            Some(FiveTuple::V6(flow)) => self.flows_v6.lookup(&flow.key()),
            None => NO_FLOW,
        }
    }

    /// Looks the keys of a group up; each value stands at the packet's place among its version's.
    fn look_up(&mut self, group: &[Packet<'_>]) {
        self.keys_v4.clear();
        self.keys_v6.clear();
        for packet in group {
            match segment::key(packet.bytes) {
                Some(FiveTuple::V4(flow)) => self.keys_v4.push(flow.key()),
                Some(FiveTuple::V6(flow)) => self.keys_v6.push(flow.key()),
                // Too short for its version: its place must not be another's.
                None => match packet.bytes.first().map(|first| first >> 4) {
                    Some(4) => self.keys_v4.push([0; 16]),
                    Some(6) => self.keys_v6.push([0; 40]),
                    _ => {}
                },
            }
        }
        self.values_v4.resize(self.keys_v4.len(), NO_FLOW);
        self.values_v6.resize(self.keys_v6.len(), NO_FLOW);
        self.flows_v4.lookup_batch(&self.keys_v4, &mut self.values_v4);
        self.flows_v6.lookup_batch(&self.keys_v6, &mut self.values_v6);
    }

    #[inline]
    fn take_or_drop<S: Sink + ?Sized>(&mut self, packet: &Packet<'_>, value: u32, sink: &mut S) {
        if let Err(reason) = self.take_packet(packet, value, sink) {
            self.shared.counters.drop(reason);
        }
    }

    #[inline(never)]
    fn take_packet<S: Sink + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        value: u32,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let upper = segment::upper(packet.bytes)?;
        if upper.protocol != Protocol::TCP {
            return self.take_other(packet, &upper, value, sink);
        }
        let found = segment::check(packet, &upper)?;
        let mut segment = Segment::of(&found, upper.ecn);
        if !segment.is_read() {
            segment.read_options();
        }
        self.shared.counters.segments_in += 1;
        // Within a batch connections come and go: only an undisturbed hit is sure.
        if value == NO_FLOW || self.moved {
            return self.take_stray(packet.bytes, &segment, sink);
        }
        self.take_segment(value, &segment, sink)
    }

    #[cold]
    fn take_other<S: Sink + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        upper: &Upper<'_>,
        value: u32,
        sink: &mut S,
    ) -> Result<(), Reason> {
        match upper.protocol {
            Protocol::UDP => self.take_datagram(packet, upper, value, sink),
            Protocol::ICMPV4 | Protocol::ICMPV6 => self.take_icmp(upper, packet.bytes, sink),
            _ => Err(Reason::Protocol),
        }
    }

    /// A segment whose connection is not known for sure, or is not there.
    #[cold]
    fn take_stray<S: Sink + ?Sized>(
        &mut self,
        packet: &[u8],
        segment: &Segment<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let key = segment::whole_key(packet).ok_or(Reason::IpHeader)?;
        let ends = Ends::of_received(&key);
        if !ends.is_possible() {
            return Err(Reason::Source);
        }
        match self.find(&ends) {
            Some(index) => self.take_segment(index, segment, sink),
            None => self.take_unmatched(&ends, segment, None, sink),
        }
    }

    #[inline(always)]
    fn take_segment<S: Sink + ?Sized>(
        &mut self,
        index: u32,
        segment: &Segment<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        if index & TIME_WAIT != 0 {
            return self.take_late(index & !TIME_WAIT, segment, sink);
        }
        if segment.flags & (bits::SYN | bits::ACK) == bits::SYN && self.gives_way(index, segment) {
            return self.replace(index, segment, sink);
        }
        // As `step` does, but compiled in one piece.
        if let Some(mut tcb) = self.tcb(index, sink) {
            tcb.on_segment(segment);
            let next = tcb.next_deadline();
            self.conclude(index, next);
        }
        Ok(())
    }

    /// A SYN opens a new connection in the place of one in TIME-WAIT.
    #[cold]
    fn replace<S: Sink + ?Sized>(
        &mut self,
        index: u32,
        segment: &Segment<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let found = self.slab.at(index).map(|(hot, cold)| (hot.snd_nxt, cold.ends()));
        let Some((after, ends)) = found else { return Err(Reason::NoConnection) };
        self.step(index, sink, |tcb| tcb.end());
        self.take_unmatched(&ends, segment, Some(after), sink)
    }

    /// Whether the connection is in TIME-WAIT, and the SYN may open a new one in its place.
    fn gives_way(&mut self, index: u32, segment: &Segment<'_>) -> bool {
        let Some((hot, cold)) = self.slab.at(index) else { return false };
        if hot.state != State::TimeWait || segment.has(bits::RST) {
            return false;
        }
        let local = cold.ends().local;
        let (next, recent) = (hot.rcv_nxt, recent(hot));
        may_be_replaced(next, recent, segment) && self.shared.listeners.is_listening(local)
    }
}
