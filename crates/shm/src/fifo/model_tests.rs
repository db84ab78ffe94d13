//! The protocol under the model checker: bytes are cells that both sides must never use at the same time.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::{AtomicU32, CHUNK, CHUNKS, Chunks, Place, Reader, Writer};

/// Chunks of cells.
#[derive(Debug, Clone)]
pub struct Arena(Arc<Vec<UnsafeCell<u8>>>);

impl Arena {
    fn new(count: u32) -> Self {
        Self(Arc::new((0..count * CHUNK).map(|_| UnsafeCell::new(0)).collect()))
    }

    pub(super) fn write(&self, chunk: u32, from: u32, bytes: &[u8]) -> bool {
        for (place, byte) in bytes.iter().enumerate() {
            let cell = &self.0[(chunk * CHUNK + from) as usize + place];
            // SAFETY: the model checker finds two that use a cell at once.
            cell.with_mut(|cell| unsafe { *cell = *byte });
        }
        true
    }

    pub(super) fn read(&self, chunk: u32, from: u32, target: &mut [u8]) -> bool {
        for (place, byte) in target.iter_mut().enumerate() {
            let cell = &self.0[(chunk * CHUNK + from) as usize + place];
            // SAFETY: as above.
            *byte = cell.with(|cell| unsafe { *cell });
        }
        true
    }
}

struct Words {
    head: AtomicU32,
    tail: AtomicU32,
    table: [AtomicU32; CHUNKS],
}

impl Words {
    fn place(&self) -> Place<'_> {
        Place { head: &self.head, tail: &self.tail, table: &self.table }
    }
}

#[test]
fn bytes_come_as_they_were_written_and_chunks_are_used_again() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let word = || AtomicU32::new(0);
        let words = Words { head: word(), tail: word(), table: std::array::from_fn(|_| word()) };
        let (words, arena) = (Arc::new(words), Arena::new(2));
        let (theirs, their_arena) = (Arc::clone(&words), arena.clone());
        let reading = thread::spawn(move || {
            let (mut reader, mut next) = (Reader::default(), 1);
            for _ in 0..3 {
                let mut target = [0; 2];
                let got = reader.peek(&theirs.place(), &their_arena, 0, &mut target).unwrap();
                for byte in &target[..got] {
                    assert_eq!(*byte, next, "in order, and whole");
                    next += 1;
                }
                reader.consume(&theirs.place(), got);
            }
        });
        let (mut writer, mut chunks, mut next) = (Writer::default(), Chunks::new(2), 1);
        for count in [1, 2, 2] {
            writer.look(&words.place(), &mut chunks).unwrap();
            let bytes: Vec<u8> = (next..next + count).collect();
            next += writer.write(&words.place(), (&arena, &mut chunks), &bytes) as u8;
        }
        reading.join().unwrap();
    });
}
