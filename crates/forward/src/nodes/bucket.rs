//! A token bucket that counts in TSC cycles.

/// Lets `rate` events a second pass, with bursts of up to a tenth of a second's worth; none of a rate of 0.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    rate: u32,
    cost: u64,
    limit: u64,
    level: u64,
    last: u64,
}

impl TokenBucket {
    /// `rate`: events/s; `hz`: TSC cycles/s.
    #[must_use]
    pub(crate) fn new(rate: u32, hz: u64) -> Self {
        let cost = hz.checked_div(u64::from(rate)).unwrap_or(u64::MAX);
        let limit = if rate == 0 { 0 } else { (hz / 10).max(cost) };
        Self { rate, cost, limit, level: limit, last: 0 }
    }

    /// Takes over another rate, and is full then.
    pub(crate) fn set_rate(&mut self, rate: u32, hz: u64) {
        if rate != self.rate {
            *self = Self { last: self.last, ..Self::new(rate, hz) };
        }
    }

    /// Whether no event may pass at `now` (TSC cycles).
    pub(crate) fn is_dry(&mut self, now: u64) -> bool {
        let gained = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        self.level = self.level.saturating_add(gained).min(self.limit);
        self.level < self.cost
    }

    /// Whether one event may pass at `now`, which it does then.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let pass = !self.is_dry(now);
        if pass {
            self.level -= self.cost;
        }
        pass
    }
}

#[cfg(test)]
mod tests {
    use super::TokenBucket;

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let mut bucket = TokenBucket::new(100, 1_000_000);
        let first = (0..1000).filter(|_| bucket.take(1_000_000)).count();
        assert_eq!(first, 10, "a tenth of a second's worth");
        let second = (0..1_000_000).filter(|cycle| bucket.take(1_000_000 + cycle)).count();
        assert!((99..=101).contains(&second), "{second} in one second");
    }

    #[test]
    fn a_new_rate_holds_at_once_and_the_same_one_gives_nothing() {
        let mut bucket = TokenBucket::new(10, 1000);
        assert!(bucket.take(5000));
        bucket.set_rate(10, 1000);
        assert!(!bucket.take(5000));
        bucket.set_rate(20, 1000);
        assert!(bucket.take(5000) && bucket.take(5000) && !bucket.take(5000));
    }

    #[test]
    fn a_rate_of_0_lets_nothing_pass() {
        let mut bucket = TokenBucket::new(0, 1000);
        assert!(![0, 5000, u64::MAX].into_iter().any(|now| bucket.take(now)));
        bucket.set_rate(1, 1000);
        assert!(bucket.take(u64::MAX));
        bucket.set_rate(0, 1000);
        assert!(!bucket.take(u64::MAX));
    }

    #[test]
    fn a_look_takes_nothing() {
        let mut bucket = TokenBucket::new(10, 1000);
        assert!(!bucket.is_dry(5000) && !bucket.is_dry(5000));
        assert!(bucket.take(5000) && bucket.is_dry(5000) && !bucket.take(5000));
        assert!(bucket.is_dry(5099) && !bucket.is_dry(5100));
        assert!(TokenBucket::new(0, 1000).is_dry(5000));
    }

    #[test]
    fn time_that_goes_back_gives_nothing() {
        let mut bucket = TokenBucket::new(1, 1000);
        assert!(bucket.take(5000));
        assert!(!bucket.take(10));
        assert!(!bucket.take(5999));
        assert!(bucket.take(6000));
    }
}
