//! Chunks of sessions that end or are idle, and who waits for some.

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

fn other_writes(bed: &mut Bed, data: &[u8]) -> Result<usize, Errno> {
    bed.remote.send(OTHER, &[IoSlice::new(data)], Outgoing::default())
}

/// The peer reads all that it is sent.
fn peer_reads_all(bed: &mut Bed, count: usize) {
    let mut got = 0;
    for _ in 0..1000 {
        bed.settle();
        got += bed.peer_reads(50_000).unwrap_or_default().len();
        if got == count {
            return;
        }
    }
    panic!("{got} of {count} bytes");
}

#[test]
fn what_was_written_before_a_close_is_not_written_over() {
    let mut bed = with_another(64);
    assert_eq!(bed.write(b"of this one"), Ok(11));
    bed.remote.close(SERVER);
    // Before the worker looks.
    assert_eq!(other_writes(&mut bed, b"of the other"), Ok(12));
    bed.settle();
    assert_eq!(bed.peer_reads(100).unwrap(), b"of this one");
}

#[test]
fn a_session_that_ends_gives_its_chunks_back_when_the_worker_has_read_them() {
    let mut bed = with_another(16);
    let all = bytes(16 * CHUNK);
    assert_eq!(bed.write(&all), Ok(all.len()));
    bed.remote.close(SERVER);
    assert_eq!(other_writes(&mut bed, b"x"), Err(Errno::AGAIN));
    bed.settle();
    assert_eq!(other_writes(&mut bed, &all), Ok(all.len()));
    assert!(!bed.is_broken());
}

#[test]
fn chunks_come_back_when_the_worker_has_come_to_the_next_session_at_a_number() {
    for (is_looked_at, is_closed) in [(true, false), (false, false), (false, true)] {
        let mut bed = with_another(16);
        let template = bed.remote.open_with(Id(11), Domain::V4, &[]).unwrap();
        let all = bytes(16 * CHUNK);
        assert_eq!(bed.write(&all), Ok(all.len()));
        bed.remote.close(SERVER);
        bed.remote.open_like(SERVER, &template).unwrap();
        if is_closed {
            bed.remote.close(SERVER);
        }
        assert_eq!(other_writes(&mut bed, b"x"), Err(Errno::AGAIN), "the worker has not read it");
        bed.settle();
        if is_looked_at {
            assert!(bed.remote.mask(SERVER).has(Mask::HUP));
        }
        assert_eq!(other_writes(&mut bed, &all), Ok(all.len()));
        assert!(!bed.is_broken());
    }
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

#[test]
fn sessions_that_come_and_go_stand_in_the_lists_once() {
    let mut bed = Bed::connected(64);
    for _ in 0..5 {
        bed.peer_writes(b"GET").unwrap();
        bed.settle();
        assert_eq!(bed.read(10).unwrap(), b"GET");
        assert_eq!(bed.write(b"200"), Ok(3));
        peer_reads_all(&mut bed, 3);
        bed.remote.close(SERVER);
        bed.peer(|peer, _| peer.close(CLIENT));
        bed.settle();
        meet(&mut bed, CLIENT, SERVER);
    }
    assert_eq!(bed.listed(), (1, 1));
}

#[test]
fn who_has_written_a_part_is_told_of_room() {
    let mut bed = Bed::connected(64);
    let data = bytes(200_000);
    let written = bed.write(&data).unwrap();
    assert!(written < data.len());
    peer_reads_all(&mut bed, written);
    assert!(bed.told(SERVER).has(Mask::OUT));
}

#[test]
fn without_a_chunk_nobody_is_told_of_room() {
    let mut bed = with_another(16);
    let all = bytes(16 * CHUNK);
    assert_eq!(bed.write(&all), Ok(all.len()));
    for _ in 0..2 {
        assert!(!bed.remote.mask(OTHER).has(Mask::OUT) && bed.remote.is_starving());
    }
    peer_reads_all(&mut bed, all.len());
    assert!(bed.told(OTHER).has(Mask::OUT) && bed.remote.mask(OTHER).has(Mask::OUT));
    assert_eq!(other_writes(&mut bed, b"x"), Ok(1));
}

#[test]
fn a_write_has_the_chunks_that_idle_sessions_keep() {
    let mut bed = with_another(16);
    let most = bytes(15 * CHUNK);
    assert_eq!(bed.write(&most), Ok(most.len()));
    peer_reads_all(&mut bed, most.len());
    assert_eq!(other_writes(&mut bed, &bytes(2 * CHUNK)), Ok(2 * CHUNK));
}
