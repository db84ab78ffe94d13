//! A queue that grows by a page at a time, so that one entry more never moves all the others.

use std::mem::{replace, take};

use super::entries;
use super::tiers::Tiers;

/// A queue of small values.
#[derive(Debug)]
pub struct PagedQueue<T> {
    /// Where entries are taken from, and, while they fit, added.
    front: Vec<T>,
    /// Entries of `front` that were taken.
    head: usize,
    /// Full pages behind it.
    middle: Tiers<Vec<T>>,
    /// The last page. While it is empty, so is `middle`.
    back: Vec<T>,
    /// A page that was used up.
    spare: Vec<T>,
}

impl<T> Default for PagedQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PagedQueue<T> {
    /// Entries of a page.
    const ENTRIES: usize = entries::<T>();

    /// An empty queue, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            front: Vec::new(),
            head: 0,
            middle: Tiers::new(),
            back: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Bytes of memory of its pages.
    #[inline]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let ends = self.front.capacity() + self.back.capacity() + self.spare.capacity();
        (ends + self.middle.len() * Self::ENTRIES) * size_of::<T>()
    }
}

impl<T: Copy> PagedQueue<T> {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        if self.back.is_empty() {
            return self.front.len() - self.head;
        }
        let middle = self.middle.len() * Self::ENTRIES;
        self.front.len() - self.head + middle + self.back.len()
    }

    /// Puts one behind the others.
    #[inline]
    pub fn push_back(&mut self, entry: T) {
        if self.front.len() < Self::ENTRIES && self.back.is_empty() {
            self.front.push(entry);
        } else {
            self.push_far(entry);
        }
    }

    #[cold]
    fn push_far(&mut self, entry: T) {
        if self.back.len() == Self::ENTRIES {
            self.middle.push_back(take(&mut self.back));
        }
        if self.back.capacity() == 0 {
            self.back = take(&mut self.spare);
            self.back.reserve_exact(Self::ENTRIES);
        }
        self.back.push(entry);
    }

    /// Takes the first out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let entry = *self.front.get(self.head)?;
        self.head += 1;
        if self.head == self.front.len() {
            self.head = 0;
            self.front.clear();
            if !self.back.is_empty() {
                self.turn();
            }
        }
        Some(entry)
    }

    /// The next page is the front.
    #[cold]
    fn turn(&mut self) {
        let next = self.middle.pop_front().unwrap_or_else(|| take(&mut self.back));
        self.spare = replace(&mut self.front, next);
    }

    /// The first.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.front.get(self.head)
    }

    /// From the front.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let front = self.front.get(self.head..).unwrap_or(&[]);
        front.iter().chain(self.middle.iter().flatten()).chain(&self.back)
    }

    /// Takes out what is not to be kept. Looks at every entry.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let before = take(self);
        before.iter().filter(|entry| keep(entry)).for_each(|entry| self.push_back(*entry));
    }
}

#[cfg(test)]
impl<T> PagedQueue<T> {
    /// Bytes of its largest page, or part of the list of pages.
    fn largest(&self) -> usize {
        let pages = self.middle.iter().chain([&self.front, &self.back]);
        let largest = pages.map(|page| page.capacity() * size_of::<T>()).max().unwrap_or(0);
        largest.max(self.middle.largest())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::PAGE;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_entry_more_moves_no_more_than_a_page() {
        let count = 1 << 20;
        let (mut queue, mut pages) = (PagedQueue::new(), Vec::new());
        for number in 0..count {
            queue.push_back(number as u64);
            if number % 512 == 511 {
                // Where pages are: none is ever copied once it is full.
                let middle = queue.middle.iter().map(|page| page.as_ptr());
                let now: Vec<_> = std::iter::once(queue.front.as_ptr()).chain(middle).collect();
                assert!(now.starts_with(&pages), "after {number}");
                pages = now;
            }
            let largest = queue.front.capacity().max(queue.back.capacity());
            assert!(largest * size_of::<u64>() <= PAGE, "after {number}");
        }
        assert!(queue.largest() <= PAGE && queue.len() == count);
        assert!((0..count as u64).all(|number| queue.pop_front() == Some(number)));
        assert!(queue.is_empty() && queue.pop_front().is_none());
    }

    #[test]
    fn all_pages_count() {
        let mut queue = PagedQueue::<u64>::new();
        assert_eq!(queue.memory_bytes(), 0);
        for number in 0..10 * 512 {
            queue.push_back(number);
        }
        assert_eq!(queue.memory_bytes(), 10 * PAGE);
        for _ in 0..3 * 512 {
            queue.pop_front();
        }
        assert_eq!(queue.memory_bytes(), 8 * PAGE, "one that was used up is kept");
    }

    #[test]
    fn one_entry_at_a_time_stays_in_one_place() {
        let mut queue = PagedQueue::new();
        let mut place = None;
        for number in 0..10_000u32 {
            queue.push_back(number);
            let first = *place.get_or_insert(queue.front.as_ptr());
            assert_eq!((queue.front.as_ptr(), queue.pop_front()), (first, Some(number)));
        }
    }

    proptest! {
        #[test]
        fn is_a_queue(steps in proptest::collection::vec((0..4u8, 0..3000usize), 0..60)) {
            let (mut queue, mut model, mut next) = (PagedQueue::new(), VecDeque::new(), 0u64);
            for (what, count) in steps {
                for _ in 0..count {
                    match what {
                        0 | 1 => {
                            queue.push_back(next);
                            model.push_back(next);
                            next += 1;
                        }
                        _ => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                    }
                }
                if what == 3 {
                    queue.retain(|entry| entry % 3 != 0);
                    model.retain(|entry| entry % 3 != 0);
                }
                prop_assert!(queue.iter().eq(&model));
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }
}
