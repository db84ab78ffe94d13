//! Answers that no daemon of ours gives: errors, never a panic.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod stub;

use std::os::fd::{AsFd, OwnedFd};

use millrace::{Error, Options};
use proptest::prelude::*;
use shm::attach::{Opened, Reply};
use stub::Stub;

/// Opens against a daemon whose answer was changed.
fn open(change: impl FnMut(&mut Opened, &mut Vec<OwnedFd>) + Send + 'static) -> Result<(), Error> {
    let stub = Stub::new(2);
    let client = stub.client();
    let mut change = change;
    stub.on_answer(move |_, reply, files| {
        if let Reply::Opened(opened) = reply {
            change(opened, files);
        }
    });
    let options = Options { channels: 2, slots: 16, capacity: 100, ..Options::default() };
    let opened = client.open(&options);
    if opened.is_err() {
        stub.with(|queue| assert!(queue.closed, "queues of no use are given back"));
    }
    opened.map(|_| ())
}

fn is_nonsense(result: Result<(), Error>, part: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Nonsense(_)), "{error}");
    assert!(error.to_string().contains(part), "'{part}' is not in: {error}");
}

#[test]
fn a_sound_answer_is_taken() {
    open(|_, _| {}).unwrap();
}

#[test]
fn counts_that_do_not_agree_are_refused() {
    is_nonsense(open(|_, files| drop(files.pop())), "4 descriptors instead of 5");
    is_nonsense(open(|_, files| files.clear()), "0 descriptors");
    is_nonsense(open(|opened, _| drop(opened.channels.pop())), "1 channels instead of 2");
    is_nonsense(open(|opened, _| opened.channels.clear()), "0 channels");
    is_nonsense(open(|opened, _| opened.workers = 3), "each of 3 workers");
    is_nonsense(open(|opened, _| opened.workers = u16::MAX), "each of 65535 workers");
    is_nonsense(open(|opened, _| opened.channels[1].rings.clear()), "each of 2 workers");
    is_nonsense(
        open(|opened, _| {
            opened.workers = 0;
            opened.channels.iter_mut().for_each(|channel| channel.rings.clear());
        }),
        "each of 0 workers",
    );
}

#[test]
fn rings_must_lie_within_the_segment_and_apart() {
    is_nonsense(open(|opened, _| opened.channels[1].rings[1][1].offset = 1 << 40), "within");
    is_nonsense(
        open(|opened, _| opened.channels[0].rings[0][0].offset = u64::MAX - 63),
        "beyond all memory",
    );
    is_nonsense(open(|opened, _| opened.channels[1].rings[1][1].offset += 8), "within");
    is_nonsense(open(|opened, _| opened.channels[1].rings[1][1].slots = 1 << 20), "within");
    is_nonsense(open(|opened, _| opened.channels[0].rings[0][1].offset -= 64), "same memory");
    is_nonsense(open(|opened, _| opened.channels[1].rings[1][0].offset = 0), "same memory");
    is_nonsense(open(|opened, _| opened.channels[0].rings[0][0].slots = 17), "power of two");
    is_nonsense(open(|opened, _| opened.channels[0].rings[0][0].capacity = 1), "60 to");
}

#[test]
fn files_of_other_kinds_are_refused() {
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let result = open(move |_, files| files[0] = null());
    assert!(matches!(result, Err(Error::Memory(_))), "{result:?}");
    let result = open(move |_, files| files[1] = null());
    assert!(matches!(result, Err(Error::System { .. })), "{result:?}");
    // A segment that is too short.
    let short = shm::Segment::create("short", 64).unwrap();
    let result = open(move |_, files| files[0] = short.as_fd().try_clone_to_owned().unwrap());
    is_nonsense(result, "within");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_answer_panics(
        workers in 0..4_u16,
        drop_files in 0..3_usize,
        places in proptest::collection::vec((0..8_usize, any::<u64>(), any::<u32>(), any::<u32>()), 0..3),
        small in proptest::collection::vec((0..8_usize, 0..200_u64, 0..6_u32, 50..300_u32), 0..3),
    ) {
        // It may be taken or refused; either is fine as long as it returns.
        let _ = open(move |opened, files| {
            opened.workers = workers;
            files.truncate(files.len() - drop_files);
            let mut rings: Vec<_> =
                opened.channels.iter_mut().flat_map(|channel| channel.rings.iter_mut().flatten()).collect();
            for (which, offset, slots, capacity) in &places {
                *rings[*which] = shm::attach::RingPlace { offset: *offset, slots: *slots, capacity: *capacity };
            }
            for (which, lines, power, capacity) in &small {
                *rings[*which] =
                    shm::attach::RingPlace { offset: lines * 64, slots: 1 << power, capacity: *capacity };
            }
        });
    }
}
