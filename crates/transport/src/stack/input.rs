//! Packets in, in batches: all keys are looked up together, so that their cache misses overlap.

use tables::NO_FLOW;
use wire::Protocol;
use wire::flow::FiveTuple;

use super::Stack;
use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::packet::{Packet, Sink};
use crate::reason::Reason;
use crate::segment::{self, Segment, bits};
use crate::tcp::input::may_be_replaced;
use crate::tcp::state::State;

/// Packets that are looked up together.
const GROUP: usize = 64;
/// So many connections stay in the processor's caches by themselves.
const NEAR: usize = 65_536;

impl<B: Buffers> Stack<B> {
    /// Takes packets in; `now`: ns. What must be answered at once goes into `sink`, the rest waits
    /// for [`flush`](Self::flush).
    pub fn input(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut dyn Sink) {
        self.now = self.now.max(now);
        for group in packets.chunks(GROUP) {
            self.look_up(group);
            if self.slab.len() > NEAR {
                self.bring_near();
            }
            let (mut next_v4, mut next_v6) = (0, 0);
            for packet in group {
                let value = match packet.bytes.first().map(|first| first >> 4) {
                    Some(4) => take(&self.values_v4, &mut next_v4),
                    Some(6) => take(&self.values_v6, &mut next_v6),
                    _ => NO_FLOW,
                };
                if let Err(reason) = self.take_packet(packet, value, sink) {
                    self.shared.counters.drop(reason);
                }
            }
        }
    }

    /// Reads what the connections of a group have in memory, all of one kind before the next, so that the
    /// misses of the whole group overlap; one by one they would cost a segment ten in a row.
    fn bring_near(&self) {
        let found =
            || self.values_v4.iter().chain(&self.values_v6).filter(|value| **value != NO_FLOW);
        let near = found().fold(0, |sum, index| sum ^ self.slab.touch(*index));
        let far = found().fold(near, |sum, index| sum ^ self.slab.touch_far(*index));
        std::hint::black_box(far);
    }

    /// Looks the keys of a group up; each value stands at the packet's place among its version's.
    fn look_up(&mut self, group: &[Packet<'_>]) {
        self.keys_v4.clear();
        self.keys_v6.clear();
        self.moved = false;
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
        self.reader_v4.lookup_batch(&self.keys_v4, &mut self.values_v4);
        self.reader_v6.lookup_batch(&self.keys_v6, &mut self.values_v6);
    }

    fn take_packet(
        &mut self,
        packet: &Packet<'_>,
        value: u32,
        sink: &mut dyn Sink,
    ) -> Result<(), Reason> {
        let upper = segment::upper(packet.bytes)?;
        match upper.protocol {
            Protocol::TCP => {}
            Protocol::UDP => return self.take_datagram(packet, &upper, value, sink),
            Protocol::ICMPV4 | Protocol::ICMPV6 => {
                return self.take_icmp(&upper, packet.bytes, sink);
            }
            _ => return Err(Reason::Protocol),
        }
        let key = segment::key(packet.bytes).ok_or(Reason::IpHeader)?;
        let ends = Ends::of_received(&key);
        if !ends.is_possible() {
            return Err(Reason::Source);
        }
        let segment = segment::parse(packet, &upper, &ends)?;
        self.shared.counters.segments_in += 1;
        // Within a batch connections come and go: only an undisturbed hit is sure.
        let index = if value == NO_FLOW || self.moved { self.find(&ends) } else { Some(value) };
        let Some(index) = index else { return self.take_unmatched(&ends, &segment, None, sink) };
        if segment.flags & (bits::SYN | bits::ACK) == bits::SYN && self.gives_way(index, &segment) {
            let after = self.slab.at(index).map(|(hot, _)| hot.snd_nxt);
            self.step(index, sink, |tcb| tcb.end());
            return self.take_unmatched(&ends, &segment, after, sink);
        }
        self.step(index, sink, |tcb| tcb.on_segment(&segment));
        Ok(())
    }

    /// Whether the connection is in TIME-WAIT, and the SYN may open a new one in its place.
    fn gives_way(&mut self, index: u32, segment: &Segment<'_>) -> bool {
        let Some((hot, cold)) = self.slab.at(index) else { return false };
        if hot.state != State::TimeWait || segment.has(bits::RST) {
            return false;
        }
        let local = cold.ends().local;
        may_be_replaced(hot, segment) && self.shared.listeners.find(local).is_some()
    }
}

fn take(values: &[u32], next: &mut usize) -> u32 {
    let value = values.get(*next).copied().unwrap_or(NO_FLOW);
    *next += 1;
    value
}
