//! Congestion marks on a connection with accurate feedback (RFC 9768): the handshake, and what marks
//! lead to.

use super::Tcb;
use super::accurate::{Accurate, ace, handshake_bits};
use super::flight::Delivered;
use super::hot::flag;
use super::state::State;
use crate::congestion::Congestion;
use crate::emit::OptionBytes;
use crate::fifo::ByteFifo;
use crate::options::{Ecn, Options};
use crate::packet::Sink;
use crate::segment::{ACCURATE_0, CONGESTION_EXPERIENCED, Segment, bits};

/// All of a SYN's three bits: accurate feedback is asked for.
const ALL: u16 = bits::AE | bits::CWR | bits::ECE;
/// A SYN that asks for marks as RFC 3168 has them.
const CLASSIC: u16 = bits::CWR | bits::ECE;

/// What a SYN offers that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    None,
    /// RFC 3168.
    Classic,
    Accurate,
}

/// Reads a SYN's three bits (3.1.2 table 2; what the table does not know: 3.1.3).
pub(crate) fn offer(syn: &Segment<'_>, options: &Options) -> Offer {
    match syn.flags & ALL {
        _ if options.ecn == Ecn::Off => Offer::None,
        0 => Offer::None,
        CLASSIC => Offer::Classic,
        _ => Offer::Accurate,
    }
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    fn enter_accurate(&mut self, syn_ecn: u8) {
        self.hot.set(flag::ACCURATE);
        self.cold.accurate = Some(Box::new(Accurate::new(syn_ecn)));
    }

    /// The peer's offer of congestion marks in its SYN (3.1.2 table 2, 3.1.3).
    pub(crate) fn take_ecn_offer(&mut self, syn: &Segment<'_>) {
        match offer(syn, &self.cold.options) {
            Offer::None => {}
            Offer::Classic => self.hot.set(flag::ECN),
            Offer::Accurate => self.enter_accurate(syn.ecn),
        }
    }

    /// The peer's SYN crosses ours: both ends know what both have offered, and each takes what both did. What
    /// the answers say would make each end follow its own offer, and read the other's counters as echoes.
    pub(super) fn take_crossing_offer(&mut self, syn: &Segment<'_>) {
        let own = match self.cold.options.ecn {
            Ecn::Off | Ecn::Passive => Offer::None,
            Ecn::Active => Offer::Classic,
            Ecn::Accurate => Offer::Accurate,
        };
        match (own, offer(syn, &self.cold.options)) {
            (Offer::None, _) | (_, Offer::None) => {}
            (Offer::Accurate, Offer::Accurate) => self.enter_accurate(syn.ecn),
            _ => self.hot.set(flag::ECN),
        }
    }

    /// The peer's SYN once more. Gives whether it agrees with the first (3.1.5).
    pub(super) fn take_ecn_offer_again(&mut self, syn: &Segment<'_>) -> bool {
        let offer = syn.flags & ALL;
        let classic = offer == CLASSIC;
        if let Some(accurate) = &mut self.cold.accurate {
            accurate.syn_ecn = syn.ecn;
            accurate.mute = true;
            if offer == 0 {
                self.hot.set(flag::UNMARKABLE);
            }
            return !classic;
        }
        // Where both open at once, the peer offers what it wants, not what was agreed on.
        let crossing = !self.hot.has(flag::PASSIVE);
        if offer == 0 && !crossing {
            // RFC 3168 6.1.1: a SYN without the offer arrived, so nothing of ours should be capable.
            self.hot.set(flag::UNMARKABLE);
        }
        crossing || !self.hot.has(flag::ECN) || classic || offer == 0
    }

    /// The three bits of our SYN, or of our answer to the peer's.
    pub(super) fn ecn_offer(&mut self, answers: bool) -> u16 {
        let tries = self.cold.retransmitted;
        match (&self.cold.accurate, answers) {
            // 3.2.3.2.2: something on the way may drop the answer.
            (Some(_), true) if tries >= 2 => {
                self.hot.set(flag::UNMARKABLE);
                0
            }
            (Some(accurate), true) => handshake_bits(accurate.syn_ecn),
            (None, true) if self.hot.has(flag::ECN) => bits::ECE,
            (_, true) => 0,
            // Not again after a loss: something on the way may drop it (RFC 3168 6.1.1.1); accurate
            // feedback is asked for twice (3.1.4.1).
            (_, false) => match self.cold.options.ecn {
                Ecn::Active if tries == 0 => CLASSIC,
                Ecn::Accurate if tries <= 1 => ALL,
                _ => 0,
            },
        }
    }

    /// The peer's answer to our offer (3.1.2 table 2).
    pub(super) fn take_ecn_answer(&mut self, answer: &Segment<'_>) {
        let told = ace(answer.flags);
        match self.cold.options.ecn {
            Ecn::Active if told & 3 == 1 => self.hot.set(flag::ECN),
            Ecn::Accurate => match told {
                0b001 => self.hot.set(flag::ECN),
                // No marks, or a peer that sends back what it got.
                0b000 | 0b111 => {}
                _ => self.begin_accurate(answer, told),
            },
            _ => {}
        }
        if self.hot.has(flag::ECN) && self.ecn_offer(false) == 0 {
            // RFC 3168 6.1.1: our last SYN left without the offer, so nothing of ours may be capable.
            self.hot.set(flag::UNMARKABLE);
        }
    }

    fn begin_accurate(&mut self, answer: &Segment<'_>, told: u32) {
        self.enter_accurate(answer.ecn);
        if let Some(accurate) = &mut self.cold.accurate {
            (accurate.answers_handshake, accurate.tests) = (true, 2);
            accurate.greet(answer.accurate_option());
        }
        self.count_marked_answer(answer);
        // 3.2.2.3: our SYN left as not capable; 0b101 says that nothing has changed (3.1.3).
        if !matches!(told, 0b010 | 0b101) {
            self.hot.set(flag::UNMARKABLE);
        }
    }

    /// An answer to our SYN that was marked counts, but once (3.2.2.2).
    fn count_marked_answer(&mut self, answer: &Segment<'_>) {
        let Some(accurate) = &mut self.cold.accurate else { return };
        if answer.ecn == CONGESTION_EXPERIENCED && !accurate.counted_answer {
            accurate.counted_answer = true;
            accurate.received.cep = accurate.received.cep.wrapping_add(1);
        }
    }

    /// Our connection is established, and the answer comes again: how it arrived is told again.
    pub(super) fn greet_again(&mut self, answer: &Segment<'_>) {
        let again = answer.has(bits::SYN) && answer.has(bits::ACK);
        if !again || answer.seq != self.cold.irs || self.hot.has(flag::PASSIVE) {
            return;
        }
        self.count_marked_answer(answer);
        if let Some(accurate) = &mut self.cold.accurate {
            (accurate.syn_ecn, accurate.answers_handshake) = (answer.ecn, true);
        }
    }

    /// The SYN that we sent was marked: the connection begins with less.
    pub(super) fn react_to_marked_syn(&mut self, answer: &Segment<'_>) {
        if self.hot.has(flag::ACCURATE) && ace(answer.flags) == 0b110 {
            self.reduce(65_536);
        }
    }

    /// The first acknowledgment of our answer, in SYN-RECEIVED (3.2.2.1 table 4).
    pub(super) fn take_handshake_field(&mut self, segment: &Segment<'_>) {
        let plain = segment.length() == 0 && segment.sack_count == 0;
        if !plain || segment.has(bits::WITH_SYN) {
            return;
        }
        let Some(accurate) = &mut self.cold.accurate else { return };
        accurate.greet(segment.accurate_option());
        match ace(segment.flags) {
            0b000 => self.hot.set(flag::UNMARKABLE | flag::MARKS_MEAN_NOTHING),
            0b110 => {
                accurate.sent.cep = accurate.sent.cep.wrapping_add(1);
                // What left as not capable came in marked: both are told (3.2.2.3).
                self.hot.set(flag::UNMARKABLE);
                self.reduce(65_536);
            }
            0b011 | 0b100 => self.hot.set(flag::UNMARKABLE),
            _ => {}
        }
    }

    /// Counts a packet that was taken (3.2), and acknowledges it when marks say so.
    pub(super) fn count_marks(&mut self, segment: &Segment<'_>) {
        let waiting = self.hot.rcv_nxt != self.hot.acked;
        let Some(accurate) = &mut self.cold.accurate else { return };
        if accurate.count(segment.ecn, segment.data.len() as u32, waiting) {
            self.hot.set(flag::ACK_NOW);
        }
    }

    /// Feedback in an acknowledgment. One that delivers nothing may be older than the last (A.1).
    pub(super) fn take_feedback(&mut self, segment: &Segment<'_>, news: &Delivered) {
        let bytes = news.bytes;
        if bytes == 0 || segment.has(bits::WITH_SYN | bits::SYN) {
            return;
        }
        let mss = u32::from(self.hot.mss).max(1);
        let packets = news.records.max(bytes.div_ceil(mss));
        let (una, next) = (self.hot.snd_una, self.hot.snd_nxt);
        let Some(accurate) = &mut self.cold.accurate else { return };
        let echo = segment.accurate_option();
        let told = accurate.read(ace(segment.flags), echo, packets, bytes, mss);
        let always = accurate.add_round(una, next, bytes, told.bytes);
        let share = accurate.share();
        if told.mangled || always {
            self.hot.set(flag::UNMARKABLE);
        }
        if told.senseless || always {
            self.hot.set(flag::MARKS_MEAN_NOTHING);
        }
        if told.packets > 0 && !self.hot.has(flag::MARKS_MEAN_NOTHING) {
            self.on_echo(share.max(1));
        }
    }

    /// The peer saw a congestion mark (RFC 3168 6.1.2): once in a window. `marked`: the share of it that
    /// was marked, 1/65536.
    pub(super) fn on_echo(&mut self, marked: u32) {
        // Beyond what was in flight then: what goes just behind it tells the peer to stop. A reduction of long ago says nothing,
        // however often sequence numbers have gone round since.
        let again = !self.cold.reduced_until.within(self.hot.snd_una, self.hot.snd_nxt);
        if again && !self.hot.has(flag::RECOVERY | flag::LOSS) {
            self.reduce(marked);
        }
    }

    fn reduce(&mut self, marked: u32) {
        let in_flight = self.pipe();
        self.cold.reduced_until = self.hot.snd_nxt;
        self.hot.set(flag::REDUCED);
        self.begin_congestion();
        if let Some(congestion) = &mut self.cold.congestion {
            congestion.on_ecn(&Congestion { now: self.now, in_flight, lost: 0 }, marked);
            self.follow_congestion();
        }
    }

    /// Whether the counter to tell now has the bit that is CWR to others: ports that segment leave that in
    /// the first segment only (RFC 9768 3.3.4).
    #[cold]
    pub(super) fn field_has_cwr(&self) -> bool {
        self.cold.accurate.as_ref().is_some_and(|accurate| accurate.received.cep & 2 != 0)
    }

    /// The three bits of a segment without SYN. `plain`: no data, no SACK blocks.
    pub(super) fn feedback(&mut self, plain: bool) -> u16 {
        if self.hot.has(flag::ACCURATE) {
            let settled = self.hot.state != State::SynReceived;
            return self
                .cold
                .accurate
                .as_mut()
                .map_or(0, |accurate| accurate.field(plain && settled));
        }
        if self.hot.has(flag::ECHO) { bits::ECE } else { 0 }
    }

    /// The option of the answer to a SYN shows whether options get through (3.2.3.2.1); when the answer
    /// has to be repeated, they may be why.
    pub(super) fn test_accurate_option(&mut self, options: &mut OptionBytes, answers: bool) {
        let tries = self.cold.retransmitted;
        let Some(accurate) = &mut self.cold.accurate else { return };
        accurate.mute |= tries > 0;
        if accurate.mute || !answers {
            return;
        }
        accurate.tests = 1;
        self.add_accurate_option(options, 0);
        // An empty one says as much.
        if options.room() >= 4 && self.cold.accurate.as_ref().is_some_and(|own| own.tests > 0) {
            options.accurate(ACCURATE_0, &[]);
        }
    }

    /// The option that is due, if it fits; so many SACK blocks come behind it, of which two go first
    /// (3.2.3.3).
    pub(super) fn add_accurate_option(&mut self, options: &mut OptionBytes, blocks: usize) {
        let Some(accurate) = &mut self.cold.accurate else { return };
        let Some((kind, fields, count)) = accurate.option() else { return };
        let length = (2 + 3 * count).next_multiple_of(4);
        let reserved = if blocks > 0 { 4 + 8 * blocks.min(2) } else { 0 };
        if length + reserved <= options.room() {
            options.accurate(kind, fields.get(..count).unwrap_or(&[]));
            accurate.told_by_option();
        }
    }
}
