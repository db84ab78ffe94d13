//! Chunks of sessions that end.

use super::bed::LISTENER;
use super::*;

const CHUNK: usize = shm::fifo::CHUNK as usize;
/// Another connection of the peer's, on both sides.
const OTHER_CLIENT: Id = Id(9);
const OTHER: Id = Id(10);

/// The peer connects, and the process accepts.
fn meet(bed: &mut Bed, client: Id, server: Id) {
    bed.peer(|peer, now| {
        peer.open(client, Domain::V4, Kind::Stream).unwrap();
        let begun = peer.connect(client, now, at(2, 0).ip(), at(1, 80));
        assert_eq!(begun, Err(Errno::INPROGRESS));
    });
    bed.settle();
    bed.remote.accept(LISTENER, server).unwrap();
}

fn with_another(chunks: u32) -> Bed {
    let mut bed = Bed::connected(chunks);
    meet(&mut bed, OTHER_CLIENT, OTHER);
    bed
}

#[test]
fn a_worker_that_looks_for_chunks_passes_over_sessions_that_have_ended() {
    let mut bed = with_another(16);
    bed.peer_writes(b"x").unwrap();
    bed.settle();
    assert_eq!(bed.read(10).unwrap(), b"x");
    bed.remote.close(SERVER);
    bed.settle();
    bed.peer(|peer, _| {
        peer.send(OTHER_CLIENT, &[IoSlice::new(&bytes(100_000))], Outgoing::default()).unwrap()
    });
    bed.settle();
    bed.settle();
    assert_eq!(bed.remote.pending(OTHER), Ok(16 * CHUNK), "all that there are");
    assert!(!bed.is_broken());
}
