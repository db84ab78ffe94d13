use super::pool::{KEPT, kept};
use super::*;
use proptest::prelude::*;

fn circle(fifo: &Fifo) -> &[u8] {
    let Memory::Circle(bytes) = &fifo.memory else { panic!("it is small") };
    bytes
}

fn is_bare(fifo: &Fifo) -> bool {
    matches!(&fifo.memory, Memory::Circle(bytes) if bytes.is_empty())
}

/// Bytes at their places in a stream.
fn stream(at: usize, count: usize) -> Vec<u8> {
    (at..at + count).map(|place| (place * 31 >> 3) as u8 ^ place as u8).collect()
}

#[test]
fn what_was_read_is_given_back() {
    let (mut fifo, mut written) = (Fifo::new(8 << 20), 0);
    let before = held_bytes();
    while fifo.room() > 0 {
        written += fifo.append(&stream(written, 5000));
    }
    assert_eq!((written, held_bytes() - before), (8 << 20, 8 << 20));
    let mut all = vec![0; written];
    assert_eq!(fifo.peek(0, &mut all), written);
    assert!(all == stream(0, written));
    // But for one piece, which comes next.
    fifo.consume(3 << 20);
    assert_eq!(held_bytes() - before, (5 << 20) + PIECE);
    fifo.consume(5 << 20);
    assert!(is_bare(&fifo) && held_bytes() == before);
}

#[test]
fn what_is_written_far_ahead_takes_its_own_piece() {
    let (mut fifo, before) = (Fifo::new(1 << 20), held_bytes());
    fifo.append(b"near");
    assert_eq!(fifo.write_at(1 << 19, b"far"), 3);
    assert_eq!(held_bytes() - before, 2 * PIECE);
    let mut far = [0; 3];
    assert_eq!((fifo.peek_beyond(1 << 19, &mut far), &far), (3, b"far"));
    // Where nothing was written there is nothing of others.
    let mut hole = [1; 100];
    assert_eq!((fifo.peek_beyond(1 << 18, &mut hole), hole), (100, [0; 100]));
}

#[test]
fn an_empty_one_has_no_memory_and_it_is_used_again() {
    let mut fifo = Fifo::new(65_536);
    assert_eq!(fifo.append(&[1; 3000]), 3000);
    let place = circle(&fifo).as_ptr();
    assert_eq!(circle(&fifo).len(), 4096);
    fifo.consume(3000);
    assert!(is_bare(&fifo));
    let mut other = Fifo::new(65_536);
    other.append(&[2; 4000]);
    assert_eq!(circle(&other).as_ptr(), place);
    // What came out of order keeps it.
    other.consume(3999);
    other.write_at(5, b"x");
    other.consume(1);
    assert!(other.len() == 0 && !is_bare(&other));
    assert_eq!(size_of::<Fifo>(), 32);
}

#[test]
fn a_thread_keeps_only_so_much() {
    let mut all: Vec<Fifo> = (0..40).map(|_| Fifo::new(1 << 20)).collect();
    all.iter_mut().for_each(|fifo| assert_eq!(fifo.append(&[1; 1 << 20]), 1 << 20));
    drop(all);
    let (bytes, noted, longest) = kept();
    assert_eq!((bytes, noted), (KEPT, KEPT));
    // Nor is a list of what it keeps ever more than a page.
    let small: Vec<_> = (0..2000).map(|_| borrow(1)).collect();
    small.into_iter().for_each(give);
    assert!(longest <= 4096 && kept().2 <= 4096);
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Commit(usize),
    Consume(usize),
    Peek(usize, usize),
    Resize(usize),
}

impl Step {
    fn times(self, scale: usize) -> Self {
        match self {
            Self::Write(offset, count) => Self::Write(offset * scale, count * scale),
            Self::Commit(count) => Self::Commit(count * scale),
            Self::Consume(count) => Self::Consume(count * scale),
            Self::Peek(offset, count) => Self::Peek(offset * scale, count * scale),
            Self::Resize(capacity) => Self::Resize(capacity * scale),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3000usize, 0..3000usize).prop_map(|(offset, count)| Step::Write(offset, count)),
        (0..2000usize).prop_map(|count| Step::Write(0, count)),
        (0..3000usize).prop_map(Step::Commit),
        (0..3000usize).prop_map(Step::Consume),
        (0..3000usize, 0..3000usize).prop_map(|(offset, count)| Step::Peek(offset, count)),
        (0..6000usize).prop_map(Step::Resize),
    ]
}

proptest! {
    /// The model: all bytes from the head on, `None` where nothing was written.
    #[test]
    fn it_is_a_queue_with_room_beyond(
            steps in proptest::collection::vec(step(), 0..150),
            // In a circle, and in pieces.
            scale in prop_oneof![Just(1), Just(25)],
        ) {
        let (mut fifo, mut next) = (Fifo::new(4000 * scale), 0u8);
        let (mut model, mut length, mut capacity) = (Vec::<Option<u8>>::new(), 0usize, 4000 * scale);
        for step in steps {
            match step.times(scale) {
                Step::Write(offset, count) => {
                    let bytes: Vec<u8> = (0..count).map(|i| next.wrapping_add(i as u8)).collect();
                    next = next.wrapping_add(count as u8 | 1);
                    let most = (capacity - length.min(capacity)).saturating_sub(offset).min(count);
                    prop_assert_eq!(fifo.write_at(offset, &bytes), most);
                    if most > 0 {
                        let at = length + offset;
                        model.resize(model.len().max(at + most), None);
                        for (place, byte) in model[at..].iter_mut().zip(&bytes[..most]) {
                            *place = Some(*byte);
                        }
                    }
                }
                Step::Commit(count) => {
                    fifo.commit(count);
                    length = (length + count).min(model.len());
                }
                Step::Consume(count) => {
                    fifo.consume(count);
                    let count = count.min(length);
                    model.drain(..count);
                    length -= count;
                }
                Step::Peek(offset, count) => {
                    let mut target = vec![0; count];
                    let (got, sum) = fifo.peek_summed(offset, &mut target);
                    prop_assert_eq!(got, count.min(length.saturating_sub(offset)));
                    prop_assert_eq!(sum.finish(), wire::checksum::of(&target[..got]));
                    let mut beyond = vec![0; count];
                    let more = fifo.peek_beyond(offset, &mut beyond);
                    prop_assert_eq!(more, count.min((model.len() - length).saturating_sub(offset)));
                    for (at, byte) in target[..got].iter().enumerate().map(|(i, b)| (offset + i, b))
                        .chain(beyond[..more].iter().enumerate().map(|(i, b)| (length + offset + i, b)))
                    {
                        if let Some(known) = model[at] {
                            prop_assert_eq!(known, *byte);
                        }
                    }
                }
                Step::Resize(wanted) => {
                    capacity = wanted.max(model.len());
                    prop_assert_eq!(fifo.resize(wanted), capacity);
                }
            }
            prop_assert_eq!((fifo.len(), fifo.capacity()), (length, capacity));
            prop_assert_eq!(is_bare(&fifo), fifo.extent == 0);
        }
    }
}
