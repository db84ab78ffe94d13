use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Segment;

fn ends(places: u32) -> (ClaimsWriter, ClaimsReader) {
    let length = bytes(places).unwrap();
    let segment = Arc::new(Segment::create("claims", length).unwrap());
    let region = segment.region(0, length).unwrap();
    (ClaimsWriter::new(region.clone(), places).unwrap(), ClaimsReader::new(region, places).unwrap())
}

/// Spreads small numbers over all bits.
fn spread(number: u64) -> u64 {
    wire::siphash::Key([7, 9]).hash(&[number])
}

#[test]
fn only_sound_sizes_are_taken() {
    assert_eq!(bytes(8), Err(ClaimsError::Places(8)));
    assert_eq!(bytes(48), Err(ClaimsError::Places(48)));
    assert_eq!(bytes(1 << 25), Err(ClaimsError::Places(1 << 25)));
    assert_eq!(bytes(64), Ok(64 + 512));
    let segment = Arc::new(Segment::create("claims", 4096).unwrap());
    let region = segment.region(64, 575).unwrap();
    let short = ClaimsError::Memory { needed: 576, given: 575 };
    assert_eq!(ClaimsReader::new(region.clone(), 64).unwrap_err(), short);
    assert_eq!(ClaimsWriter::new(region, 64).unwrap_err(), short);
}

#[test]
fn as_many_as_were_asked_for_find_room() {
    let (mut writer, reader) = ends(4096);
    let flows = 4096 * 2 / 3;
    assert!((0..flows).all(|flow| writer.insert(spread(flow))));
    assert!((0..flows).all(|flow| reader.contains(spread(flow))));
    assert!(!(flows..2 * flows).any(|flow| reader.contains(spread(flow))));
    assert_eq!(writer.len() as u64, flows);
}

#[test]
fn a_full_table_says_so_and_keeps_what_it_has() {
    let (mut writer, reader) = ends(16);
    let mut tags = 1..;
    let kept: Vec<u64> = tags.by_ref().take_while(|tag| writer.insert(*tag)).collect();
    assert_eq!(kept.len(), 16);
    assert!(kept.iter().all(|tag| reader.contains(*tag)) && !reader.contains(17));
    writer.remove(5);
    assert!(writer.insert(99) && reader.contains(99) && !reader.contains(5));
}

#[test]
fn whatever_stands_there_is_read_within_bounds() {
    let length = bytes(64).unwrap();
    let segment = Arc::new(Segment::create("claims", length).unwrap());
    let region = segment.region(0, length).unwrap();
    for offset in (0..length).step_by(4) {
        let word = region.word(offset).unwrap();
        word.store(spread(offset as u64) as u32, crate::sync::Ordering::Relaxed);
    }
    let reader = ClaimsReader::new(region, 64).unwrap();
    let found = (0..10_000).filter(|flow| reader.contains(spread(*flow))).count();
    assert_eq!(found, 0);
}

proptest! {
    #[test]
    fn does_as_a_plain_set_does(steps in prop::collection::vec((any::<bool>(), 0..60u64), 1..400)) {
        let (mut writer, reader) = ends(128);
        let mut plain = HashSet::new();
        for (adds, flow) in steps {
            // 0 is a tag as any other.
            let tag = if flow == 0 { 0 } else { spread(flow) };
            if adds {
                prop_assert!(writer.insert(tag));
                plain.insert(flow);
            } else {
                writer.remove(tag);
                plain.remove(&flow);
            }
            prop_assert_eq!(writer.len(), plain.len());
            prop_assert_eq!(writer.is_empty(), plain.is_empty());
            for flow in 0..60 {
                let tag = if flow == 0 { 0 } else { spread(flow) };
                prop_assert_eq!(reader.contains(tag), plain.contains(&flow));
            }
        }
    }
}
