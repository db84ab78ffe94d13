use super::*;
use proptest::prelude::*;

#[test]
fn holds_what_comes_out_of_order() {
    let mut ring = Ring::new(8);
    assert_eq!(ring.append(b"abc"), 3);
    assert_eq!(ring.write_at(2, b"fgh"), 3);
    assert_eq!(ring.write_at(0, b"de"), 2);
    assert_eq!(ring.write_at(5, b"i"), 0);
    ring.commit(5);
    let mut all = [0; 8];
    assert_eq!(ring.peek(0, &mut all), 8);
    assert_eq!(&all, b"abcdefgh");
}

/// Bytes at their places in a stream.
fn stream(at: usize, count: usize) -> Vec<u8> {
    (at..at + count).map(|place| (place * 31 >> 3) as u8 ^ place as u8).collect()
}

#[test]
fn growth_moves_a_piece_at_most() {
    let mut ring = Ring::new(8 << 20);
    let (mut pieces, mut written) = (Vec::new(), 0);
    while ring.room() > 0 {
        written += ring.append(&stream(written, 5000));
        // Where pieces are: none is ever copied.
        let Memory::Pieces(all) = &ring.memory else { continue };
        let now: Vec<_> = all.all().map(|piece| piece.as_ptr()).collect();
        assert!(now.starts_with(&pieces), "after {written}");
        pieces = now;
    }
    let Memory::Pieces(pieces) = &ring.memory else { panic!("it is large") };
    assert!(pieces.all().all(|piece| piece.len() == PIECE));
    let mut all = vec![0; written];
    assert_eq!(ring.read(&mut all), 8 << 20);
    assert!(all == stream(0, written));
}

#[test]
fn what_is_written_far_ahead_takes_its_own_piece() {
    let mut ring = Ring::new(1 << 20);
    assert_eq!(ring.write_at(1 << 19, b"far"), 3);
    let Memory::Pieces(pieces) = &ring.memory else { panic!("it is large") };
    assert_eq!(pieces.all().filter(|piece| !piece.is_empty()).count(), 2);
    let mut far = [0; 3];
    assert_eq!((ring.peek_beyond(1 << 19, &mut far), &far), (3, b"far"));
    // Where nothing was written there are zeros, whatever is made readable.
    ring.commit(1 << 18);
    let mut all = vec![1; 1 << 18];
    assert_eq!(ring.peek(0, &mut all), 1 << 18);
    assert!(all.iter().all(|byte| *byte == 0));
}

#[test]
fn an_empty_ring_begins_anew_unless_something_lies_beyond() {
    let mut ring = Ring::new(64);
    for round in 0..9u8 {
        assert_eq!(ring.append(&[round; 40]), 40);
        let Memory::Circle(bytes) = &ring.memory else { panic!("it is small") };
        // Always in the same place: one run, near in the cache.
        assert_eq!((bytes.len(), &bytes[..40]), (64, &[round; 40][..]));
        assert_eq!(ring.read(&mut [0; 64]), 40);
    }
    let mut read = [0; 64];
    ring.append(b"abcde");
    assert_eq!((ring.write_at(3, b"ij"), ring.read(&mut read)), (2, 5));
    assert_eq!(ring.write_at(0, b"fgh"), 3);
    ring.commit(5);
    assert_eq!((ring.read(&mut read), &read[..5]), (5, &b"fghij"[..]));
}

proptest! {
    #[test]
    fn a_summed_copy_is_the_copy(head in 0..64usize, count in 0..64usize, offset in 0..64usize, length in 0..80usize) {
        let mut ring = Ring::new(64);
        ring.append(&[0; 64]);
        ring.consume(64 - head);
        ring.consume(head);
        ring.append(&(0..count as u8).map(|byte| byte ^ 0xa5).collect::<Vec<_>>());
        let (mut plain, mut summed) = (vec![0; length], vec![0; length]);
        let copied = ring.peek(offset, &mut plain);
        let (also, sum) = ring.peek_summed(offset, &mut summed);
        prop_assert_eq!((copied, &plain), (also, &summed));
        prop_assert_eq!(sum.finish(), wire::checksum::of(&plain[..copied]));
    }

    #[test]
    fn is_a_queue_of_pieces(
        steps in proptest::collection::vec((0..4u8, 0..50_000usize, 0..100_000usize), 0..60),
    ) {
        let mut ring = Ring::new(200_000);
        let (mut read, mut written) = (0, 0);
        for (what, count, offset) in steps {
            match what {
                0 => written += ring.append(&stream(written, count)),
                1 => {
                    // Out of order, and the same again in order later.
                    ring.write_at(offset, &stream(written + offset, count));
                    let (start, room) = (offset, ring.room().saturating_sub(offset));
                    let mut ahead = vec![0; count.min(room)];
                    let copied = ring.peek_beyond(start, &mut ahead);
                    prop_assert_eq!(copied, ahead.len());
                    prop_assert!(ahead == stream(written + offset, copied));
                }
                2 => {
                    let mut target = vec![0; count];
                    let copied = ring.read(&mut target);
                    prop_assert_eq!(copied, count.min(written - read));
                    prop_assert!(target[..copied] == stream(read, copied));
                    read += copied;
                }
                _ => {
                    let (mut plain, mut summed) = (vec![0; count], vec![0; count]);
                    let copied = ring.peek(offset, &mut plain);
                    let (also, sum) = ring.peek_summed(offset, &mut summed);
                    prop_assert!((copied, &plain) == (also, &summed));
                    prop_assert_eq!(sum.finish(), wire::checksum::of(&plain[..copied]));
                }
            }
            prop_assert_eq!(ring.len(), written - read);
        }
    }

    #[test]
    fn is_a_queue(steps in proptest::collection::vec((any::<bool>(), 0..40usize), 0..200)) {
        let (mut ring, mut model, mut next) = (Ring::new(64), Vec::new(), 0u8);
        for (write, count) in steps {
            if write {
                let bytes: Vec<u8> = (0..count).map(|i| next.wrapping_add(i as u8)).collect();
                let taken = ring.append(&bytes);
                prop_assert_eq!(taken, count.min(64 - model.len()));
                next = next.wrapping_add(taken as u8);
                model.extend(&bytes[..taken]);
            } else {
                let mut target = vec![0; count];
                let read = ring.read(&mut target);
                prop_assert_eq!(read, count.min(model.len()));
                let expected: Vec<u8> = model.drain(..read).collect();
                prop_assert_eq!(&target[..read], &expected[..]);
            }
            prop_assert_eq!(ring.len(), model.len());
        }
    }
}
