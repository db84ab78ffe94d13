//! The end of TIME-WAIT: a place is given back as soon as nobody holds it, late segments find what is left
//! of the connection, and new connections take over (RFC 9293 3.10.7.4, RFC 6191).

use super::Stack;
use crate::emit::{self, OptionBytes, Out};
use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::isn;
use crate::options::SECOND;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::{Segment, bits};
use crate::sequence::Seq;
use crate::tcp::hot::flag;
use crate::tcp::input::{Late, judge_late, may_be_replaced};
use crate::time_wait::{TIME_WAIT, Waiting};

/// After this a new connection from here may have time stamps that are later than the old one's: ns.
const REUSE: u64 = SECOND;

impl<B: Buffers> Stack<B> {
    /// A connection in TIME-WAIT that nobody holds, and that has nothing more to say, gives its place back.
    pub(super) fn retire(&mut self, index: u32) {
        let Some((hot, cold)) = self.slab.at(index) else { return };
        let waiting = Waiting::of(hot, cold, self.now);
        let stamp = hot.has(flag::MOVED).then_some(hot.ts_offset);
        hot.clear(flag::IN_TABLE);
        // The entry is there: only its value changes.
        let changed = self.shelve(waiting, stamp);
        debug_assert!(changed, "the connection was in the table");
        self.timers.cancel(index);
        self.free(index);
    }

    /// The table of flows has it from now on, whatever it had there; `stamp`: what its time stamps are ahead of the clock, if
    /// another secret says so. `false`: the table has no room.
    fn shelve(&mut self, waiting: Waiting, stamp: Option<u32>) -> bool {
        if self.time_waits.is_full() {
            if let Some(oldest) = self.time_waits.oldest() {
                self.shared.counters.time_waits_evicted += 1;
                self.forget(oldest);
            }
        }
        let number = self.time_waits.push(waiting, stamp.filter(|_| waiting.has_timestamps()));
        self.moved = true;
        let listed = self.list_key(&waiting.ends().key(), TIME_WAIT | number);
        if !listed {
            self.time_waits.remove(number);
        }
        listed
    }

    /// Nothing is left of it.
    fn forget(&mut self, number: u32) -> Option<Waiting> {
        let waiting = self.time_waits.remove(number & !TIME_WAIT)?;
        self.unlist_key(&waiting.ends().key());
        Some(waiting)
    }

    /// Takes the oldest out, and what its time stamps are ahead of the clock.
    pub(crate) fn take_oldest(&mut self) -> Option<(Waiting, u32)> {
        let oldest = self.time_waits.oldest()?;
        let ends = self.time_waits.get_mut(oldest)?.ends();
        let offset = self.offset_of(&ends);
        self.forget(oldest).map(|waiting| (waiting, offset))
    }

    /// What the time stamps of one are ahead of the clock.
    fn offset_of(&self, ends: &Ends) -> u32 {
        let own = || isn::timestamp_offset(&self.shared.secret, ends);
        self.time_waits.stamp(ends).unwrap_or_else(own)
    }

    /// Takes one in, in the place of one between the same ends. `false`: it is over, a connection between these ends goes on here, or
    /// there is no room.
    pub(crate) fn take_in(&mut self, waiting: Waiting, offset: u32) -> bool {
        let ends = waiting.ends();
        self.end_time_wait(&ends);
        let none = self.shared.config.time_waits == 0;
        if none || waiting.is_over(self.now) || self.find(&ends).is_some() {
            return false;
        }
        let own = isn::timestamp_offset(&self.shared.secret, &ends);
        self.shelve(waiting, (offset != own).then_some(offset))
    }

    /// How long what is left of a connection between these ends still waits: ns. `None`: there is none, or somebody holds it.
    pub fn time_wait_left(&mut self, ends: &Ends) -> Option<u64> {
        let waiting = self.find(ends).and_then(|value| self.waiting(value))?;
        Some(waiting.left(self.now)).filter(|left| *left > 0)
    }

    /// Forgets what is left of a connection between these ends: another begins, or one arrives.
    pub fn end_time_wait(&mut self, ends: &Ends) {
        if let Some(value) = self.find(ends).filter(|value| value & TIME_WAIT != 0) {
            self.forget(value);
        }
    }

    /// Those whose time is over go, `budget` at most. Gives what is left of it.
    pub(super) fn expire_time_waits(&mut self, budget: usize) -> usize {
        let mut left = budget;
        while left > 0 && self.time_waits.deadline().is_some_and(|deadline| deadline <= self.now) {
            let Some(oldest) = self.time_waits.oldest() else { break };
            self.forget(oldest);
            left -= 1;
        }
        left
    }

    /// Whether a new connection from here may take the place of what the table of flows has; `timestamps`:
    /// it will use them. Without them, or too early, the peer could not tell its segments from the old
    /// one's (RFC 6191 in our direction, as Linux's `tcp_tw_reuse`).
    pub(crate) fn may_take_over(&mut self, value: u32, timestamps: bool) -> bool {
        let now = self.now;
        let Some(waiting) = self.waiting(value) else { return false };
        let late = now >= waiting.began_at().saturating_add(REUSE);
        // Time stamps of this stack do not go on from those of another secret.
        let own = waiting.has_timestamps() && self.time_waits.stamp(&waiting.ends()).is_none();
        waiting.is_over(now) || timestamps && own && late
    }

    /// Makes way for a new connection. Gives the sequence number that the old one had come to.
    pub(crate) fn take_over(&mut self, value: u32) -> Option<Seq> {
        self.forget(value).map(|waiting| waiting.snd_nxt)
    }

    /// A segment for a connection in TIME-WAIT.
    #[cold]
    pub(super) fn take_late<S: Sink + ?Sized>(
        &mut self,
        number: u32,
        segment: &Segment<'_>,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let now = self.now;
        let found = self.time_waits.get_mut(number).map(|waiting| waiting.ends());
        let ends = &found.ok_or(Reason::NoConnection)?;
        let over = |waiting: &&mut Waiting| !waiting.is_over(now);
        let Some(waiting) = self.time_waits.get_mut(number).filter(over) else {
            self.forget(number);
            return self.take_unmatched(ends, segment, None, sink);
        };
        let recent = waiting.has_timestamps().then_some(waiting.ts_recent);
        let (next, window) = (waiting.rcv_nxt, u32::from(waiting.window));
        let opens = segment.flags & (bits::SYN | bits::ACK | bits::RST) == bits::SYN;
        if opens && may_be_replaced(next, recent, segment) && self.is_served(ends) {
            let after = self.take_over(number);
            return self.take_unmatched(ends, segment, after, sink);
        }
        self.shared.counters.drop(Reason::TimeWait);
        match judge_late(next, window, recent, segment) {
            Late::Nothing => return Ok(()),
            Late::Answer if !self.may_answer(number, segment) => return Err(Reason::RateLimit),
            Late::Answer if !self.shared.may_challenge(ends.remote.ip(), now) => {
                return Err(Reason::RateLimit);
            }
            Late::Answer => self.shared.counters.challenges += 1,
            Late::Again => self.restart(number, ends, segment),
        }
        if let Some(waiting) = self.find(ends).and_then(|value| self.waiting(value)) {
            self.answer_late(&waiting, ends, sink);
        }
        Ok(())
    }

    /// Data and FIN are answered; what could be an answer itself, twice in a second.
    fn may_answer(&mut self, number: u32, segment: &Segment<'_>) -> bool {
        let now = self.now;
        let harmless = segment.length() > 0 && !segment.has(bits::SYN);
        harmless || self.time_waits.get_mut(number).is_some_and(|own| own.may_answer(now))
    }

    fn waiting(&mut self, value: u32) -> Option<Waiting> {
        (value & TIME_WAIT != 0).then(|| self.time_waits.get_mut(value & !TIME_WAIT).copied())?
    }

    /// The peer's FIN again: the wait begins anew, behind the others.
    fn restart(&mut self, number: u32, ends: &Ends, segment: &Segment<'_>) {
        let stamp = self.time_waits.stamp(ends);
        let Some(mut waiting) = self.time_waits.remove(number) else { return };
        if let (true, Some((value, _))) = (waiting.has_timestamps(), segment.timestamps) {
            if value.wrapping_sub(waiting.ts_recent) as i32 > 0 {
                waiting.ts_recent = value;
            }
        }
        let number = self.time_waits.push(waiting.restarted(self.now), stamp);
        self.moved = true;
        self.list_key(&ends.key(), TIME_WAIT | number);
    }

    fn answer_late<S: Sink + ?Sized>(&mut self, waiting: &Waiting, ends: &Ends, sink: &mut S) {
        let mut options = OptionBytes::default();
        if waiting.has_timestamps() {
            let offset = self.offset_of(ends);
            options.timestamps(isn::timestamp(self.now, offset), waiting.ts_recent);
        }
        let out = Out {
            key: &ends.key(),
            path: self.shared.path,
            seq: waiting.snd_nxt,
            ack: waiting.rcv_nxt,
            flags: bits::ACK,
            window: waiting.window,
            urgent: 0,
            options: &options,
            ttl: waiting.ttl,
            service: waiting.service(),
            dont_fragment: waiting.dont_fragment(),
            data: 0,
            segment_size: 0,
        };
        emit::emit::<B::Fifo, _>(sink, &mut self.shared, &out, None);
    }

    fn is_served(&mut self, ends: &Ends) -> bool {
        self.shared.listeners.is_listening(ends.local)
    }
}
