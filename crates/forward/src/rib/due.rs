//! Targets that wait until their next hops are found anew, each once and in turn.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// Groups that are taken in a row while others wait: links that go down and up all the time keep nobody from its turn.
const IN_A_ROW: usize = 3;

/// Targets in the order in which they have come.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_place: BTreeMap<u64, u32>,
    places: HashMap<u32, u64>,
    next: u64,
}

impl Queue {
    /// Adds a target at the end. One that is there keeps its place.
    pub(super) fn add(&mut self, target: u32) {
        if let Entry::Vacant(place) = self.places.entry(target) {
            place.insert(self.next);
            self.by_place.insert(self.next, target);
            self.next += 1;
        }
    }

    /// `false`: it was not there.
    pub(super) fn remove(&mut self, target: u32) -> bool {
        let place = self.places.remove(&target);
        place.is_some_and(|place| self.by_place.remove(&place).is_some())
    }

    /// Takes the first one.
    pub(super) fn take(&mut self) -> Option<u32> {
        let (_, target) = self.by_place.pop_first()?;
        self.places.remove(&target);
        Some(target)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }
}

/// Targets that are due. Groups come first: other members of theirs are there to take over at once.
#[derive(Debug, Default)]
pub(super) struct Due {
    groups: Queue,
    others: Queue,
    in_a_row: usize,
}

impl Due {
    /// Adds a target at the end of those of its kind. One that is there keeps its place.
    pub(super) fn add(&mut self, target: u32, is_group: bool) {
        if is_group { self.groups.add(target) } else { self.others.add(target) }
    }

    /// `false`: it was not there.
    pub(super) fn remove(&mut self, target: u32) -> bool {
        self.groups.remove(target) || self.others.remove(target)
    }

    /// Takes the next one.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.in_a_row < IN_A_ROW {
            if let Some(group) = self.groups.take() {
                self.in_a_row += 1;
                return Some(group);
            }
        }
        self.in_a_row = 0;
        self.others.take().or_else(|| self.groups.take())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.others.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_again_keeps_its_place() {
        let mut queue = Queue::default();
        [7, 3, 5, 3, 7].into_iter().for_each(|target| queue.add(target));
        assert_eq!(queue.take(), Some(7));
        // What comes back while others wait goes behind them.
        queue.add(7);
        assert!(queue.remove(5) && !queue.remove(5));
        assert_eq!([queue.take(), queue.take(), queue.take()], [Some(3), Some(7), None]);
        assert!(queue.is_empty() && queue.places.is_empty());
    }

    #[test]
    fn groups_come_first_and_leave_others_their_share() {
        let mut due = Due::default();
        (0..3).for_each(|target| due.add(target, false));
        (10..20).for_each(|target| due.add(target, true));
        let taken: Vec<u32> = std::iter::from_fn(|| due.take()).collect();
        assert_eq!(taken, [10, 11, 12, 0, 13, 14, 15, 1, 16, 17, 18, 2, 19]);
        assert!(due.is_empty());
        // Groups that are due again and again.
        due.add(0, false);
        let tries = (1..).find(|_| {
            (10..20).for_each(|target| due.add(target, true));
            due.take() == Some(0)
        });
        assert!(tries.is_some_and(|tries| tries <= IN_A_ROW + 1));
        assert!(due.remove(10) && !due.remove(0));
    }
}
