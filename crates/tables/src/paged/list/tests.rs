use super::super::PAGE;
use super::*;
use proptest::prelude::*;

#[test]
fn an_entry_more_moves_no_more_than_a_page() {
    let mut list = PagedList::new();
    let mut pages: Vec<*const u64> = Vec::new();
    for number in 0..100_000u64 {
        list.push_back(number);
        assert!(list.largest().0 <= PAGE, "after {number}");
        if number % 512 == 511 {
            // Where full pages are: none is ever copied.
            let now: Vec<_> =
                (0..).map_while(|page| list.page(page)).map(|page| &raw const page[0]).collect();
            assert!(now.starts_with(&pages), "after {number}");
            pages = now;
        }
    }
    assert!(list.largest().1 <= PAGE && list.len() == 100_000);
    assert!((0..100_000).all(|number| list.pop_front() == Some(number)));
    assert!(list.is_empty() && !list.is_large());
}

#[test]
fn an_entry_between_others_moves_no_more_than_a_page() {
    let mut list = PagedList::new();
    (0..10_000u64).for_each(|number| list.push_back(2 * number));
    let place = list.partition_point(|entry| *entry < 10_001);
    let far = |list: &PagedList<u64>| -> Vec<_> {
        list.iter()
            .filter(|entry| entry.abs_diff(10_001) > 1500)
            .map(|entry| &raw const *entry)
            .collect()
    };
    let before = far(&list);
    list.insert(place, 10_001);
    assert!(far(&list) == before && list.largest().0 <= PAGE);
    assert!(list.iter().is_sorted() && list.len() == 10_001);
}

#[test]
fn a_short_list_takes_little_memory() {
    let mut list = PagedList::<u64>::new();
    list.begin();
    assert_eq!((list.largest().0, size_of::<PagedList<u64>>()), (8, 40));
    list.push_back(1);
    assert_eq!((list.largest().0, list.is_large()), (8, false));
}

/// From one entry to the next that is added.
const FAR: u64 = 1 << 40;

proptest! {
    #[test]
    fn is_a_list(steps in proptest::collection::vec((0..7u8, 0..1500u32, 0..700u32), 0..60)) {
        // Sorted, so that places can be found.
        let (mut list, mut model, mut next) = (PagedList::new(), Vec::new(), FAR);
        for (what, at, count) in steps {
            let at = (at as usize).min(model.len());
            let border = model.get(at).copied().unwrap_or(u64::MAX);
            let place = list.partition_point(|entry| *entry < border);
            prop_assert_eq!(list.get(place).copied(), model.get(at).copied());
            match what {
                0..=2 => for _ in 0..count {
                    list.push_back(next);
                    model.push(next);
                    next += FAR;
                },
                3 => for number in 0..count as usize % 200 {
                    // One between every two.
                    let at = (at + 2 * number).min(model.len());
                    let below = at.checked_sub(1).map_or(0, |at| model[at]);
                    let above = model.get(at).copied().unwrap_or(next);
                    let entry = below.midpoint(above);
                    if entry > below && entry < above {
                        list.insert(list.partition_point(|other| *other < entry), entry);
                        model.insert(at, entry);
                    }
                },
                4 => for _ in 0..count.min(model.len() as u32) {
                    prop_assert_eq!(list.pop_front(), Some(model.remove(0)));
                },
                5 => {
                    let behind = (at + count as usize).min(model.len());
                    let (mut end, mut steps) = (place, 0);
                    while steps < behind - at {
                        end = list.after(end);
                        steps += 1;
                    }
                    prop_assert_eq!(place < end, at < behind);
                    list.remove(place..end);
                    model.drain(at..behind);
                }
                _ => {
                    let before = list.before(place).and_then(|place| list.get(place)).copied();
                    prop_assert_eq!(before, at.checked_sub(1).map(|at| model[at]));
                    prop_assert!(list.iter_from(place).eq(&model[at..]));
                }
            }
            prop_assert!(list.iter().eq(&model));
            prop_assert_eq!((list.len(), list.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!((list.front(), list.back()), (model.first(), model.last()));
            prop_assert!(list.largest().0 <= PAGE);
        }
    }
}
