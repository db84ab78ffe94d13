//! Which routes name a target, so that a change of it costs no more than those.

use std::collections::{BTreeSet, HashMap};

/// Prefixes of one target that are listed at most. A target of more is looked for among all routes when it changes: showing its
/// own takes longer than that, and a million routes to one router need no second index.
const LISTED: usize = if cfg!(test) { 3 } else { 4096 };

#[derive(Debug)]
enum List<K> {
    Whole(BTreeSet<K>),
    TooLong,
}

/// What a search has found, by target.
pub(super) type Found<K> = HashMap<u32, Vec<K>>;

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
        if let List::Whole(keys) = list {
            keys.insert(key);
            if keys.len() > LISTED {
                *list = List::TooLong;
            }
        }
    }

    /// No route of that prefix names the target any more.
    pub(super) fn remove(&mut self, target: u32, key: K) {
        let Some(List::Whole(keys)) = self.lists.get_mut(&target) else { return };
        keys.remove(&key);
        if keys.is_empty() {
            self.lists.remove(&target);
        }
    }

    /// The prefixes of these targets. Those whose list would be too long are left to `search`, which looks for all of them at
    /// once.
    pub(super) fn of(&mut self, targets: &[u32], search: impl FnOnce(&mut Found<K>)) -> Vec<K> {
        let mut keys = Vec::new();
        let mut searched = Found::new();
        for target in targets {
            match self.lists.get(target) {
                None => {}
                Some(List::Whole(list)) => keys.extend(list),
                Some(List::TooLong) => {
                    searched.insert(*target, Vec::new());
                }
            }
        }
        if !searched.is_empty() {
            search(&mut searched);
        }
        for (target, found) in searched {
            keys.extend(&found);
            if found.is_empty() {
                self.lists.remove(&target);
            } else if found.len() <= LISTED {
                self.lists.insert(target, List::Whole(found.into_iter().collect()));
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_too_long_for_a_list_is_searched() {
        let mut users = Users::new();
        let never = |_: &mut Found<u8>| panic!("they are in lists");
        assert_eq!(users.of(&[7], never), [0; 0]);
        for key in 0..LISTED as u8 {
            users.add(7, key);
        }
        users.add(7, 0);
        users.add(8, 100);
        assert_eq!(users.of(&[7, 8], never).len(), LISTED + 1);
        users.add(7, 200);
        let all = |found: &mut Found<u8>| {
            assert_eq!(found.len(), 1, "the other is in a list");
            found.get_mut(&7).unwrap().extend((0..LISTED as u8).chain([200]));
        };
        assert_eq!(users.of(&[8, 7], all).len(), LISTED + 2);
        // What was found and fits is a list again.
        users.remove(7, 200);
        assert_eq!(users.of(&[7], |found| found.get_mut(&7).unwrap().extend([1, 2])), [1, 2]);
        assert_eq!(users.of(&[7], never), [1, 2]);
        users.remove(7, 1);
        users.remove(7, 2);
        users.remove(8, 100);
        assert!(users.lists.is_empty());
    }
}
