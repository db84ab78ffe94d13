//! The time of a busy worker that copies for clients take.
//!
//! What copies cost depends on their number and length, on filters, and on whose cache a ring's lines lie in. So it is
//! measured, and bounded as such: with the account empty, bursts pass by without a look at who wants copies of them. Functions
//! take turns at what there is.

/// Copies take one part in so many of a busy worker's time: what is everybody else's then takes 16/15 of the time. As caches and
/// TLBs hold less of it afterwards, it takes up to as much again: with 128 channels that are filled in turn, an eighth of the
/// time for copies cost everybody else 31 % (`millrace-bench clients`).
const PART: u64 = 16;
/// What is saved while the worker is not busy, and what is owed at most: parts of a second. A worker that copies all the time
/// for 1/10,000 of a second finds about as much waiting afterwards as a receive ring of 1,024 places holds.
const SAVED: u64 = 10_000;
const OWED: u64 = 1_000;

/// Time that copies may take.
#[derive(Debug)]
pub(super) struct Account {
    /// TSC cycles of the worker's time, one part of which is theirs. Below 0: they have taken too much.
    credit: i64,
    /// Until when time was counted.
    counted: u64,
    most: i64,
    least: i64,
}

impl Account {
    /// A full one. `hertz`: of the clock.
    pub(super) fn new(hertz: u64) -> Self {
        let (most, least) = ((PART * hertz / SAVED) as i64, -((PART * hertz / OWED) as i64));
        Self { credit: most, counted: 0, most, least }
    }

    /// Their part of the time that has passed. Gives whether they may take any.
    #[inline]
    pub(super) fn earn(&mut self, now: u64) -> bool {
        let passed = now.wrapping_sub(self.counted);
        self.credit = self.credit.saturating_add_unsigned(passed).min(self.most);
        self.counted = now;
        self.credit > 0
    }

    /// They have taken so much. Gives whether they may take more.
    #[inline]
    pub(super) fn spend(&mut self, cycles: u64) -> bool {
        let earned = cycles.saturating_mul(PART);
        self.credit = self.credit.saturating_sub_unsigned(earned).max(self.least);
        self.credit > 0
    }

    /// The worker has time to spare.
    #[inline]
    pub(super) fn fill(&mut self) {
        self.credit = self.most;
    }
}

/// Copies of one burst.
pub(super) struct Copying<'a> {
    account: &'a mut Account,
    clock: fn() -> u64,
    /// The first function whose turn it is, and the first that came too late for this burst.
    turn: usize,
    late: Option<usize>,
    /// There is time left.
    pub(super) serves: bool,
    began: bool,
    /// Since when time is theirs, and what was before: TSC cycles.
    since: u64,
    before: u64,
}

impl<'a> Copying<'a> {
    pub(super) fn begin(account: &'a mut Account, turn: usize, clock: fn() -> u64) -> Self {
        let since = clock();
        let serves = account.earn(since);
        Self { account, clock, turn, late: None, serves, began: serves, since, before: 0 }
    }

    /// Whether the function at a place of the list gets copies of this burst.
    #[inline]
    pub(super) fn admit(&mut self, at: usize) -> bool {
        let is_due = at >= self.turn;
        if is_due && !self.serves {
            self.late.get_or_insert(at);
        }
        is_due && self.serves
    }

    /// Somebody else's work begins.
    #[inline]
    pub(super) fn pause(&mut self) {
        if self.serves {
            self.before += (self.clock)().wrapping_sub(self.since);
        }
    }

    /// It is done.
    #[inline]
    pub(super) fn resume(&mut self) {
        if self.serves {
            self.since = (self.clock)();
        }
    }

    /// A function has been given its copies.
    #[inline]
    pub(super) fn charge(&mut self) {
        let now = (self.clock)();
        let cycles = std::mem::take(&mut self.before) + now.wrapping_sub(self.since);
        self.since = now;
        self.serves = self.account.spend(cycles);
    }

    /// The burst is over. Gives whose turn is next.
    pub(super) fn end(mut self) -> usize {
        if !self.began {
            return self.turn;
        }
        if self.serves {
            // What was looked up for them and not found.
            self.charge();
        }
        self.late.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 cycles are 1 us: 400 may be saved, 4,000 owed.
    const HERTZ: u64 = 4_000_000;

    #[test]
    fn a_sixteenth_of_the_time_is_theirs() {
        let mut account = Account::new(HERTZ);
        let (mut now, mut taken) = (1 << 40, 0);
        account.earn(now);
        account.spend(400);
        for _ in 0..10_000 {
            // Others take 60 cycles; they take 130 whenever they may.
            now += 60;
            if account.earn(now) {
                account.spend(130);
                (now, taken) = (now + 130, taken + 130);
            }
        }
        let share = f64::from(taken) / (now - (1 << 40)) as f64;
        assert!((0.0615..0.0635).contains(&share), "{share}");
    }

    #[test]
    fn neither_savings_nor_debts_are_endless() {
        let mut account = Account::new(HERTZ);
        assert!(account.earn(u64::MAX), "the clock began at 0");
        assert!(account.spend(399));
        assert!(!account.spend(1));
        // A worker that did not run for an hour meanwhile.
        assert!(!account.spend(3600 * HERTZ));
        assert!(!account.earn(u64::MAX.wrapping_add(PART * 4000)));
        assert!(account.earn(u64::MAX.wrapping_add(PART * 4001)));
        account.spend(u64::MAX);
        account.fill();
        assert!(account.spend(399) && !account.spend(1));
    }
}
