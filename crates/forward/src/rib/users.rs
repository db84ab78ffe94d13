//! Which routes name a target, so that a change of it costs no more than those.

use std::collections::{BTreeSet, HashMap, HashSet};

/// Prefixes of one target that are listed at most. A target of more is looked for among all routes when it changes: showing its
/// own takes longer than that, and a million routes to one router need no second index.
pub(super) const LISTED: usize = if cfg!(test) { 3 } else { 4096 };

#[derive(Debug)]
enum List<K> {
    Whole(BTreeSet<K>),
    TooLong {
        /// What a search has found so far. `None`: nobody searches, or it is too long still, or its routes have changed meanwhile.
        found: Option<BTreeSet<K>>,
    },
}

impl<K> List<K> {
    fn len(&self) -> usize {
        match self {
            Self::Whole(keys) => keys.len(),
            Self::TooLong { .. } => usize::MAX,
        }
    }
}

/// The prefixes whose routes name a target, by target.
#[derive(Debug)]
pub(super) struct Users<K> {
    lists: HashMap<u32, List<K>>,
}

impl<K: Copy + Ord> Users<K> {
    pub(super) fn new() -> Self {
        Self { lists: HashMap::new() }
    }

    /// A route of that prefix names the target now.
    pub(super) fn add(&mut self, target: u32, key: K) {
        let list = self.lists.entry(target).or_insert_with(|| List::Whole(BTreeSet::new()));
        match list {
            List::Whole(keys) => {
                keys.insert(key);
                if keys.len() > LISTED {
                    *list = List::TooLong { found: None };
                }
            }
            List::TooLong { found } => *found = None,
        }
    }

    /// No route of that prefix names the target any more.
    pub(super) fn remove(&mut self, target: u32, key: K) {
        match self.lists.get_mut(&target) {
            Some(List::Whole(keys)) => {
                keys.remove(&key);
                if keys.is_empty() {
                    self.lists.remove(&target);
                }
            }
            Some(List::TooLong { found }) => *found = None,
            None => {}
        }
    }

    /// The prefixes of these targets, `room` of them at most, which is lowered by as many. Those of the targets that are returned
    /// beside them are left out: they have more than the others.
    pub(super) fn of(&self, targets: &[u32], room: &mut usize) -> (Vec<K>, Vec<u32>) {
        let lists = targets.iter().filter_map(|target| Some((*target, self.lists.get(target)?)));
        let mut lists: Vec<(u32, &List<K>)> = lists.collect();
        lists.sort_by_key(|(_, list)| list.len());
        let (mut keys, mut left_out): (Vec<K>, Vec<u32>) = (Vec::new(), Vec::new());
        for (target, list) in lists {
            match list {
                List::Whole(list) if list.len() <= *room => {
                    *room -= list.len();
                    keys.extend(list);
                }
                _ => left_out.push(target),
            }
        }
        (keys, left_out)
    }

    /// A search for all prefixes of these targets begins.
    pub(super) fn begin_search(&mut self, targets: &HashSet<u32>) {
        for target in targets {
            if let Some(List::TooLong { found }) = self.lists.get_mut(target) {
                *found = Some(BTreeSet::new());
            }
        }
    }

    /// The search has found a prefix.
    pub(super) fn found(&mut self, target: u32, key: K) {
        let Some(List::TooLong { found }) = self.lists.get_mut(&target) else { return };
        let too_long = |keys: &mut BTreeSet<K>| {
            keys.insert(key);
            keys.len() > LISTED
        };
        if found.as_mut().is_some_and(too_long) {
            *found = None;
        }
    }

    /// The search for these targets is over. What it has found and fits is a list again.
    pub(super) fn end_search(&mut self, targets: &HashSet<u32>) {
        for target in targets {
            let Some(List::TooLong { found }) = self.lists.get_mut(target) else { continue };
            match found.take() {
                None => {}
                Some(keys) if keys.is_empty() => {
                    self.lists.remove(target);
                }
                Some(keys) => {
                    self.lists.insert(*target, List::Whole(keys));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found without a search.
    fn of(users: &Users<u8>, targets: &[u32]) -> (usize, Vec<u32>) {
        let mut room = usize::MAX;
        let (keys, left_out) = users.of(targets, &mut room);
        (keys.len(), left_out)
    }

    fn search(users: &mut Users<u8>, meanwhile: impl FnOnce(&mut Users<u8>)) {
        let targets = HashSet::from([7, 8]);
        users.begin_search(&targets);
        users.found(7, 1);
        users.found(8, 100);
        meanwhile(users);
        users.found(7, 2);
        users.end_search(&targets);
    }

    /// Targets 7 and 8, the former with a prefix too many for a list.
    fn filled() -> Users<u8> {
        let mut users = Users::new();
        (0..=LISTED as u8).for_each(|key| users.add(7, key));
        users.add(8, 100);
        users
    }

    #[test]
    fn only_what_is_too_long_for_a_list_is_searched() {
        let mut users = Users::new();
        assert_eq!(of(&users, &[7]), (0, vec![]));
        for key in 0..LISTED as u8 {
            users.add(7, key);
        }
        users.add(7, 0);
        users.add(8, 100);
        assert_eq!(of(&users, &[7, 8]), (LISTED + 1, vec![]));
        users.add(7, 200);
        assert_eq!(of(&users, &[7, 8]), (1, vec![7]));
    }

    #[test]
    fn the_shortest_lists_have_room_first() {
        let mut users = Users::new();
        (0..3).for_each(|key| users.add(7, key));
        (0..2).for_each(|key| users.add(8, key));
        users.add(9, 5);
        for (mut room, keys, left_out, left) in [
            (0, vec![], vec![9, 8, 7], 0),
            (2, vec![5], vec![8, 7], 1),
            (5, vec![5, 0, 1], vec![7], 2),
            (6, vec![5, 0, 1, 0, 1, 2], vec![], 0),
        ] {
            assert_eq!(users.of(&[7, 8, 9], &mut room), (keys, left_out));
            assert_eq!(room, left);
        }
    }

    #[test]
    fn what_a_search_has_found_and_fits_is_a_list_again() {
        let mut users = filled();
        search(&mut users, |_| ());
        assert_eq!(users.of(&[7], &mut 2).0, [1, 2]);
        users.remove(7, 1);
        users.remove(7, 2);
        users.remove(8, 100);
        assert!(users.lists.is_empty());
        // All are found that there are, and are too many still; and none is.
        let mut users = filled();
        search(&mut users, |users| (3..=4 + LISTED as u8).for_each(|key| users.found(7, key)));
        assert_eq!(of(&users, &[7]), (0, vec![7]));
        users.begin_search(&HashSet::from([7]));
        users.end_search(&HashSet::from([7]));
        assert_eq!(of(&users, &[7]), (0, vec![]));
    }

    #[test]
    fn a_search_knows_nothing_of_a_target_whose_routes_change_meanwhile() {
        let changes: [fn(&mut Users<u8>, u32, u8); 2] = [Users::add, Users::remove];
        for change in changes {
            let mut users = filled();
            search(&mut users, |users| change(users, 7, 1));
            assert_eq!(of(&users, &[7, 8]), (1, vec![7]));
        }
    }
}
