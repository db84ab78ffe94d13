use std::array::from_fn;
use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Segment;
use crate::sync::Ordering;

struct Words {
    head: AtomicU32,
    tail: AtomicU32,
    table: [AtomicU32; CHUNKS],
}

impl Words {
    fn new() -> Self {
        let word = || AtomicU32::new(0);
        Self { head: word(), tail: word(), table: from_fn(|_| word()) }
    }

    fn place(&self) -> Place<'_> {
        Place { head: &self.head, tail: &self.tail, table: &self.table }
    }
}

fn arena(count: u32) -> (Arena, Chunks) {
    let segment = Arc::new(Segment::create("test", Arena::bytes(count)).unwrap());
    let region = segment.region(0, Arena::bytes(count)).unwrap();
    assert!(Arena::new(region.clone(), count + 1).is_none());
    (Arena::new(region, count).unwrap(), Chunks::new(count))
}

fn bytes(count: usize, first: usize) -> Vec<u8> {
    (first..first + count).map(|byte| (byte % 251) as u8).collect()
}

#[test]
fn an_empty_one_has_no_chunk() {
    let (words, (arena, mut chunks)) = (Words::new(), arena(3));
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    let place = words.place();
    for round in 0..1000 {
        assert_eq!(writer.write(&place, (&arena, &mut chunks), &bytes(100, round)), 100);
        assert!(writer.holds() && chunks.free() < 3);
        let mut target = [0; 200];
        assert_eq!(reader.peek(&place, &arena, 0, &mut target), Ok(100));
        assert_eq!(target[..100], bytes(100, round));
        reader.consume(&place, 100);
        writer.look(&place, &mut chunks).unwrap();
        assert!(!writer.holds() && chunks.free() == 3 && writer.is_empty());
    }
}

#[test]
fn it_takes_what_fits_and_what_there_are_chunks_for() {
    let (words, (arena, mut chunks)) = (Words::new(), arena(100));
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    let place = words.place();
    let all = bytes(2 * CAPACITY as usize, 0);
    assert_eq!(writer.write(&place, (&arena, &mut chunks), &all), CAPACITY as usize);
    assert_eq!((writer.room(), chunks.free()), (0, 100 - CHUNKS));
    reader.consume(&place, 10);
    writer.look(&place, &mut chunks).unwrap();
    assert_eq!(writer.room(), 0, "its first chunk is not free yet");
    reader.consume(&place, CHUNK as usize - 10);
    writer.look(&place, &mut chunks).unwrap();
    assert_eq!((writer.room(), writer.len()), (CHUNK as usize, (CAPACITY - CHUNK) as usize));
    writer.end(&mut chunks);
    assert_eq!(chunks.free(), 100);
    // Another FIFO finds few chunks.
    let mut few = Chunks::new(2);
    let mut other = Writer::default();
    let words = Words::new();
    assert_eq!(other.write(&words.place(), (&arena, &mut few), &all), 2 * CHUNK as usize);
    assert!(few.free() == 0 && other.room() > 0);
}

#[test]
fn nothing_that_the_other_side_writes_goes_beyond() {
    let (words, (arena, mut chunks)) = (Words::new(), arena(4));
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    let place = words.place();
    writer.write(&place, (&arena, &mut chunks), &[7; 100]);
    for wrong in [101, u32::MAX, CAPACITY, 1 << 31] {
        words.head.store(wrong, Ordering::Relaxed);
        assert_eq!(writer.look(&place, &mut chunks), Err(Broken), "{wrong} were read of 100");
    }
    words.head.store(50, Ordering::Relaxed);
    assert_eq!(writer.look(&place, &mut chunks), Ok(()));
    words.head.store(49, Ordering::Relaxed);
    assert_eq!(writer.look(&place, &mut chunks), Err(Broken), "it has gone back");
    for wrong in [4, u32::MAX, 1 << 20] {
        words.table[0].store(wrong, Ordering::Relaxed);
        assert_eq!(reader.peek(&place, &arena, 0, &mut [0; 10]), Err(Broken), "chunk {wrong}");
    }
    words.table[0].store(3, Ordering::Relaxed);
    assert_eq!(reader.peek(&place, &arena, 0, &mut [0; 10]), Ok(10), "it harms only itself");
    words.tail.store(CAPACITY + 1, Ordering::Relaxed);
    assert_eq!(reader.len(&place), Err(Broken));
    reader.consume(&place, 1);
    assert_eq!(reader.len(&place), Ok(CAPACITY as usize));
    // What the table says concerns the reader alone: the writer knows which chunks it has.
    words.head.store(100, Ordering::Relaxed);
    writer.look(&place, &mut chunks).unwrap();
    assert_eq!(chunks.free(), 4);
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Peek(usize, usize),
    Consume(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..20_000usize).prop_map(Step::Write),
        (0..9000usize, 0..20_000usize).prop_map(|(offset, count)| Step::Peek(offset, count)),
        (0..30_000usize).prop_map(Step::Consume),
    ]
}

proptest! {
    /// Two FIFOs share the chunks; both are queues.
    #[test]
    fn they_are_queues(steps in proptest::collection::vec((any::<bool>(), step()), 0..200)) {
        let (arena, mut chunks) = arena(40);
        let words = [Words::new(), Words::new()];
        let mut ends: [(Writer, Reader); 2] = from_fn(|_| Default::default());
        let mut models: [VecDeque<u8>; 2] = from_fn(|_| VecDeque::new());
        let mut next = 0;
        for (which, step) in steps {
            let which = usize::from(which);
            let place = words[which].place();
            let ((writer, reader), model) = (&mut ends[which], &mut models[which]);
            match step {
                Step::Write(count) => {
                    writer.look(&place, &mut chunks).unwrap();
                    let data = bytes(count, next);
                    next += count;
                    let takes = writer.takes(&chunks);
                    let written = writer.write(&place, (&arena, &mut chunks), &data);
                    prop_assert_eq!(written, count.min(takes));
                    prop_assert!(written == count || writer.room() == 0 || chunks.free() == 0);
                    model.extend(&data[..written]);
                }
                Step::Peek(offset, count) => {
                    let mut target = vec![0; count];
                    let got = reader.peek(&place, &arena, offset, &mut target).unwrap();
                    prop_assert_eq!(got, count.min(model.len().saturating_sub(offset)));
                    let expected: Vec<u8> = model.iter().skip(offset).take(got).copied().collect();
                    prop_assert_eq!(&target[..got], &expected[..]);
                }
                Step::Consume(count) => {
                    let count = count.min(model.len());
                    reader.consume(&place, count);
                    model.drain(..count);
                }
            }
            prop_assert_eq!(reader.len(&place), Ok(model.len()));
        }
        for (((writer, reader), model), words) in ends.iter_mut().zip(&models).zip(&words) {
            reader.consume(&words.place(), model.len());
            writer.look(&words.place(), &mut chunks).unwrap();
        }
        prop_assert_eq!(chunks.free(), 40);
    }
}

#[test]
fn what_belongs_together_is_seen_together() {
    let (words, (arena, mut chunks)) = (Words::new(), arena(2));
    let (mut writer, reader) = (Writer::default(), Reader::default());
    let place = words.place();
    let second = CHUNK as usize;
    for (count, first) in [(3, 0), (second, 3)] {
        assert_eq!(writer.put(&place, (&arena, &mut chunks), &bytes(count, first)), count);
        assert_eq!(reader.len(&place), Ok(0));
        writer.look(&place, &mut chunks).unwrap();
    }
    writer.show(&place);
    let mut target = vec![0; 2 * second];
    assert_eq!(reader.peek(&place, &arena, 0, &mut target), Ok(3 + second));
    assert_eq!(target[..3 + second], bytes(3 + second, 0));
}

#[test]
fn who_has_written_knows_what_was_not_read() {
    let (words, (arena, mut chunks)) = (Words::new(), arena(40));
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    let place = words.place();
    let (mut written, mut read) = (0, 0);
    for count in [1, 5000, 3, 70_000, 4096, 60_000] {
        written += writer.write(&place, (&arena, &mut chunks), &bytes(count, written));
        assert_eq!(writer.unread(&arena), bytes(written - read, read));
        let some = (written - read) * 2 / 3;
        reader.consume(&place, some);
        read += some;
        writer.look(&place, &mut chunks).unwrap();
        assert_eq!(writer.unread(&arena), bytes(written - read, read));
    }
}
