//! A reader beside the writer, under every order of their steps.

use loom::sync::Arc;
use loom::thread;

use super::mark::{self, Found};
use crate::sync::AtomicU64;

struct Place {
    mark: AtomicU64,
    words: [AtomicU64; 2],
}

fn check(steps: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(steps);
}

fn place() -> Arc<Place> {
    Arc::new(Place { mark: AtomicU64::new(0), words: [AtomicU64::new(0), AtomicU64::new(0)] })
}

fn reading(place: Arc<Place>, allowed: &'static [[u64; 2]]) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut seen = [0; 2];
        match mark::read(&place.mark, &place.words, &mut seen) {
            Found::Whole => assert!(allowed.contains(&seen), "{seen:?}"),
            Found::Nothing | Found::Changing => {}
        }
    })
}

#[test]
fn a_reader_sees_whole_records_only() {
    check(|| {
        let place = place();
        mark::write(&place.mark, &place.words, &[1, 1]);
        let reader = reading(Arc::clone(&place), &[[1, 1], [2, 2]]);
        mark::write(&place.mark, &place.words, &[2, 2]);
        reader.join().unwrap();
        let mut seen = [0; 2];
        assert_eq!(mark::read(&place.mark, &place.words, &mut seen), Found::Whole);
        assert_eq!(seen, [2, 2]);
    });
}

#[test]
fn a_place_that_is_used_again_mixes_nothing() {
    check(|| {
        let place = place();
        mark::write(&place.mark, &place.words, &[1, 1]);
        let reader = reading(Arc::clone(&place), &[[1, 1], [2, 2]]);
        mark::clear(&place.mark);
        mark::write(&place.mark, &place.words, &[2, 2]);
        reader.join().unwrap();
    });
}
