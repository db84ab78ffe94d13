//! Numbers for names, which stay the same while a name stays, or while anything says the number.

use std::collections::HashSet;

/// More names than there are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} {what}")]
pub(crate) struct TooMany {
    pub(crate) limit: usize,
    pub(crate) what: &'static str,
}

/// Names by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    names: Vec<Option<String>>,
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
        let known: HashSet<&str> = self.names.iter().flatten().map(String::as_str).collect();
        let mut new = names.iter().filter(|name| !known.contains(**name)).copied();
        let mut next: Vec<Option<String>> = Vec::with_capacity(self.names.len());
        for (number, entry) in self.names.iter().enumerate() {
            let stays = |name: &str| {
                wanted.contains(name) || u16::try_from(number).is_ok_and(|n| in_use.contains(&n))
            };
            next.push(match entry {
                Some(name) => stays(name).then(|| name.clone()),
                None => new.next().map(str::to_owned),
            });
        }
        next.extend(new.map(|name| Some(name.to_owned())));
        if next.len() > limit {
            return Err(TooMany { limit, what });
        }
        self.names = next;
        Ok(())
    }

    /// The number of a name, which may be gone.
    pub(crate) fn get(&self, name: &str) -> Option<u16> {
        let at = self.names.iter().position(|known| known.as_deref() == Some(name))?;
        u16::try_from(at).ok()
    }

    /// The name of a number, which may be gone.
    pub(crate) fn name(&self, id: u16) -> Option<&str> {
        self.names.get(usize::from(id))?.as_deref()
    }

    /// All numbers of names, which may be gone.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        let named = (0..=u16::MAX).zip(&self.names).filter(|(_, name)| name.is_some());
        named.map(|(number, _)| number)
    }

    /// One above the highest number in use or just freed.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
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
        assert_eq!((ids.get("a"), ids.get("b"), ids.get("c")), (Some(0), None, Some(2)));
        assert_eq!(ids.get("d"), Some(3), "b's number is not given out by the call that frees it");
        ids.renumber(&["c", "a", "d", "e"], &unused, (8, "names")).unwrap();
        assert_eq!(ids.get("e"), Some(1));
        assert_eq!(ids.name(2), Some("c"));
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn a_number_in_use_stays_its_names() {
        let mut ids = Ids::default();
        ids.renumber(&["a", "b", "c"], &HashSet::new(), (8, "names")).unwrap();
        for _ in 0..3 {
            ids.renumber(&["a", "d"], &HashSet::from([1]), (8, "names")).unwrap();
            assert_eq!((ids.get("b"), ids.name(1), ids.get("d")), (Some(1), Some("b"), Some(3)));
        }
        assert_eq!(ids.get("c"), None, "nobody says its number");
        ids.renumber(&["a", "d", "b", "e"], &HashSet::from([1]), (8, "names")).unwrap();
        assert_eq!((ids.get("b"), ids.get("e")), (Some(1), Some(2)));
        ids.renumber(&["a", "d", "e"], &HashSet::new(), (8, "names")).unwrap();
        ids.renumber(&["a", "d", "e", "f"], &HashSet::new(), (8, "names")).unwrap();
        assert_eq!(ids.get("f"), Some(1), "once nobody says it, it is given out again");
    }

    #[test]
    fn too_many_names_change_nothing() {
        let mut ids = Ids::default();
        let unused = HashSet::new();
        ids.renumber(&["a"], &unused, (2, "names")).unwrap();
        let refused = ids.renumber(&["b", "c", "d"], &unused, (2, "names"));
        assert_eq!(refused, Err(TooMany { limit: 2, what: "names" }));
        assert_eq!(ids.get("a"), Some(0));
    }
}
