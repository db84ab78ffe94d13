//! Fast Open (RFC 7413) on a connection: data in the SYN, taken or sent.

use super::Tcb;
use super::flight::mark;
use super::hot::flag;
use crate::emit::OptionBytes;
use crate::fast_open::{Plan, Told, Verdict};
use crate::fifo::ByteFifo;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::Segment;

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// A listener's SYN (4.2.2): whether its data is taken, and a cookie given.
    pub(crate) fn take_fast_open(&mut self, syn: &Segment<'_>) {
        let told = if self.cold.options.fast_open { syn.fast_open() } else { Told::Nothing };
        let free = self.cold.options.fast_open && self.cold.options.fast_open_without_cookie;
        let verdict = match told {
            _ if free => Verdict::Good,
            Told::Cookie(cookie) => {
                self.shared.keys.judge(self.cold.ends().remote.ip(), &cookie, self.now)
            }
            Told::Nothing | Told::Request => {
                if told == Told::Request {
                    self.hot.set(flag::FAST_COOKIE);
                }
                if !syn.data.is_empty() {
                    self.drop(Reason::SynData);
                }
                return;
            }
        };
        if verdict != Verdict::Good {
            self.hot.set(flag::FAST_COOKIE);
        }
        if verdict == Verdict::Bad {
            return self.drop(Reason::FastOpenCookie);
        }
        if syn.data.is_empty() {
            return;
        }
        let now = self.now;
        let listener = self.cold.listener.and_then(|id| self.shared.listeners.get_mut(id));
        let allowed = listener.is_some_and(|listener| listener.takes_fast_open(now));
        if !allowed {
            return self.drop(Reason::FastOpenQueue);
        }
        if !self.admit() {
            return;
        }
        if let Some(id) = self.cold.listener {
            if let Some(listener) = self.shared.listeners.get_mut(id) {
                listener.fast_open += 1;
            }
        }
        self.hot.set(flag::FAST_PENDING | flag::FAST_TAKEN);
        self.shared.counters.fast_opens += 1;
        self.start_congestion();
        self.take_window(syn, 0);
        let fits = syn.data.get(..self.hot.rcv_wnd() as usize).unwrap_or(syn.data);
        let taken = self.store(syn.seq.add(1), fits);
        self.cold.rare.note().syn_data = taken as u16;
    }

    /// The handshake of a connection that Fast Open made is over; `reset`: by a reset.
    pub(crate) fn leave_fast_open(&mut self, reset: bool) {
        if self.hot.has(flag::FAST_PENDING) {
            self.hot.clear(flag::FAST_PENDING);
            let now = self.now;
            let listener = self.cold.listener.and_then(|id| self.shared.listeners.get_mut(id));
            if let Some(listener) = listener {
                listener.end_fast_open(reset, now);
            }
        }
    }

    /// The option of a SYN or of the answer to it. Gives bytes of data that the SYN may carry.
    pub(super) fn add_fast_open(&mut self, options: &mut OptionBytes, answers: bool) -> u32 {
        // Not again after a loss: something on the way may drop it (4.2.1).
        if self.cold.retransmitted > 0 {
            return 0;
        }
        let peer = self.cold.ends().remote.ip();
        if answers {
            if self.hot.has(flag::FAST_COOKIE) {
                options.fast_open(self.shared.keys.make(peer, self.now).as_slice());
            }
            return 0;
        }
        if !self.cold.options.fast_open || !self.cold.flight.is_empty() {
            return 0;
        }
        let queued = self.cold.queued();
        let plan = self.shared.servers.plan(peer, self.now);
        if self.cold.options.fast_open_without_cookie && plan != Plan::Plain {
            self.hot.set(flag::FAST_TRIED);
            let known = if let Plan::Send(_, mss) = plan { mss } else { u16::MAX };
            return queued.min(self.syn_room(known, options) as u32);
        }
        match plan {
            Plan::Ask if options.fast_open(&[]) => self.hot.set(flag::FAST_TRIED),
            Plan::Send(cookie, mss) if queued > 0 && options.fast_open(cookie.as_slice()) => {
                self.hot.set(flag::FAST_TRIED);
                return queued.min(self.syn_room(mss, options) as u32);
            }
            _ => {}
        }
        0
    }

    /// Bytes of data that fit into a SYN with these options, to a server that takes `mss`.
    fn syn_room(&self, mss: u16, options: &OptionBytes) -> usize {
        let headers = self.cold.ip_header() + 20;
        let room = self.cold.path_mtu.saturating_sub(headers).min(mss);
        usize::from(room).saturating_sub(options.len())
    }

    /// Notes the data that our SYN carries.
    pub(super) fn note_syn_data(&mut self, length: u32) {
        if length > 0 {
            let start = self.hot.snd_nxt;
            let end = start.add(length);
            let all = length == self.cold.queued();
            let marks = if all { mark::PUSH } else { 0 };
            self.note_sent((start, end), marks, self.hot.mss);
            self.hot.snd_nxt = end;
        }
    }

    /// Our SYN got no answer in time.
    pub(super) fn give_fast_open_up(&mut self) {
        if self.hot.has(flag::FAST_TRIED) {
            self.hot.clear(flag::FAST_TRIED);
            self.shared.servers.silent(self.cold.ends().remote.ip(), self.now);
        }
    }

    /// Our SYN was answered (4.2.1). What it carried and the server did not take is sent again at once;
    /// that is no sign of congestion.
    pub(super) fn settle_fast_open(&mut self, answer: &Segment<'_>) {
        let first = self.cold.iss.add(1);
        let carried = self.hot.snd_nxt != first;
        let taken = carried && answer.ack != first;
        if self.hot.has(flag::FAST_TRIED) {
            let server = self.cold.ends().remote.ip();
            let cookie = match answer.fast_open() {
                Told::Cookie(cookie) => Some(cookie),
                Told::Nothing | Told::Request => None,
            };
            let mss = self.cold.peer_mss;
            self.shared.servers.answered(server, cookie, mss, self.now);
            if carried && !taken && cookie.is_none() {
                self.shared.servers.refused(server, self.now);
            }
        }
        if taken {
            self.cold.rare.note().syn_data = answer.ack.since(first) as u16;
            self.hot.set(flag::FAST_TAKEN);
        }
        if !self.cold.flight.is_empty() {
            self.cold.flight.lose_all();
        }
    }
}
