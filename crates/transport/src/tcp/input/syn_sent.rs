//! A segment arrives in SYN-SENT (RFC 9293 3.10.7.3).

use crate::event::Event;
use crate::failure::Failure;
use crate::fifo::ByteFifo;
use crate::isn::timestamp;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::tcp::Tcb;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    pub(super) fn on_syn_sent(&mut self, segment: &Segment<'_>) {
        let acks = segment.has(bits::ACK);
        // First: an acknowledgment of what was never sent.
        if acks && (!segment.ack.after(self.cold.iss) || segment.ack.after(self.hot.snd_nxt)) {
            return self.refuse(segment, Reason::BadAck);
        }
        // Second
        if segment.has(bits::RST) {
            if acks {
                return self.fail(Failure::Refused);
            }
            return self.drop(Reason::ResetOutOfWindow);
        }
        if !segment.has(bits::SYN) {
            return self.drop(if acks { Reason::OutOfWindow } else { Reason::NoAck });
        }
        // RFC 7323 3.2: an echo of what we never sent is somebody else's. 0 echoes nothing: as Linux, it is let pass.
        if let (true, Some((_, echo @ 1..)), true) =
            (acks, segment.timestamps, self.cold.options.timestamps)
        {
            let clock = timestamp(self.now, self.hot.ts_offset);
            // Since the first SYN, and 1 ms for what is rounded when a connection moves. 0: the SYN is from before this clock
            // began, and nobody knows how long.
            let age = match self.cold.progress_at {
                0 => 1 << 30,
                first => clock.wrapping_sub(timestamp(first, self.hot.ts_offset)).saturating_add(1),
            };
            if clock.wrapping_sub(echo) > age {
                return self.refuse(segment, Reason::Paws);
            }
        }
        // Fourth
        self.note_life();
        self.take_syn(segment);
        if !acks {
            // Simultaneous open: our SYN goes out again, with an acknowledgment.
            self.take_crossing_offer(segment);
            self.hot.state = State::SynReceived;
            self.hot.set(flag::ACK_NOW);
            return;
        }
        self.take_ecn_answer(segment);
        self.hot.state = State::Established;
        self.start_congestion();
        self.take_window(segment, 0);
        let taken = self.on_ack(segment);
        debug_assert!(taken, "the acknowledgment was checked above");
        self.settle_fast_open(segment);
        self.shared.counters.established += 1;
        let id = self.id();
        self.tell(Event::Connected(id));
        self.hot.set(flag::ACK_NOW);
        if self.hot.has(flag::ACCURATE) {
            // RFC 9768 3.2.2.1: without data, before data.
            self.react_to_marked_syn(segment);
            self.acknowledge_now();
        }
        self.start_keepalive();
        if segment.length() > 1 {
            // Data behind the SYN.
            let rest =
                Segment { seq: segment.seq.add(1), flags: segment.flags & !bits::SYN, ..*segment };
            self.on_data(&rest);
        }
    }
}
