//! Round-trip time and retransmission time-out (RFC 6298).

use super::hot::Hot;

/// Longest time-out: us (RFC 6298 2.5 allows no less than 60 s).
pub(crate) const MAXIMUM_RTO: u64 = 120_000_000;
/// Time-out before the first measurement: us (2.1).
pub(crate) const INITIAL_RTO: u32 = 1_000_000;

/// Takes in a measurement of `rtt` us; `minimum`: shortest time-out in us.
#[inline]
pub(crate) fn measure(hot: &mut Hot, rtt: u32, minimum: u32) {
    let rtt = rtt.clamp(1, 60_000_000);
    if hot.srtt == 0 {
        // 2.2
        hot.srtt = rtt;
        hot.rttvar = rtt / 2;
    } else {
        // 2.3: 1/4 and 1/8.
        let error = hot.srtt.abs_diff(rtt);
        hot.rttvar = ((u64::from(hot.rttvar) * 3 + u64::from(error)) / 4) as u32;
        hot.srtt = ((u64::from(hot.srtt) * 7 + u64::from(rtt)) / 8).max(1) as u32;
    }
    // As hosts do it, the floor is under the variation's part, so that the time-out stays clear
    // of a steady round-trip time.
    let rto = u64::from(hot.srtt) + u64::from((4 * hot.rttvar).max(minimum));
    hot.rto = rto.min(MAXIMUM_RTO) as u32;
    // 5.7: only what was measured takes the doubling back.
    hot.backoff = 0;
}

/// The time-out with its back-off (5.5): ns.
#[inline]
pub(crate) fn timeout(hot: &Hot) -> u64 {
    if hot.backoff == 0 {
        return u64::from(hot.rto) * 1000;
    }
    let backed = u64::from(hot.rto) << hot.backoff.min(20);
    backed.min(MAXIMUM_RTO) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_measurements() {
        let mut hot = Hot::vacant(0);
        measure(&mut hot, 100_000, 0);
        assert_eq!((hot.srtt, hot.rttvar, hot.rto), (100_000, 50_000, 300_000));
        measure(&mut hot, 100_000, 0);
        assert_eq!((hot.srtt, hot.rttvar, hot.rto), (100_000, 37_500, 250_000));
        for _ in 0..100 {
            measure(&mut hot, 100_000, 200_000);
        }
        assert_eq!(hot.rto, 300_000);
        hot.backoff = 2;
        assert_eq!(timeout(&hot), 1_200_000_000);
        hot.backoff = 60;
        assert_eq!(timeout(&hot), MAXIMUM_RTO * 1000);
    }
}
