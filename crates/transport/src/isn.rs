//! Initial sequence numbers (RFC 6528) and offsets of time stamps (RFC 7323 5.4).

use crate::ends::Ends;
use crate::sequence::Seq;
use crate::siphash::Secret;

/// The clock that runs once round in 4.55 hours: 4 us a step (RFC 9293 3.4.1).
const STEP: u64 = 4_000;

/// Initial sequence number of a connection at `now` (ns).
pub(crate) fn initial(secret: &Secret, ends: &Ends, now: u64) -> Seq {
    Seq(((now / STEP) as u32).wrapping_add(secret.hash_ends(ends, [1, 0]) as u32))
}

/// An initial sequence number beyond all that a connection between the same ends has used, whose window may
/// have been open (RFC 9293 3.10.7.4, RFC 6191); `after`: where it had come to.
pub(crate) fn beyond(iss: Seq, after: Option<Seq>) -> Seq {
    after.map_or(iss, |after| iss.max(after.add(64_000 + (1 << 16))))
}

/// What the time stamps of a connection are ahead of the clock: the same for all between these ends,
/// so that they never go back (RFC 6191).
pub(crate) fn timestamp_offset(secret: &Secret, ends: &Ends) -> u32 {
    secret.hash_ends(ends, [2, 0]) as u32
}

/// The clock of time stamps: ms.
pub(crate) fn timestamp(now: u64, offset: u32) -> u32 {
    ((now / 1_000_000) as u32).wrapping_add(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differs_between_connections_and_follows_the_clock() {
        let secret = Secret([1, 2]);
        let ends = |port: u16| Ends {
            local: ([10, 0, 0, 1], 80).into(),
            remote: ([10, 0, 0, 2], port).into(),
        };
        let one = initial(&secret, &ends(1000), 0);
        assert_ne!(one, initial(&secret, &ends(1001), 0));
        assert_ne!(one, initial(&Secret([1, 3]), &ends(1000), 0));
        assert_eq!(initial(&secret, &ends(1000), 8_000), one.add(2));
    }
}
