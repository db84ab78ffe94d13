//! Numbers for names, which stay the same while a name stays, or while anything says the number. Names that have one after the
//! other differ by its generation.

use std::collections::HashSet;

use graph::InterfaceId;

/// More names than there are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} {what}")]
pub(crate) struct TooMany {
    pub(crate) limit: usize,
    pub(crate) what: &'static str,
}

/// Whose a number is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    /// `None`: it is free.
    name: Option<String>,
    generation: u16,
}

/// Names by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    entries: Vec<Entry>,
}

impl Ids {
    /// Keeps the numbers of names that are still there, and numbers new ones. A number whose name is gone stays that
    /// name's while it is `in_use`, and is freed otherwise. What this call frees is given out by a later one at the
    /// earliest: packets with the old meaning are gone by then.
    ///
    /// Errors: [`TooMany`], and nothing changes, when a number would reach `limit`.
    pub(crate) fn renumber(
        &mut self,
        names: &[&str],
        in_use: &HashSet<u16>,
        (limit, what): (usize, &'static str),
    ) -> Result<(), TooMany> {
        let wanted: HashSet<&str> = names.iter().copied().collect();
        let known: HashSet<&str> =
            self.entries.iter().filter_map(|entry| entry.name.as_deref()).collect();
        let mut new = names.iter().filter(|name| !known.contains(**name)).copied();
        let mut next: Vec<Entry> = Vec::with_capacity(self.entries.len());
        for (number, Entry { name, generation }) in (0..=u16::MAX).zip(&self.entries) {
            let stays = |name: &str| wanted.contains(name) || in_use.contains(&number);
            next.push(match name {
                Some(name) => {
                    let name = stays(name).then(|| name.clone());
                    Entry { name, generation: *generation }
                }
                None => match new.next() {
                    Some(name) => {
                        let generation = generation.wrapping_add(1);
                        Entry { name: Some(name.to_owned()), generation }
                    }
                    None => Entry { name: None, generation: *generation },
                },
            });
        }
        next.extend(new.map(|name| Entry { name: Some(name.to_owned()), generation: 0 }));
        if next.len() > limit {
            return Err(TooMany { limit, what });
        }
        self.entries = next;
        Ok(())
    }

    /// The number of a name, which may be gone.
    pub(crate) fn number(&self, name: &str) -> Option<u16> {
        self.interface(name).map(InterfaceId::number)
    }

    /// The interface that a name, which may be gone, is of: its number and generation.
    pub(crate) fn interface(&self, name: &str) -> Option<InterfaceId> {
        let mut numbered = (0..=u16::MAX).zip(&self.entries);
        let (number, entry) = numbered.find(|(_, entry)| entry.name.as_deref() == Some(name))?;
        Some(InterfaceId::with_generation(number, entry.generation))
    }

    /// The name of a number, which may be gone.
    pub(crate) fn name(&self, number: u16) -> Option<&str> {
        self.entries.get(usize::from(number))?.name.as_deref()
    }

    /// The name of an interface, which may be gone.
    pub(crate) fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        let entry = self.entries.get(usize::from(id.number()))?;
        entry.name.as_deref().filter(|_| entry.generation == id.generation())
    }

    /// All numbers of names, which may be gone.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        let named = (0..=u16::MAX).zip(&self.entries).filter(|(_, entry)| entry.name.is_some());
        named.map(|(number, _)| number)
    }

    /// One above the highest number in use or just freed.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_are_not_reused_at_once() {
        let mut ids = Ids::default();
        let unused = HashSet::new();
        ids.renumber(&["a", "b", "c"], &unused, (8, "names")).unwrap();
        ids.renumber(&["c", "a", "d"], &unused, (8, "names")).unwrap();
        assert_eq!((ids.number("a"), ids.number("b"), ids.number("c")), (Some(0), None, Some(2)));
        assert_eq!(
            ids.number("d"),
            Some(3),
            "b's number is not given out by the call that frees it"
        );
        ids.renumber(&["c", "a", "d", "e"], &unused, (8, "names")).unwrap();
        let (b, e) = (InterfaceId::new(1), InterfaceId::with_generation(1, 1));
        assert_eq!(ids.interface("e"), Some(e), "b had it before");
        assert_eq!(ids.interface_name(e), Some("e"));
        assert_eq!(ids.interface_name(b), None, "what means b does not find e");
        assert_eq!(ids.name(2), Some("c"));
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn a_number_in_use_stays_its_names() {
        let mut ids = Ids::default();
        ids.renumber(&["a", "b", "c"], &HashSet::new(), (8, "names")).unwrap();
        for _ in 0..3 {
            ids.renumber(&["a", "d"], &HashSet::from([1]), (8, "names")).unwrap();
            assert_eq!(
                (ids.number("b"), ids.name(1), ids.number("d")),
                (Some(1), Some("b"), Some(3))
            );
        }
        assert_eq!(ids.number("c"), None, "nobody says its number");
        ids.renumber(&["a", "d", "b", "e"], &HashSet::from([1]), (8, "names")).unwrap();
        assert_eq!((ids.number("b"), ids.number("e")), (Some(1), Some(2)));
        ids.renumber(&["a", "d", "e"], &HashSet::new(), (8, "names")).unwrap();
        ids.renumber(&["a", "d", "e", "f"], &HashSet::new(), (8, "names")).unwrap();
        assert_eq!(ids.number("f"), Some(1), "once nobody says it, it is given out again");
    }

    #[test]
    fn too_many_names_change_nothing() {
        let mut ids = Ids::default();
        let unused = HashSet::new();
        ids.renumber(&["a"], &unused, (2, "names")).unwrap();
        let refused = ids.renumber(&["b", "c", "d"], &unused, (2, "names"));
        assert_eq!(refused, Err(TooMany { limit: 2, what: "names" }));
        assert_eq!(ids.number("a"), Some(0));
    }
}
