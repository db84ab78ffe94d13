//! What a process knows without asking its worker.

use super::*;

#[test]
fn nobody_is_asked_about_the_end_of_data() {
    let mut bed = Bed::connected(64);
    bed.peer_writes(b"bye").unwrap();
    bed.peer(|peer, _| peer.shutdown(CLIENT, How::Write).unwrap());
    bed.settle();
    unasked(&mut bed, |bed| {
        assert_eq!(bed.read(9).unwrap(), b"bye");
        assert_eq!((bed.read(9), bed.read(9)), (Ok(vec![]), Ok(vec![])));
    });
    assert!(!bed.is_broken());
}

#[test]
fn the_end_of_data_comes_behind_what_waits_in_the_stack() {
    let mut bed = Bed::connected(16);
    // More than there are chunks for.
    let (data, mut got) = (bytes(100_000), Vec::new());
    let sent = bed.peer_writes(&data).unwrap();
    bed.settle();
    bed.peer(|peer, _| peer.shutdown(CLIENT, How::Write).unwrap());
    bed.settle();
    assert!(bed.remote.mask(SERVER).has(Mask::RDHUP) && bed.remote.pending(SERVER).unwrap() < sent);
    for _ in 0..1000 {
        match bed.read(50_000) {
            Ok(some) if some.is_empty() => break,
            Ok(some) => got.extend(some),
            Err(error) => assert_eq!(error, Errno::AGAIN),
        }
    }
    assert!(got == data[..sent] && !bed.is_broken());
}
