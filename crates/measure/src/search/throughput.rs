//! Throughput: the highest load without loss, or with no more than is tolerated (RFC 2544 26.1).

/// How to come down from the highest load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Step by step, as RFC 2544 26.1 says: one trial for each step above the answer.
    Stepwise,
    /// By halves: about as many trials as the number of steps has binary digits. Gives the same answer for a device that
    /// loses frames at every load above its throughput and at none below.
    Bisection,
}

/// A search. Steps are those of a [`Grid`](super::Grid).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throughput {
    strategy: Strategy,
    /// The highest step that is known to pass (0 always does), and the lowest that fails: one above the top at first.
    passes: u32,
    fails: u32,
    top: u32,
}

impl Throughput {
    /// A search from step `top` down to 1.
    #[must_use]
    pub fn new(strategy: Strategy, top: u32) -> Self {
        Self { strategy, passes: 0, fails: top.saturating_add(1), top }
    }

    /// A search below step `top`, which is known to fail.
    #[must_use]
    pub fn below(strategy: Strategy, top: u32) -> Self {
        Self { fails: top, ..Self::new(strategy, top) }
    }

    /// The step to try next; `None`: the search is over.
    ///
    /// The top is tried first either way: most devices fill most links.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        if self.fails.saturating_sub(self.passes) <= 1 {
            return None;
        }
        Some(match self.strategy {
            _ if self.fails > self.top => self.top,
            Strategy::Stepwise => self.fails - 1,
            Strategy::Bisection => u32::midpoint(self.passes, self.fails),
        })
    }

    /// Tells whether a step's trial passed.
    pub fn tell(&mut self, step: u32, passed: bool) {
        if passed {
            self.passes = self.passes.max(step);
        } else {
            self.fails = self.fails.min(step);
        }
        // What passed above a step that fails is no answer, and nothing is known of what lies below.
        if self.passes >= self.fails {
            self.passes = 0;
        }
    }

    /// The highest step that passed so far; `None`: none has.
    #[must_use]
    pub fn answer(&self) -> Option<u32> {
        (self.passes > 0).then_some(self.passes)
    }

    /// How many trials may be needed yet, at most.
    #[must_use]
    pub fn left(&self) -> u32 {
        let gap = self.fails.saturating_sub(self.passes + 1);
        match self.strategy {
            _ if gap == 0 => 0,
            Strategy::Stepwise => gap,
            Strategy::Bisection => {
                u32::BITS - gap.leading_zeros() + u32::from(self.fails > self.top)
            }
        }
    }
}
