//! An array by index whose entries never move.

use super::entries;

/// Pages that are listed together: their list is a page too.
const LISTED: usize = 256;

/// A page, and a list of pages.
type Page<T> = Box<[T]>;
type Shelf<T> = Box<[Option<Page<T>>]>;

/// Entries by index. Where nothing was put there is none; the page around what is put is filled with defaults.
///
/// One entry more, at whatever index, takes a page, a list of 256 of them, and 16 bytes for each such list below it: with
/// entries of 64 bytes one page is enough for those up to index 4,194,303.
#[derive(Debug)]
pub struct PagedArray<T> {
    shelves: Vec<Option<Shelf<T>>>,
}

impl<T> Default for PagedArray<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// `count` defaults.
fn filled<T: Default>(count: usize) -> Box<[T]> {
    std::iter::repeat_with(T::default).take(count).collect()
}

impl<T> PagedArray<T> {
    /// Entries of a page.
    const ENTRIES: usize = entries::<T>();

    /// Without any entry.
    #[must_use]
    pub const fn new() -> Self {
        Self { shelves: Vec::new() }
    }

    /// The entry, if there is one.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        let page = index / Self::ENTRIES;
        let shelf = self.shelves.get(page / LISTED)?.as_ref()?;
        shelf.get(page % LISTED)?.as_ref()?.get(index % Self::ENTRIES)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let page = index / Self::ENTRIES;
        let shelf = self.shelves.get_mut(page / LISTED)?.as_mut()?;
        shelf.get_mut(page % LISTED)?.as_mut()?.get_mut(index % Self::ENTRIES)
    }

    /// All entries, with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let shelves = self.shelves.iter().enumerate();
        let pages = shelves.flat_map(|(number, shelf)| {
            let pages = shelf.iter().flat_map(|pages| pages.iter().enumerate());
            pages.map(move |(page, entries)| (number * LISTED + page, entries))
        });
        pages.flat_map(|(page, entries)| {
            let entries = entries.iter().flat_map(|entries| entries.iter().enumerate());
            entries.map(move |(at, entry)| (page * Self::ENTRIES + at, entry))
        })
    }
}

impl<T: Default> PagedArray<T> {
    /// Puts an entry, in place of what was there.
    pub fn put(&mut self, index: usize, entry: T) {
        if let Some(place) = self.get_mut(index) {
            *place = entry;
        } else {
            self.put_far(index, entry);
        }
    }

    /// The first of its page.
    #[cold]
    fn put_far(&mut self, index: usize, entry: T) {
        let page = index / Self::ENTRIES;
        if self.shelves.len() <= page / LISTED {
            self.shelves.resize_with(page / LISTED + 1, || None);
        }
        let Some(shelf) = self.shelves.get_mut(page / LISTED) else { return };
        let shelf = shelf.get_or_insert_with(|| filled(LISTED));
        let Some(place) = shelf.get_mut(page % LISTED) else { return };
        if let Some(own) = place.insert(filled(Self::ENTRIES)).get_mut(index % Self::ENTRIES) {
            *own = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGE;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_entry_ever_moves() {
        let mut array = PagedArray::new();
        let mut places = Vec::new();
        for number in 0..100_000_usize {
            array.put(number, [number; 5]);
            places.push(std::ptr::from_ref(array.get(number).unwrap()));
        }
        let all = array.iter().take(places.len());
        assert!(all.map(|(_, entry)| std::ptr::from_ref(entry)).eq(places));
        assert!(array.iter().take(100_000).all(|(place, entry)| *entry == [place; 5]));
        *array.get_mut(77).unwrap() = [0; 5];
        assert_eq!((array.get(77), array.get(1 << 30)), (Some(&[0; 5]), None));
    }

    #[test]
    fn an_entry_far_away_takes_a_page() {
        let mut array = PagedArray::<[u64; 8]>::new();
        array.put(4_194_303, [1; 8]);
        assert_eq!(array.shelves.capacity() * size_of::<Option<Shelf<u8>>>(), PAGE);
        let pages = array.shelves.iter().flatten().flatten().flatten();
        assert_eq!(pages.map(|page| size_of_val(&**page)).collect::<Vec<_>>(), [PAGE]);
        assert_eq!(size_of::<[Option<Page<u64>>; LISTED]>(), PAGE);
    }

    proptest! {
        #[test]
        fn is_an_array(entries in proptest::collection::btree_map(0..2_000_000_usize, 1..9u8, 0..50)) {
            let mut array = PagedArray::<u8>::new();
            entries.iter().for_each(|(index, entry)| array.put(*index, *entry));
            let all: BTreeMap<_, _> = array.iter().filter(|(_, entry)| **entry != 0).collect();
            prop_assert!(all.into_iter().eq(entries.iter().map(|(index, entry)| (*index, entry))));
        }
    }
}
