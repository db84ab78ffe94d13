//! An ordered list that grows, is cut and is filled up in the middle without moving more than a page.
//!
//! Most lists are short: the first page lies in the list itself and grows with what it holds. Pages need not be full,
//! so places are found by search instead of arithmetic.

use std::collections::VecDeque;
use std::mem::swap;

use super::entries;
use super::tiers::Tiers;

mod middle;

/// Where an entry is; any change of the list other than one through [`PagedList::get_mut`] makes it void.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// 0: the first.
    page: usize,
    /// Less than the page's length, except at the end of the list.
    at: usize,
}

/// Entries of a page.
#[derive(Debug)]
struct Page<T>(VecDeque<T>);

/// What does not fit into the first page.
#[derive(Debug)]
struct More<T> {
    /// Never empty ones.
    pages: Tiers<Box<Page<T>>>,
    /// Entries in them.
    length: usize,
    /// A page that was used up.
    spare: Option<Box<Page<T>>>,
}

/// A list of small values.
#[derive(Debug)]
pub struct PagedList<T> {
    /// Empty only if the list is.
    first: VecDeque<T>,
    more: Option<Box<More<T>>>,
}

impl<T> Default for PagedList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PagedList<T> {
    /// Entries of a page.
    const ENTRIES: usize = entries::<T>();

    /// An empty list, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: VecDeque::new(), more: None }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.first.len() + self.more.as_ref().map_or(0, |more| more.length)
    }

    /// Whether it has more than its first page.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.more.is_some()
    }

    /// Makes room for one entry if there is no memory at all.
    #[inline]
    pub fn begin(&mut self) {
        if self.first.capacity() == 0 {
            self.first.reserve_exact(1);
        }
    }

    /// Empty, but for the memory of its first page.
    #[inline]
    pub fn clear(&mut self) {
        self.first.clear();
        self.more = None;
    }

    /// The first.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.first.front()
    }

    /// The first, to be changed.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.first.front_mut()
    }

    /// The last.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        match &self.more {
            Some(more) => more.pages.back().and_then(|page| page.0.back()),
            None => self.first.back(),
        }
    }

    /// Puts one behind the others.
    #[inline]
    pub fn push_back(&mut self, entry: T) {
        if self.more.is_none() && self.first.len() < Self::ENTRIES {
            self.first.push_back(entry);
        } else {
            self.push_far(entry);
        }
    }

    #[inline(never)]
    fn push_far(&mut self, entry: T) {
        let more = self.more.get_or_insert_with(|| More::new().into());
        more.length += 1;
        match more.pages.back_mut() {
            Some(page) if page.0.len() < Self::ENTRIES => page.0.push_back(entry),
            _ => {
                let mut page = more.spare.take().unwrap_or_else(|| Page(VecDeque::new()).into());
                page.0.reserve_exact(Self::ENTRIES);
                page.0.push_back(entry);
                more.pages.push_back(page);
            }
        }
    }

    /// Takes the first out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let entry = self.first.pop_front();
        if self.first.is_empty() && self.more.is_some() {
            self.turn();
        }
        entry
    }

    /// The first page is empty: the next takes its place.
    #[inline(never)]
    fn turn(&mut self) {
        let Some(more) = &mut self.more else { return };
        if let Some(mut page) = more.pages.pop_front() {
            more.length -= page.0.len();
            swap(&mut self.first, &mut page.0);
            more.spare = Some(page);
        }
        if more.pages.is_empty() {
            self.more = None;
        }
    }
}

impl<T> More<T> {
    fn new() -> Self {
        Self { pages: Tiers::new(), length: 0, spare: None }
    }
}

/// Places.
impl<T> PagedList<T> {
    #[inline]
    fn page(&self, page: usize) -> Option<&VecDeque<T>> {
        match page.checked_sub(1) {
            None => Some(&self.first),
            Some(page) => self.more.as_ref()?.pages.get(page).map(|page| &page.0),
        }
    }

    #[inline]
    fn page_mut(&mut self, page: usize) -> Option<&mut VecDeque<T>> {
        match page.checked_sub(1) {
            None => Some(&mut self.first),
            Some(page) => self.more.as_mut()?.pages.get_mut(page).map(|page| &mut page.0),
        }
    }

    /// What is there.
    #[inline]
    pub fn get(&self, place: Place) -> Option<&T> {
        self.page(place.page)?.get(place.at)
    }

    /// What is there, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.page_mut(place.page)?.get_mut(place.at)
    }

    /// The place behind one that holds an entry.
    #[inline]
    #[must_use]
    pub fn after(&self, place: Place) -> Place {
        let Place { page, at } = place;
        let within = self.page(page).is_some_and(|entries| at + 1 < entries.len());
        if within || self.page(page + 1).is_none() {
            return Place { page, at: at + 1 };
        }
        Place { page: page + 1, at: 0 }
    }

    /// The place before, unless it is the first.
    #[must_use]
    pub fn before(&self, place: Place) -> Option<Place> {
        let Place { page, at } = place;
        if let Some(at) = at.checked_sub(1) {
            return Some(Place { page, at });
        }
        let page = page.checked_sub(1)?;
        Some(Place { page, at: self.page(page)?.len().checked_sub(1)? })
    }

    /// The first place whose entry does not meet `is_before`, which entries up to some place meet, and no others; the
    /// end of the list if all do.
    #[inline]
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> Place {
        let Some(more) = &self.more else {
            return Place { page: 0, at: self.first.partition_point(is_before) };
        };
        if !self.first.back().is_some_and(&is_before) {
            return Place { page: 0, at: self.first.partition_point(is_before) };
        }
        let last = more.pages.len().saturating_sub(1);
        let passed = more.pages.partition_point(|page| page.0.back().is_some_and(&is_before));
        let index = passed.min(last);
        let at = more.pages.get(index).map_or(0, |page| page.0.partition_point(&is_before));
        Place { page: 1 + index, at }
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let more = self.more.iter().flat_map(|more| more.pages.iter());
        self.first.iter().chain(more.flat_map(|page| &page.0))
    }

    /// In order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let more = self.more.iter_mut().flat_map(|more| more.pages.iter_mut());
        self.first.iter_mut().chain(more.flat_map(|page| &mut page.0))
    }

    /// Entries from a place on.
    pub fn iter_from(&self, place: Place) -> impl Iterator<Item = &T> {
        let mut place = place;
        std::iter::from_fn(move || {
            let entry = self.get(place)?;
            place = self.after(place);
            Some(entry)
        })
    }
}

#[cfg(test)]
impl<T> PagedList<T> {
    /// Bytes of its largest page, and of the largest part of the list of pages.
    pub(super) fn largest(&self) -> (usize, usize) {
        let pages = self.more.iter().flat_map(|more| more.pages.iter()).map(|page| &page.0);
        let bytes = |page: &VecDeque<T>| page.capacity() * size_of::<T>();
        let list = self.more.as_ref().map_or(0, |more| more.pages.largest());
        (pages.chain([&self.first]).map(bytes).max().unwrap_or(0), list)
    }
}

#[cfg(test)]
mod tests;
