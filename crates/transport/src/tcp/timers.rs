//! Deadlines that have come.

use super::Tcb;
use super::flight::mark;
use super::hot::{NEVER, flag};
use super::rtt;
use super::state::State;
use crate::congestion::Congestion;
use crate::failure::Failure;
use crate::fifo::ByteFifo;
use crate::packet::Sink;

/// A probe that the sink did not take is tried again after this: ns. It counts for nothing.
const SINK_PATIENCE: u64 = 500_000_000;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Acts on every deadline at or before now.
    pub(crate) fn on_timer(&mut self) {
        if self.hot.has(flag::RESET_DUE) {
            self.stop_timers();
            return self.output();
        }
        let is_ack_due = self.hot.ack_at <= self.now;
        if is_ack_due {
            // No answer has come in time to carry it.
            self.hot.clear(flag::CONVERSES);
        }
        if is_ack_due && self.hot.deadline_but_ack() > self.now && self.is_quiet() {
            return self.acknowledge_now();
        }
        if is_ack_due {
            self.hot.ack_at = NEVER;
            self.hot.set(flag::ACK_NOW);
        }
        if self.hot.retransmit_at <= self.now {
            self.on_retransmit_timer();
        }
        if self.hot.life_at <= self.now {
            self.on_life_timer();
        }
        self.output();
        if self.hot.pace_at <= self.now {
            self.hot.clear(flag::HELD_BACK);
        }
    }

    fn on_retransmit_timer(&mut self) {
        self.hot.retransmit_at = NEVER;
        let kind = self.hot.flags & flag::TIMER_KIND;
        self.hot.clear(flag::TIMER_KIND);
        self.cold.flight.open(self.flights);
        match kind {
            flag::TIMER_IS_PROBE => self.send_tail_probe(),
            flag::TIMER_IS_REORDER => {
                let recovering = self.hot.has(flag::RECOVERY | flag::LOSS);
                let lost = self.detect_by_time(recovering);
                if lost > 0 && !recovering {
                    self.enter_recovery(lost, 0);
                }
                if self.hot.retransmit_at == NEVER {
                    self.resume_timer();
                }
            }
            flag::TIMER_IS_PERSIST => self.probe_window(),
            _ => self.on_timeout(),
        }
    }

    /// RFC 6298 5.4 to 5.7.
    fn on_timeout(&mut self) {
        let handshake = matches!(self.hot.state, State::SynSent | State::SynReceived);
        if self.cold.flight.is_empty() && !handshake {
            return;
        }
        let tries = if handshake { self.handshake_tries() } else { self.retries() };
        // RFC 9293 3.8.6.1: a window that was closed over data in flight is probed with it, for as long as
        // the peer answers.
        let probes = !handshake && self.hot.snd_wnd == 0 && !self.hot.has(flag::RELEASED);
        let over = if probes { self.is_silent() } else { self.is_given_up(tries, handshake) };
        if over {
            let failure = self.cold.soft_failure.unwrap_or(Failure::TimedOut);
            let known = self.hot.has(flag::FAST_PENDING);
            if self.hot.state == State::SynReceived && self.hot.has(flag::PASSIVE) && !known {
                return self.end();
            }
            return self.fail(failure);
        }
        self.shared.counters.timeouts += 1;
        if self.hot.has(flag::ASIDE) && (handshake || self.hot.backoff > 0) {
            // Nobody may listen there any more; the network leads to whoever does.
            self.return_to_network();
        }
        let rare = self.cold.rare.note();
        rare.timeouts = rare.timeouts.saturating_add(1);
        self.hot.backoff = self.hot.backoff.saturating_add(1);
        self.cold.tries = self.cold.tries.saturating_add(u8::from(!probes));
        if handshake && self.awaits_data() {
            self.hot.retransmit_at = self.now.saturating_add(rtt::timeout(self.hot));
            return;
        }
        if handshake {
            self.repeat_syn();
            self.hot.retransmit_at = self.now.saturating_add(rtt::timeout(self.hot));
            return;
        }
        let in_flight = self.pipe();
        // RFC 2018 8: the peer may have dropped what it told of.
        let reneged = self.cold.flight.sent.front().is_some_and(|sent| sent.is(mark::SACKED));
        if reneged {
            self.cold.flight.forget_sacks();
        }
        let srtt = self.srtt_ns();
        let lost = self.cold.flight.lose_old(self.now, srtt);
        self.begin_forward();
        self.suspect_black_hole();
        if !self.hot.has(flag::LOSS) {
            self.cold.recover = self.hot.snd_nxt;
            self.prepare_undo();
        }
        self.hot.clear(flag::RECOVERY | flag::PROBING);
        self.hot.set(flag::LOSS);
        self.hot.set(flag::REDUCED);
        self.begin_congestion();
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_rto(&Congestion { now: self.now, in_flight, lost });
            self.follow_congestion();
        }
        // The oldest leaves now, whatever else is still on the way.
        self.hot.cwnd = self.hot.cwnd.max(self.pipe().saturating_add(self.hot.mss.into()));
        self.hot.pace_at = 0;
        self.hot.clear(flag::HELD_BACK);
        self.hot.retransmit_at = self.within_user_timeout(rtt::timeout(self.hot));
    }

    /// So many ns from now, but not later than the time at which the connection is given up.
    pub(super) fn within_user_timeout(&self, delay: u64) -> u64 {
        let at = self.now.saturating_add(delay);
        match self.cold.options.user_timeout {
            0 => at,
            limit => at.min(self.cold.progress_at.saturating_add(limit).max(self.now)),
        }
    }

    /// Retransmissions until the connection fails: fewer when nobody waits for it any more.
    fn retries(&self) -> u8 {
        let options = &self.cold.options;
        let orphan = self.hot.has(flag::RELEASED);
        if orphan { options.retries.min(options.orphan_retries) } else { options.retries }
    }

    /// Our SYN, or the answer to the peer's, once more.
    pub(super) fn repeat_syn(&mut self) {
        if self.cold.flight.is_empty() {
            // The sink did not even take the first.
            self.send_syn();
            return;
        }
        self.give_fast_open_up();
        self.cold.retransmitted = self.cold.retransmitted.saturating_add(1);
        if self.send_syn() {
            self.shared.counters.retransmissions += 1;
            let iss = self.cold.iss;
            self.cold.flight.resent(iss, self.now);
            self.note_again();
        }
    }

    /// F-RTO begins (RFC 5682 2.1 and 3.1 step 1), unless a recovery goes on already: of a time-out,
    /// with SACK of any kind.
    fn begin_forward(&mut self) {
        let barred =
            if self.hot.has(flag::SACK) { flag::LOSS | flag::RECOVERY } else { flag::LOSS };
        let begins = !self.hot.has(barred | flag::TIMESTAMPS);
        self.hot.clear(flag::FORWARDING);
        if begins {
            self.hot.set(flag::FORWARD);
        }
    }

    /// Whether retransmitting has gone on for long enough: for as long as the user timeout says, which
    /// counts from when data began to wait (RFC 9293 3.9.1, RFC 5482), or so many times. A SYN is bounded
    /// by both.
    fn is_given_up(&self, tries: u8, handshake: bool) -> bool {
        let limit = self.cold.options.user_timeout;
        let waits = self.now.saturating_sub(self.cold.progress_at);
        limit != 0 && waits >= limit || (limit == 0 || handshake) && self.cold.tries >= tries
    }

    /// Whether nothing has come from the peer for so long that a closed window is no excuse.
    fn is_silent(&self) -> bool {
        let limit = 2 * 1000 * rtt::MAXIMUM_RTO;
        match self.cold.options.user_timeout {
            0 => self.now.saturating_sub(self.hot.received_at.max(self.cold.progress_at)) > limit,
            _ => self.is_given_up(u8::MAX, false),
        }
    }

    /// The peer's window is closed (RFC 9293 3.8.6.1).
    fn probe_window(&mut self) {
        self.hot.clear(flag::CORKED);
        if self.hot.snd_wnd > 0 && self.send_fitting() {
            return;
        }
        // Whoever closed it does not wait for ever, though the peer answers (as Linux's orphan retries).
        let orphan = self.hot.has(flag::RELEASED);
        if orphan && self.hot.backoff >= self.cold.options.orphan_retries {
            return self.reset(Failure::TimedOut);
        }
        if self.is_given_up(u8::MAX, false) || self.hot.probes > self.retries() {
            return self.fail(Failure::TimedOut);
        }
        self.hot.set(flag::TIMER_IS_PERSIST);
        if !self.probe() {
            self.hot.retransmit_at = self.now.saturating_add(SINK_PATIENCE);
            return;
        }
        self.hot.probes = self.hot.probes.saturating_add(1);
        self.hot.backoff = self.hot.backoff.saturating_add(1).min(12);
        self.hot.retransmit_at = self.within_user_timeout(rtt::timeout(self.hot));
    }

    fn on_life_timer(&mut self) {
        self.hot.life_at = NEVER;
        match self.hot.state {
            State::TimeWait | State::FinWait2 if self.hot.has(flag::RELEASED) => self.end(),
            State::TimeWait => self.end(),
            State::Closed => {}
            _ => self.keep_alive(),
        }
    }

    /// RFC 9293 3.8.4. A user timeout, if there is one, says how long the silence may last, and not the number of probes
    /// (`tcp(7)`).
    fn keep_alive(&mut self) {
        let Some(keepalive) = self.cold.options.keepalive else { return };
        let due = self.hot.received_at.saturating_add(keepalive.idle);
        if self.hot.probes == 0 && due > self.now {
            self.hot.life_at = due;
            return;
        }
        // What is in flight, or waits for the window, has a timer of its own, which decides: its probes are not ours.
        if !self.cold.flight.is_empty() || self.hot.has(flag::TIMER_IS_PERSIST) {
            self.hot.life_at = self.now.saturating_add(keepalive.interval);
            return;
        }
        let silence = self.now.saturating_sub(self.hot.received_at);
        let over = match self.cold.options.user_timeout {
            0 => self.hot.probes >= keepalive.count,
            limit => self.hot.probes > 0 && silence >= limit,
        };
        if over {
            return self.reset(Failure::TimedOut);
        }
        if !self.probe() {
            self.hot.life_at = self.now.saturating_add(SINK_PATIENCE);
            return;
        }
        self.hot.probes = self.hot.probes.saturating_add(1);
        self.hot.life_at = self.now.saturating_add(keepalive.interval);
    }
}
