//! Accurate ECN feedback (RFC 9768): its counters, and how they are written and read.

use crate::segment::{ACCURATE_0, ACCURATE_1, CONGESTION_EXPERIENCED, Echo, bits};
use crate::sequence::Seq;

/// ECT(1) and ECT(0) in the IP header (RFC 3168 5).
const ECT1: u8 = 1;
const ECT0: u8 = 2;
/// Both packet counters begin here, so that zero is a sign of mangling (3.2.1).
const FIRST: u32 = 5;
/// Values that the ACE field has.
const CYCLE: u32 = 8;
/// A 24-bit counter that went further than this went back.
const HALF: u32 = 1 << 23;
/// Packets that an acknowledgment covers on average, from which on one that covers many is nothing
/// special (A.2.1), in 1/8.
const MANY: u32 = 4 * 8;

/// What both ends count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Packets that were marked.
    pub(crate) cep: u32,
    /// Bytes that were.
    pub(crate) ceb: u32,
    /// Bytes in packets with ECT(0) and ECT(1).
    pub(crate) e0b: u32,
    pub(crate) e1b: u32,
}

impl Default for Counts {
    fn default() -> Self {
        Self { cep: FIRST, ceb: 0, e0b: 1, e1b: 1 }
    }
}

/// State of a connection with accurate feedback.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Accurate {
    /// As receiver: what arrived (r.*).
    pub(crate) received: Counts,
    /// As sender: what arrived there, as far as is known (s.*).
    pub(crate) sent: Counts,
    /// The IP header's two bits of the latest SYN, or answer to ours.
    pub(crate) syn_ecn: u8,
    /// The last packet was marked.
    last_marked: bool,
    /// r.cep when the last acknowledgment left.
    told: u32,
    /// Byte counters have grown since the last option.
    news: bool,
    /// So many more options hold all fields, to see whether they get through (3.2.3.2.1).
    pub(crate) tests: u8,
    /// Options are not sent: they may be what was lost.
    pub(crate) mute: bool,
    /// The next acknowledgment without data tells how the answer to our SYN arrived (3.2.2.1).
    pub(crate) answers_handshake: bool,
    /// An answer to our SYN that was marked was counted.
    pub(crate) counted_answer: bool,
    /// Feedback came after the handshake.
    heard: bool,
    /// An option came, so that its absence means loss; options that came as zero are ignored.
    options: Heard,
    /// Packets that an acknowledgment covers, on average: 1/8.
    covered: u32,
    /// Round trips from the start in which everything was marked.
    all_marked: u8,
    /// Bytes of this round trip: delivered, marked; and where it ends.
    round: (u32, u32),
    round_end: Seq,
}

/// What is known of the peer's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Heard {
    #[default]
    Nothing,
    Good,
    /// Zeroed on the way (3.2.3.2.4).
    Zeroed,
}

carried!(Counts { cep, ceb, e0b, e1b });

carried!(Accurate {
    received,
    sent,
    syn_ecn in 0..=3,
    last_marked,
    told,
    news,
    tests,
    mute,
    answers_handshake,
    counted_answer,
    heard,
    options,
    covered in 0..=64 * 8,
    all_marked,
    round,
    round_end,
});

carried_as!(Heard {
    Self::Nothing => 0 => Self::Nothing,
    Self::Good => 1 => Self::Good,
    Self::Zeroed => 2 => Self::Zeroed,
});

/// What an acknowledgment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct News {
    /// Packets newly known as marked.
    pub(crate) packets: u32,
    /// Bytes in them, as far as is known.
    pub(crate) bytes: u32,
    /// Something on the way changes the marks or the counters: nothing of ours should be marked.
    pub(crate) mangled: bool,
    /// And what comes back says nothing.
    pub(crate) senseless: bool,
}

/// What a SYN's answer, or the first acknowledgment, says of how its cause arrived (tables 2 and 3).
pub(crate) fn handshake_bits(ecn: u8) -> u16 {
    match ecn {
        ECT1 => bits::CWR | bits::ECE,
        ECT0 => bits::AE,
        CONGESTION_EXPERIENCED => bits::AE | bits::CWR,
        _ => bits::CWR,
    }
}

/// The three bits as a number.
pub(crate) fn ace(flags: u16) -> u32 {
    u32::from(flags & (bits::AE | bits::CWR | bits::ECE)) >> 6
}

/// A number as the three bits.
fn ace_bits(count: u32) -> u16 {
    ((count % CYCLE) as u16) << 6
}

impl Accurate {
    pub(crate) fn new(syn_ecn: u8) -> Self {
        Self { syn_ecn, told: FIRST, ..Self::default() }
    }

    /// The ACE field of what is sent now. `plain`: no data, no SACK blocks.
    pub(crate) fn field(&mut self, plain: bool) -> u16 {
        self.told = self.received.cep;
        if plain && std::mem::take(&mut self.answers_handshake) {
            return handshake_bits(self.syn_ecn);
        }
        ace_bits(self.received.cep)
    }

    /// Counts a packet that was taken, with `data` bytes. Gives whether it is to be acknowledged at once
    /// (3.2.2.5.1). `waiting`: there is data that was not acknowledged yet.
    pub(crate) fn count(&mut self, ecn: u8, data: u32, waiting: bool) -> bool {
        let counts = &mut self.received;
        let counter = match ecn {
            CONGESTION_EXPERIENCED => &mut counts.ceb,
            ECT0 => &mut counts.e0b,
            ECT1 => &mut counts.e1b,
            _ => {
                self.last_marked = false;
                return false;
            }
        };
        *counter = counter.wrapping_add(data);
        self.news |= data > 0;
        let marked = ecn == CONGESTION_EXPERIENCED;
        let changed = marked && !self.last_marked && data > 0;
        self.last_marked = marked;
        if !marked {
            return false;
        }
        counts.cep = counts.cep.wrapping_add(1);
        let most = if waiting || data > 0 { 2 } else { 3 };
        changed || counts.cep.wrapping_sub(self.told) >= most
    }

    /// The option that is due: kind and fields, as few as tell what ever changed (3.2.3.3).
    pub(crate) fn option(&self) -> Option<(u8, [u32; 3], usize)> {
        if self.mute || !self.news && self.tests == 0 {
            return None;
        }
        let Counts { ceb, e0b, e1b, .. } = self.received;
        let (zero, one, marked) = (e0b != 1, e1b != 1, ceb != 0);
        if self.tests == 0 && one && !zero {
            return Some((ACCURATE_1, [e1b, ceb, e0b], if marked { 2 } else { 1 }));
        }
        let count = match () {
            () if self.tests > 0 || one => 3,
            () if marked => 2,
            () => 1,
        };
        Some((ACCURATE_0, [e0b, ceb, e1b], count))
    }

    /// The option left.
    pub(crate) fn told_by_option(&mut self) {
        self.news = false;
        self.tests = self.tests.saturating_sub(1);
    }

    /// Reads the feedback of an acknowledgment that delivered `bytes` in `packets`, both above 0.
    pub(crate) fn read(
        &mut self,
        field: u32,
        echo: Option<Echo>,
        packets: u32,
        bytes: u32,
        mss: u32,
    ) -> News {
        let mut news = News::default();
        let first = !std::mem::replace(&mut self.heard, true);
        let delta = field.wrapping_sub(self.sent.cep) % CYCLE;
        // 3.2.2.4; so few packets cannot have brought the counter round to zero.
        if first && field == 0 && packets < CYCLE - FIRST {
            (news.mangled, news.senseless) = (true, true);
        }
        let echo = echo.and_then(|echo| self.read_option(&echo));
        let mut marked = delta;
        if packets >= CYCLE {
            let safer = packets - (packets - delta) % CYCLE;
            let normal = self.covered >= MANY;
            marked = match echo {
                // A.2.2
                Some(ceb) if ceb <= mss * delta && ceb / safer.max(1) < mss / 2 => delta,
                Some(_) => safer,
                // A.2.1
                None if normal => delta,
                None => safer,
            };
        } else if echo.is_some_and(|ceb| ceb > 0) && delta == 0 {
            // 3.2.3.2.5: marked bytes without a marked packet.
            news.mangled = true;
        }
        self.covered = self.covered - self.covered / 8 + packets.min(64);
        self.sent.cep = self.sent.cep.wrapping_add(marked);
        news.packets = marked;
        news.bytes = echo.unwrap_or(marked.saturating_mul(mss).min(bytes));
        news
    }

    /// Takes the byte counters in; gives by how much that of marked bytes has grown. `None`: the option
    /// tells nothing.
    fn read_option(&mut self, echo: &Echo) -> Option<u32> {
        if self.options == Heard::Nothing {
            let zeroed = echo.e0b == Some(0) || echo.e1b == Some(0);
            self.options = if zeroed { Heard::Zeroed } else { Heard::Good };
        }
        if self.options == Heard::Zeroed {
            return None;
        }
        let grown = |counter: u32, field: Option<u32>| {
            field.map_or(0, |field| field.wrapping_sub(counter) & 0xff_ffff)
        };
        let sent = &mut self.sent;
        let deltas =
            [grown(sent.ceb, echo.ceb), grown(sent.e0b, echo.e0b), grown(sent.e1b, echo.e1b)];
        if deltas.iter().any(|delta| *delta >= HALF) {
            return None;
        }
        sent.ceb = sent.ceb.wrapping_add(deltas[0]);
        sent.e0b = sent.e0b.wrapping_add(deltas[1]);
        sent.e1b = sent.e1b.wrapping_add(deltas[2]);
        Some(deltas[0])
    }

    /// Looks at the option of an answer to our SYN, which delivers nothing.
    pub(crate) fn greet(&mut self, echo: Option<Echo>) {
        if let Some(echo) = echo {
            self.read_option(&echo);
        }
    }

    /// Adds to the round trip, which ends at `next` if it begins here. Gives whether everything was
    /// marked in the first four (3.2.2.3).
    pub(crate) fn add_round(&mut self, una: Seq, next: Seq, delivered: u32, marked: u32) -> bool {
        if !una.before(self.round_end) {
            let (all, part) = self.round;
            if all > 0 {
                let whole = part >= all && self.all_marked < 4;
                // Once a round was not: never again.
                self.all_marked = if whole { self.all_marked + 1 } else { u8::MAX };
            }
            (self.round, self.round_end) = ((0, 0), next);
        }
        let (all, part) = &mut self.round;
        *all = all.saturating_add(delivered);
        *part = part.saturating_add(marked).min(*all);
        self.all_marked == 4
    }

    /// The share of the round trip that was marked: 1/65536.
    pub(crate) fn share(&self) -> u32 {
        let (all, part) = self.round;
        (u64::from(part) * 65_536).checked_div(u64::from(all)).unwrap_or(65_536) as u32
    }

    /// Packets marked: received, and of ours.
    pub(crate) fn marks(&self) -> (u32, u32) {
        (self.received.cep.wrapping_sub(FIRST), self.sent.cep.wrapping_sub(FIRST))
    }

    /// The first sequence number of the first round trip.
    pub(crate) fn begin_round(&mut self, at: Seq) {
        self.round_end = at;
    }
}

#[cfg(test)]
mod tests;
