//! SYN cookies: a handshake without state, for when the queue of half-open connections is full.
//!
//! The initial sequence number is a keyed hash of the ends and the peer's initial sequence number, a
//! counter of minutes and the segment size. The time stamp's low bits keep what else a SYN negotiates.

use crate::ends::Ends;
use crate::sequence::Seq;
use crate::siphash::Secret;

/// Segment sizes that 2 bits tell: those that common links give.
const SIZES: [u16; 4] = [536, 1220, 1440, 1460];
/// A minute: ns. A cookie is good for this one and the last.
const PERIOD: u64 = 60_000_000_000;
/// Bits of a time stamp that keep options.
const KEPT: u32 = 6;
/// No window scale was offered.
const NO_SCALE: u32 = 15;

/// What a cookie keeps of a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) mss: u16,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

/// The sequence number to answer a SYN with.
pub(crate) fn make(secret: &Secret, ends: &Ends, irs: Seq, mss: u16, now: u64) -> Seq {
    let size = SIZES.iter().rposition(|size| *size <= mss).unwrap_or(0) as u32;
    hash(secret, ends, irs, now / PERIOD, size)
}

fn hash(secret: &Secret, ends: &Ends, irs: Seq, minute: u64, size: u32) -> Seq {
    let word = u64::from(irs.0) << 32 | (minute & 0x3fff_ffff) << 2 | u64::from(size);
    let hash = secret.hash_ends(ends, [5, word]) as u32;
    // 2 bits of size, 1 of minute, 29 of proof.
    Seq(hash & !7 | (minute as u32 & 1) << 2 | size)
}

/// The segment size in the cookie that the peer acknowledged, if it is one.
pub(crate) fn check(secret: &Secret, ends: &Ends, irs: Seq, iss: Seq, now: u64) -> Option<u16> {
    let size = iss.0 & 3;
    let minute = now / PERIOD;
    let made = if minute as u32 & 1 == iss.0 >> 2 & 1 { minute } else { minute.checked_sub(1)? };
    (hash(secret, ends, irs, made, size) == iss).then(|| SIZES.get(size as usize).copied())?
}

/// The time stamp with what is kept in its low bits; it never comes out later than `clock`.
pub(crate) fn stamp(clock: u32, kept: &Kept) -> u32 {
    let low = kept.window_scale.map_or(NO_SCALE, |shift| u32::from(shift.min(14)))
        | u32::from(kept.sack) << 4
        | u32::from(kept.ecn) << 5;
    let stamp = clock & !((1 << KEPT) - 1) | low;
    if stamp.wrapping_sub(clock) as i32 > 0 { stamp.wrapping_sub(1 << KEPT) } else { stamp }
}

/// What the time stamp that the peer echoed has kept.
pub(crate) fn unstamp(echo: u32, mss: u16) -> Kept {
    let shift = echo & 15;
    Kept {
        mss,
        window_scale: (shift != NO_SCALE).then_some(shift as u8),
        sack: echo & 16 != 0,
        ecn: echo & 32 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends() -> Ends {
        Ends { local: ([10, 0, 0, 1], 80).into(), remote: ([10, 0, 0, 2], 4000).into() }
    }

    #[test]
    fn is_good_for_one_to_two_minutes_and_these_ends() {
        let secret = Secret([7, 8]);
        let cookie = make(&secret, &ends(), Seq(99), 1400, PERIOD);
        let checked = |irs, now| check(&secret, &ends(), Seq(irs), cookie, now);
        assert_eq!(checked(99, PERIOD + 5), Some(1220));
        assert_eq!(checked(99, 3 * PERIOD - 1), Some(1220));
        assert_eq!(checked(99, 3 * PERIOD), None);
        assert_eq!(checked(98, PERIOD), None);
        assert_eq!(check(&Secret([7, 9]), &ends(), Seq(99), cookie, PERIOD), None);
    }

    proptest! {
        #[test]
        fn keeps_the_options(clock: u32, scale in proptest::option::of(0..15u8), sack: bool, ecn: bool) {
            let kept = Kept { mss: 1460, window_scale: scale, sack, ecn };
            let stamp = stamp(clock, &kept);
            prop_assert_eq!(unstamp(stamp, 1460), kept);
            prop_assert!(clock.wrapping_sub(stamp) < 128);
        }
    }
}
