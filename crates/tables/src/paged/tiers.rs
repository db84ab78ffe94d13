//! A list by number whose parts are pages too: what the pages of a longer list are listed in.

use std::collections::VecDeque;

use super::entries;

/// Entries by number. All parts but the first and the last are full, so that a place is computed.
///
/// The list of parts alone has no bound of its own: with entries of 8 bytes it outgrows a page when there are more than
/// 262,144 of them, each of which stands for a page.
#[derive(Debug)]
pub(super) struct Tiers<T> {
    /// Empty only if there are no others.
    first: VecDeque<T>,
    /// Never empty ones.
    rest: VecDeque<Box<Part<T>>>,
}

#[derive(Debug)]
struct Part<T>(VecDeque<T>);

impl<T> Tiers<T> {
    /// Entries of a part.
    const MOST: usize = entries::<T>();

    pub(super) const fn new() -> Self {
        Self { first: VecDeque::new(), rest: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        let last = self.rest.back().map_or(0, |part| part.0.len());
        self.first.len() + self.rest.len().saturating_sub(1) * Self::MOST + last
    }

    /// Part, 0 being the first, and place in it.
    #[inline]
    fn place(&self, index: usize) -> (usize, usize) {
        match index.checked_sub(self.first.len()) {
            None => (0, index),
            Some(behind) => (1 + behind / Self::MOST, behind % Self::MOST),
        }
    }

    fn part_mut(&mut self, part: usize) -> Option<&mut VecDeque<T>> {
        match part.checked_sub(1) {
            None => Some(&mut self.first),
            Some(part) => self.rest.get_mut(part).map(|part| &mut part.0),
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match self.place(index) {
            (0, at) => self.first.get(at),
            (part, at) => self.rest.get(part - 1)?.0.get(at),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (part, at) = self.place(index);
        self.part_mut(part)?.get_mut(at)
    }

    pub(super) fn back(&self) -> Option<&T> {
        self.rest.back().map_or(&self.first, |part| &part.0).back()
    }

    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().map_or(&mut self.first, |part| &mut part.0).back_mut()
    }

    pub(super) fn push_back(&mut self, entry: T) {
        if self.rest.is_empty() && self.first.len() < Self::MOST {
            return self.first.push_back(entry);
        }
        match self.rest.back_mut() {
            Some(part) if part.0.len() < Self::MOST => part.0.push_back(entry),
            _ => {
                let mut part = VecDeque::with_capacity(Self::MOST);
                part.push_back(entry);
                self.rest.push_back(Part(part).into());
            }
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let entry = self.first.pop_front();
        self.turn();
        entry
    }

    /// Where the first part is empty, the next takes its place.
    fn turn(&mut self) {
        if self.first.is_empty() {
            if let Some(next) = self.rest.pop_front() {
                self.first = next.0;
            }
        }
    }

    /// Puts an entry before the one that has this number. What has no room in its part goes on to the next.
    pub(super) fn insert(&mut self, index: usize, entry: T) {
        let (mut part, mut at) = self.place(index);
        let mut entry = entry;
        while let Some(entries) = self.part_mut(part) {
            let over = if entries.len() < Self::MOST { None } else { entries.pop_back() };
            entries.insert(at.min(entries.len()), entry);
            let Some(over) = over else { return };
            (part, at, entry) = (part + 1, 0, over);
        }
        self.push_back(entry);
    }

    /// Takes out `count` entries from `index` on; those behind move up.
    pub(super) fn remove(&mut self, index: usize, count: usize) {
        let (part, at) = self.place(index);
        let mut left = count.min(self.len().saturating_sub(index));
        if left == 0 {
            return;
        }
        // Of its own part, then whole ones, then the beginning of another.
        if let Some(entries) = self.part_mut(part) {
            let some = left.min(entries.len().saturating_sub(at));
            entries.drain(at..at + some);
            left -= some;
        }
        let whole = left / Self::MOST;
        self.rest.drain(part..(part + whole).min(self.rest.len()));
        let some = left % Self::MOST;
        if let Some(entries) = self.part_mut(part + 1) {
            entries.drain(..some.min(entries.len()));
        }
        self.close_up(part);
    }

    /// Fills the part `from` and all behind it with what comes later; the first may stay as it is.
    fn close_up(&mut self, from: usize) {
        let mut at = from.saturating_sub(1);
        while at + 1 < self.rest.len() {
            let mut two = self.rest.range_mut(at..at + 2);
            let (Some(part), Some(next)) = (two.next(), two.next()) else { break };
            let missing = Self::MOST - part.0.len();
            part.0.extend(next.0.drain(..missing.min(next.0.len())));
            if next.0.is_empty() {
                self.rest.remove(at + 1);
            } else {
                at += 1;
            }
        }
        if self.rest.back().is_some_and(|part| part.0.is_empty()) {
            self.rest.pop_back();
        }
        self.turn();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flat_map(|part| &part.0))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(self.rest.iter_mut().flat_map(|part| &mut part.0))
    }

    /// How many at the beginning meet `is_before`; no others do.
    pub(super) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        if !self.first.back().is_some_and(&is_before) {
            return self.first.partition_point(is_before);
        }
        let whole = self.rest.partition_point(|part| part.0.back().is_some_and(&is_before));
        let within = self.rest.get(whole).map_or(0, |part| part.0.partition_point(&is_before));
        (self.first.len() + whole * Self::MOST + within).min(self.len())
    }

    /// Bytes of its largest part, and of the list of parts.
    #[cfg(test)]
    pub(super) fn largest(&self) -> usize {
        let parts = self.rest.iter().map(|part| &part.0).chain([&self.first]);
        let largest = parts.map(|part| part.capacity() * size_of::<T>()).max().unwrap_or(0);
        largest.max(self.rest.capacity() * size_of::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGE;
    use super::*;
    use proptest::prelude::*;

    /// Eight entries a part.
    type Large = [u64; 64];

    proptest! {
        #[test]
        fn is_a_list(steps in proptest::collection::vec((0..6u8, any::<u16>(), 0..60usize), 0..200)) {
            let (mut tiers, mut model) = (Tiers::<Large>::new(), Vec::new());
            for (number, (what, at, count)) in steps.into_iter().enumerate() {
                let entry = [number as u64; 64];
                let at = usize::from(at) % (model.len() + 1);
                match what {
                    0 | 1 => for _ in 0..count {
                        tiers.push_back(entry);
                        model.push(entry);
                    },
                    2 => for _ in 0..count {
                        tiers.insert(at, entry);
                        model.insert(at, entry);
                    },
                    3 => for _ in 0..count / 2 {
                        let first = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(tiers.pop_front(), first);
                    },
                    4 => {
                        tiers.remove(at, count);
                        model.drain(at..(at + count).min(model.len()));
                    }
                    _ => if let Some(other) = tiers.get_mut(at) {
                        *other = entry;
                        model[at] = entry;
                    }
                }
                prop_assert!(tiers.iter().eq(&model));
                prop_assert_eq!((tiers.len(), tiers.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((tiers.get(at), tiers.back()), (model.get(at), model.last()));
                prop_assert_eq!(tiers.iter_mut().count(), model.len());
                prop_assert!(tiers.largest() <= PAGE);
            }
        }

        #[test]
        fn is_searched(count in 0..3000u64, gone in 0..600usize, border in 0..3100u64) {
            let (mut tiers, mut model) = (Tiers::<[u64; 8]>::new(), Vec::new());
            for number in 0..count {
                tiers.push_back([number; 8]);
                model.push([number; 8]);
            }
            for _ in 0..gone.min(model.len()) {
                tiers.pop_front();
                model.remove(0);
            }
            let is_before = |entry: &[u64; 8]| entry[0] < border;
            prop_assert_eq!(tiers.partition_point(is_before), model.partition_point(is_before));
        }
    }
}
