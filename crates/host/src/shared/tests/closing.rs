//! Sessions that end with a reset.

use super::*;

#[test]
fn what_was_written_before_a_reset_goes_before_it() {
    for is_used_again in [false, true] {
        let mut bed = Bed::connected(64);
        // SO_LINGER of 0.
        let linger = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
        bed.remote.set_option(SERVER, 1, 13, &linger).unwrap();
        assert_eq!(bed.write(b"the last words"), Ok(14));
        bed.remote.close(SERVER);
        if is_used_again {
            // The number is used again before the worker looks.
            bed.remote.open(SERVER, Domain::V4, Kind::Stream).unwrap();
        }
        bed.settle();
        assert_eq!(bed.peer_reads(100).unwrap(), b"the last words");
        assert_eq!(bed.peer_reads(100), Err(Errno::CONNRESET));
        assert!(!bed.is_broken());
    }
}

#[test]
fn a_session_that_is_closed_with_data_that_nobody_has_read_is_reset() {
    for (reads, end) in [(10, Ok(vec![])), (9, Err(Errno::CONNRESET)), (0, Err(Errno::CONNRESET))] {
        let mut bed = Bed::connected(64);
        assert_eq!(bed.peer_writes(b"a question"), Ok(10));
        bed.settle();
        if reads > 0 {
            assert_eq!(bed.read(reads).unwrap().len(), reads);
        }
        assert_eq!(bed.write(b"an answer"), Ok(9));
        bed.remote.close(SERVER);
        bed.settle();
        assert_eq!(bed.peer_reads(100).unwrap(), b"an answer");
        assert_eq!(bed.peer_reads(100), end, "{reads} bytes were read");
        assert!(!bed.is_broken());
    }
}
