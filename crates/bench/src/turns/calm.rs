//! Rounds that the machine disturbed are repeated.

use crate::interrupt;
use crate::machine::{self, Look};

/// Counts rounds until there are enough that nothing disturbed, and at most twice as many as are wanted.
#[derive(Debug)]
pub(crate) struct Calm {
    wanted: usize,
    /// Of each round so far.
    disturbed: Vec<bool>,
    look: Look,
    judge: fn(&Look) -> bool,
}

/// Whether others disturbed what has happened since.
fn by_the_machine(look: &Look) -> bool {
    let disturbed = look.since().counts();
    machine::Rounds::count(disturbed);
    disturbed
}

impl Calm {
    /// So many rounds are wanted.
    pub(crate) fn new(rounds: u32) -> Self {
        Self::judged(rounds, by_the_machine)
    }

    /// The same, where somebody else says which rounds were disturbed.
    fn judged(rounds: u32, judge: fn(&Look) -> bool) -> Self {
        Self { wanted: rounds as usize, disturbed: Vec::new(), look: Look::now(), judge }
    }

    /// Rounds that nothing disturbs, for tests.
    #[cfg(test)]
    pub(crate) fn quiet(rounds: u32) -> Self {
        Self::judged(rounds, |_| false)
    }

    /// Whether one more round is to be taken, which begins now.
    pub(crate) fn goes_on(&mut self) -> bool {
        let calm = self.disturbed.iter().filter(|disturbed| !**disturbed).count();
        let enough = calm >= self.wanted || self.taken() >= 2 * self.wanted;
        if enough || self.taken() > 0 && interrupt::came() {
            return false;
        }
        self.look = Look::now();
        true
    }

    /// The round is over. Tells whether nothing disturbed it.
    pub(crate) fn over(&mut self) -> bool {
        let disturbed = (self.judge)(&self.look);
        self.disturbed.push(disturbed);
        !disturbed
    }

    /// Rounds so far.
    pub(crate) fn taken(&self) -> usize {
        self.disturbed.len()
    }

    /// Leaves what calm rounds have given, each in its place; everything where none was calm.
    pub(crate) fn keep<T>(&self, rounds: &mut Vec<T>) {
        if self.disturbed.iter().any(|disturbed| !disturbed) {
            let mut disturbed = self.disturbed.iter();
            rounds.retain(|_| disturbed.next().is_none_or(|disturbed| !disturbed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(mut calm: Calm) -> (Calm, Vec<usize>) {
        let mut taken = Vec::new();
        while calm.goes_on() {
            taken.push(calm.taken());
            calm.over();
        }
        calm.keep(&mut taken);
        (calm, taken)
    }

    #[test]
    fn disturbed_rounds_are_repeated_and_do_not_count() {
        use std::cell::Cell;
        thread_local!(static NUMBER: Cell<u32> = const { Cell::new(0) });
        let judge = |_: &Look| {
            NUMBER.set(NUMBER.get() + 1);
            matches!(NUMBER.get(), 1 | 3)
        };
        assert_eq!(rounds(Calm::quiet(3)).1, [0, 1, 2]);
        let (calm, kept) = rounds(Calm::judged(3, judge));
        assert_eq!((calm.taken(), kept), (5, vec![1, 3, 4]));
    }

    #[test]
    fn where_no_round_is_calm_all_count() {
        let (calm, kept) = rounds(Calm::judged(2, |_| true));
        assert_eq!((calm.taken(), kept), (4, vec![0, 1, 2, 3]));
        let mut calm = Calm::new(1);
        assert!(calm.goes_on());
        calm.over();
        assert_eq!(calm.taken(), 1);
    }
}
