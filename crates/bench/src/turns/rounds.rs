//! Rounds, in each of which every contestant has a turn.

use super::calm::Calm;
use crate::failure::Failure;
use crate::results::Samples;

/// What contestants have done: the turns of each, in the order of the rounds.
#[derive(Debug)]
pub(crate) struct Rounds<C, T>(Vec<(C, Vec<T>)>);

impl<C: Copy + PartialEq, T> Rounds<C, T> {
    /// No round yet.
    pub(crate) fn new(contestants: &[C]) -> Self {
        Self(contestants.iter().map(|contestant| (*contestant, Vec::new())).collect())
    }

    /// So many rounds, in each of which the contestants have their turns in the same order. Those that the machine disturbs are
    /// repeated, and do not count if there are others. The first turn that fails ends them, an interrupt after the round that is
    /// going on.
    pub(crate) fn take(
        contestants: &[C],
        rounds: u32,
        turn: impl FnMut(C) -> Result<T, Failure>,
    ) -> Result<Self, Failure> {
        Self::taken(contestants, Calm::new(rounds), turn)
    }

    /// Rounds for as long as `calm` says.
    pub(crate) fn taken(
        contestants: &[C],
        mut calm: Calm,
        mut turn: impl FnMut(C) -> Result<T, Failure>,
    ) -> Result<Self, Failure> {
        let mut all = Self::new(contestants);
        while calm.goes_on() {
            all.round(0, &mut turn)?;
            calm.over();
        }
        all.keep(&calm);
        Ok(all)
    }

    /// Leaves what counts.
    pub(crate) fn keep(&mut self, calm: &Calm) {
        self.0.iter_mut().for_each(|(_, turns)| calm.keep(turns));
    }

    /// One more round. The contestant at place `first`, counted round and round, begins; those before it come last.
    pub(crate) fn round(
        &mut self,
        first: usize,
        mut turn: impl FnMut(C) -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        let place = first % self.0.len().max(1);
        let (late, early) = self.0.split_at_mut(place);
        for (contestant, turns) in early.iter_mut().chain(late) {
            turns.push(turn(*contestant)?);
        }
        Ok(())
    }

    pub(crate) fn contestants(&self) -> impl Iterator<Item = C> {
        self.0.iter().map(|(contestant, _)| *contestant)
    }

    /// A quantity of all turns of a contestant.
    pub(crate) fn samples(&self, contestant: C, what: impl Fn(&T) -> f64) -> Samples {
        let of = self.0.iter().filter(|(other, _)| *other == contestant);
        Samples(of.flat_map(|(_, turns)| turns.iter().map(&what)).collect())
    }

    /// The turns of each contestant.
    pub(crate) fn into_turns(self) -> Vec<(C, Vec<T>)> {
        self.0
    }
}

/// So many rounds of contestants that are told from each other by their places alone. Gives the turns of each.
pub(crate) fn alternate<C, T>(
    contestants: &mut [C],
    rounds: u32,
    mut turn: impl FnMut(&mut C) -> Result<T, Failure>,
) -> Result<Vec<Vec<T>>, Failure> {
    let places: Vec<usize> = (0..contestants.len()).collect();
    let all = Rounds::take(&places, rounds, |place| turn(&mut contestants[place]))?;
    Ok(all.into_turns().into_iter().map(|(_, turns)| turns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [char; 3] = ['a', 'b', 'c'];

    #[test]
    fn contestants_alternate() {
        let mut order = String::new();
        let rounds = Rounds::taken(&ALL, Calm::quiet(2), |contestant| {
            order.push(contestant);
            Ok(order.len())
        });
        assert_eq!(order, "abcabc");
        let rounds = rounds.unwrap();
        assert_eq!(rounds.samples('b', |turn| *turn as f64).0, [2.0, 5.0]);
        assert!(rounds.contestants().eq(ALL));
        assert_eq!(rounds.into_turns(), [('a', vec![1, 4]), ('b', vec![2, 5]), ('c', vec![3, 6])]);
    }

    #[test]
    fn contestants_may_change_in_their_turns() {
        let mut counts = [0, 10];
        let turn = |count: &mut i32| {
            *count += 1;
            Ok(*count)
        };
        let [one, other] = &alternate(&mut counts, 3, turn).unwrap()[..] else { panic!() };
        // A machine that others use makes it take more.
        assert!(one.len() >= 3 && one.iter().map(|count| count + 10).eq(other.iter().copied()));
        assert!(alternate(&mut counts, 1, |_| Err::<(), _>(Failure::Thread)).is_err());
    }

    #[test]
    fn another_may_begin_in_each_round() {
        let (mut rounds, mut order) = (Rounds::new(&ALL), String::new());
        for round in 0..4 {
            let turn = |contestant| {
                order.push(contestant);
                Ok(round)
            };
            rounds.round(round, turn).unwrap();
        }
        assert_eq!(order, "abcbcacababc");
        assert_eq!(rounds.samples('c', |turn| *turn as f64).0, [0.0, 1.0, 2.0, 3.0]);
        Rounds::<char, ()>::new(&[]).round(1, |_| Ok(())).unwrap();
    }

    #[test]
    fn a_turn_that_fails_ends_the_rounds() {
        let mut turns = 0;
        let rounds = Rounds::take(&ALL, 2, |contestant| {
            turns += 1;
            if contestant == 'b' { Err(Failure::Thread) } else { Ok(()) }
        });
        assert!(matches!(rounds, Err(Failure::Thread)));
        assert_eq!(turns, 2);
    }
}
