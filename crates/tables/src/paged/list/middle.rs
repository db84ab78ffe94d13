//! Changes in the middle of a list.

use std::collections::VecDeque;
use std::ops::Range;

use super::{More, Page, PagedList, Place};

impl<T> PagedList<T> {
    /// Adds an entry at a place; what was there comes behind it.
    pub fn insert(&mut self, place: Place, entry: T) {
        let Place { page, at } = place;
        let Some(entries) = self.page_mut(page) else { return self.push_back(entry) };
        if entries.len() < Self::ENTRIES {
            entries.insert(at.min(entries.len()), entry);
            if let (Some(more), true) = (&mut self.more, page > 0) {
                more.length += 1;
            }
            return;
        }
        if at == entries.len() {
            return self.push_far(entry);
        }
        // A full page becomes two.
        let half = Self::ENTRIES / 2;
        let behind = entries.split_off(half);
        let length = behind.len();
        let more = self.more.get_or_insert_with(|| More::new().into());
        more.pages.insert(page, Page(behind).into());
        if page == 0 {
            more.length += length;
        }
        let place =
            if at > half { Place { page: page + 1, at: at - half } } else { Place { page, at } };
        self.insert(place, entry);
    }

    /// Takes out what lies in a range of places.
    pub fn remove(&mut self, range: Range<Place>) {
        let Range { start, end } = range;
        let mut gone = 0;
        for page in start.page..=end.page {
            let Some(entries) = self.page_mut(page) else { break };
            let from = if page == start.page { start.at } else { 0 };
            let to = if page == end.page { end.at } else { entries.len() };
            entries.drain(from.min(to)..to.min(entries.len()));
            gone += if page > 0 { to.saturating_sub(from) } else { 0 };
        }
        let is_empty = |page: usize| self.page(page).is_some_and(VecDeque::is_empty);
        // Of those behind the first; the ones between both ends are.
        let from = (start.page + usize::from(!is_empty(start.page))).max(1);
        let to = end.page + usize::from(is_empty(end.page));
        if let Some(more) = &mut self.more {
            more.length -= gone;
            if from < to {
                more.pages.remove(from - 1, to - from);
            }
            if more.pages.is_empty() {
                self.more = None;
            }
        }
        if self.first.is_empty() {
            self.turn();
        }
    }
}
