//! How long to look for work before a sleep.

/// The first time that is looked for, and the longest: ns. A sleep and its wake-up cost a few microseconds of CPU time on both
/// sides; to look for longer than some times that is to burn more than could be saved.
const FIRST: u64 = 5_000;
const LONGEST: u64 = 50_000;
/// Sleeps without a look before, after looks that were in vain: at first, and at most.
const SHORT_PENALTY: u32 = 32;
const LONG_PENALTY: u32 = 4096;
/// Looks in vain, each followed by a short sleep, until the penalty.
const VAIN: u32 = 3;

/// How long a thread looks for work before it sleeps, which follows from how soon work has come so far.
///
/// Work that comes soon after a thread has fallen asleep would have been found by looking: it looks longer. Work that comes
/// late would not: it looks less, and soon not at all. Work that comes soon after a sleep but never during a look is made by
/// somebody who needs this core: then looking keeps it away, and there is none for a while.
#[derive(Debug, Clone, Copy)]
pub struct Spin {
    budget: u64,
    /// Looks in vain, each followed by a short sleep, one after the other.
    vain: u32,
    /// Sleeps until it looks again.
    pause: u32,
    penalty: u32,
}

impl Default for Spin {
    fn default() -> Self {
        Self { budget: 0, vain: 0, pause: 0, penalty: SHORT_PENALTY }
    }
}

impl Spin {
    /// How long to look now: ns; 0: not at all.
    #[inline]
    #[must_use]
    pub fn budget(&self) -> u64 {
        if self.pause > 0 { 0 } else { self.budget }
    }

    /// A look has found work.
    #[inline]
    pub fn found(&mut self) {
        (self.vain, self.penalty) = (0, SHORT_PENALTY);
    }

    /// After the look, if there was one, the thread has slept for so long: ns.
    pub fn slept(&mut self, time: u64) {
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        let was_soon = time <= LONGEST;
        let looked = self.budget > 0;
        match (was_soon, looked) {
            (true, false) => self.budget = FIRST,
            (true, true) => {
                self.vain += 1;
                if self.vain >= VAIN && self.budget == LONGEST {
                    self.pause = self.penalty;
                    self.penalty = (self.penalty * 2).min(LONG_PENALTY);
                    (self.budget, self.vain) = (0, 0);
                } else {
                    self.budget = (self.budget * 2).min(LONGEST);
                }
            }
            (false, _) => {
                self.vain = 0;
                self.budget = if self.budget > FIRST { self.budget / 2 } else { 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps until a look is so long that what comes after `gap` is found in it, or as often as given.
    fn settle(spin: &mut Spin, gap: u64, times: u32) -> u32 {
        let mut slept = 0;
        for _ in 0..times {
            if spin.budget() >= gap {
                spin.found();
            } else {
                slept += 1;
                spin.slept(gap - spin.budget());
            }
        }
        slept
    }

    #[test]
    fn who_is_idle_does_not_look() {
        let mut spin = Spin::default();
        assert_eq!(spin.budget(), 0);
        assert_eq!(settle(&mut spin, 1_000_000, 100), 100);
        assert_eq!(spin.budget(), 0);
    }

    #[test]
    fn what_comes_soon_is_found_without_a_sleep() {
        for gap in [1_000, 7_000, 40_000] {
            let mut spin = Spin::default();
            assert!(settle(&mut spin, gap, 100) <= 6, "{gap} ns");
            assert!(spin.budget() >= gap);
            // The load ends: a few sleeps later nobody looks.
            settle(&mut spin, 10_000_000, 10);
            assert_eq!(spin.budget(), 0);
        }
    }

    #[test]
    fn a_look_that_keeps_the_work_away_ends() {
        let mut spin = Spin::default();
        let looks = (0..10_000).filter(|_| {
            let looks = spin.budget() > 0;
            // It comes soon after the thread sleeps, however long it looked.
            spin.slept(3_000);
            looks
        });
        assert!(looks.count() < 100);
        assert_eq!(spin.budget(), 0);
        // Now it has a core of its own.
        assert!(settle(&mut spin, 20_000, 20_000) < 5_000);
    }
}
