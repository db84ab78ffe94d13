//! What a connection sends.

mod blocks;
mod data;
mod message;
mod segment;
mod timer;
mod usage;

use super::Tcb;
use super::hot::flag;
use super::state::State;
use crate::fifo::ByteFifo;
use crate::packet::Sink;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Sends what may be sent now: lost segments, new data, an acknowledgment that is due.
    pub(crate) fn output(&mut self) {
        if self.hot.has(flag::RESET_DUE) {
            if self.send_reset() {
                self.end();
            }
            return;
        }
        match self.hot.state {
            State::Closed => return,
            State::SynSent | State::SynReceived => {
                if self.cold.flight.is_empty() || self.hot.has(flag::ACK_NOW) {
                    self.hot.clear(flag::ACK_NOW);
                    self.send_syn();
                }
                if !self.hot.has(flag::FAST_PENDING) {
                    return;
                }
            }
            _ => {}
        }
        // RFC 7413 4.2.2: the answer to data in a SYN need not wait for the handshake's end.
        if self.hot.state.transmits() || self.hot.has(flag::FAST_PENDING) {
            self.end_wait();
            if !self.send_message() {
                self.send_all();
            }
            self.hot.clear(flag::LATE);
            self.offer_room();
        }
        if self.hot.state.receives() {
            self.consider_window();
        }
        if self.hot.has(flag::ACK_NOW) {
            self.acknowledge_now();
        }
        self.arm();
        let needed =
            flag::RECOVERY | flag::LOSS | flag::PROBING | flag::FORWARDING | flag::HEARS_ALL;
        if self.cold.flight.is_empty() && !self.hot.has(needed) {
            self.cold.flight.rest(self.flights);
            if self.hot.has(flag::WINDOW_LIMITED) {
                self.rest_window();
            }
        }
    }

    /// Lost segments, then new data; or what F-RTO tries first.
    fn send_all(&mut self) {
        if self.hot.has(flag::FORWARD_NEW) {
            self.send_forward();
        }
        if !self.hot.has(flag::FORWARD_SENT) {
            if self.cold.flight.lost > 0 {
                self.send_lost();
            }
            self.send_data();
        }
    }
}
