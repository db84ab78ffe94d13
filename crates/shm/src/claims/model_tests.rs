//! A reader beside the writer, under every order of their steps.

use loom::thread;

use super::{ClaimsReader, ClaimsWriter, Memory};

/// Tags of the same two lines.
const STAYS: u64 = 0x10;
const GOES: u64 = 0x20;
const COMES: u64 = 0x30;

#[test]
fn a_tag_that_stays_is_never_missed() {
    loom::model(|| {
        let memory = Memory::new(2);
        let (mut writer, reader) = (ClaimsWriter::with(memory.clone()), ClaimsReader::with(memory));
        assert!(writer.insert(GOES) && writer.insert(STAYS));
        let looking = thread::spawn(move || {
            assert!(reader.contains(STAYS));
            reader
        });
        writer.remove(GOES);
        assert!(writer.insert(COMES));
        let reader = looking.join().unwrap();
        assert!(reader.contains(STAYS) && reader.contains(COMES) && !reader.contains(GOES));
    });
}

#[test]
fn who_hears_of_a_claim_finds_it() {
    use loom::sync::atomic::{AtomicBool, Ordering};
    loom::model(|| {
        let memory = Memory::new(2);
        let (mut writer, reader) = (ClaimsWriter::with(memory.clone()), ClaimsReader::with(memory));
        let told = loom::sync::Arc::new(AtomicBool::new(false));
        let hears = told.clone();
        let writing = thread::spawn(move || {
            assert!(writer.insert(STAYS));
            // As the mark of the answer in the ring does it.
            told.store(true, Ordering::Release);
        });
        if hears.load(Ordering::Acquire) {
            assert!(reader.contains(STAYS));
        }
        writing.join().unwrap();
        assert!(reader.contains(STAYS));
    });
}
