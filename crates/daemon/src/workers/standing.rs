//! Whether a worker is down, for people and for its ports: one that falls silent again and again is not said to be back each time.

/// Looks in a second.
const SECOND: u32 = 10;
/// Looks in a row at which a worker that has fallen silent again has to answer until it is back; twice as many each time that it
/// did not stay.
const PROBATION: u32 = SECOND;
/// So many at most.
const MOST: u32 = 10 * SECOND;
/// After so many, it is as if it had never been silent.
const MEMORY: u32 = 60 * SECOND;

/// What is remembered of a worker. Counted in looks, as its silence is.
#[derive(Debug, Default)]
pub(super) struct Standing {
    is_down: bool,
    is_silent: bool,
    /// How often it has fallen silent, each time within [`MEMORY`].
    falls: u32,
    /// Looks since it was silent.
    steady: u32,
}

impl Standing {
    /// Notes, at each look, whether it is silent. Says whether it is down, when that has changed.
    pub(super) fn note(&mut self, is_silent: bool) -> Option<bool> {
        if is_silent && !self.is_silent {
            self.falls = if self.steady < MEMORY { self.falls.saturating_add(1) } else { 1 };
        }
        self.steady = if is_silent { 0 } else { self.steady.saturating_add(1) };
        self.is_silent = is_silent;
        let was_down = self.is_down;
        self.is_down = is_silent || (was_down && self.steady < self.probation());
        (self.is_down != was_down).then_some(self.is_down)
    }

    /// Looks in a row at which it has to answer until it is back. None: the first answer is enough.
    pub(super) fn probation(&self) -> u32 {
        match self.falls {
            0 | 1 => 0,
            falls => (PROBATION << (falls - 2).min(MOST.ilog2())).min(MOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said when it is silent for two looks, and then answers.
    const ONCE: [Option<bool>; 3] = [Some(true), None, Some(false)];

    fn falls_once(standing: &mut Standing) -> [Option<bool>; 3] {
        [true, true, false].map(|is_silent| standing.note(is_silent))
    }

    #[test]
    fn who_falls_silent_now_and_then_is_back_at_the_first_answer() {
        let mut standing = Standing::default();
        for _ in 0..3 {
            assert_eq!(falls_once(&mut standing), ONCE);
            assert!((0..MEMORY).all(|_| standing.note(false).is_none()));
        }
    }

    #[test]
    fn who_falls_silent_again_and_again_is_back_when_it_stays() {
        let mut standing = Standing::default();
        let mut news = Vec::new();
        for _ in 0..100 {
            for is_silent in [true, false] {
                news.extend((0..SECOND).filter_map(|_| standing.note(is_silent)));
            }
        }
        // At once, after a second, and then it is never back for long enough.
        assert_eq!(news, [true, false, true, false, true]);
        let looks = (1..=MEMORY).find(|_| standing.note(false) == Some(false));
        assert_eq!(looks, Some(MOST - SECOND), "those of its last second count");
        assert!((0..MEMORY).all(|_| standing.note(false).is_none()));
        assert_eq!(falls_once(&mut standing), ONCE);
    }
}
