//! Segments sent in one go are limited, and shared among connections.

use super::pair::*;
use crate::*;

/// Counts segments, and forgets them.
#[derive(Default)]
struct Counter {
    ports: Vec<u16>,
    buffer: Vec<u8>,
}

impl Sink for Counter {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.buffer = vec![0; length];
        Some(&mut self.buffer)
    }

    fn send(&mut self, _: Departure) {
        self.ports.push(u16::from_be_bytes([self.buffer[20], self.buffer[21]]));
    }
}

#[test]
fn a_budget_is_kept_and_shared_fairly() {
    let options = Options { initial_window: 200, ..Options::default() };
    let mut link = Link::new();
    let greedy = link.connect(&options, &options);
    let data = pattern(44 * 1448);
    let modest: Vec<_> = (0..3).map(|_| link.connect(&options, &options)[CLIENT]).collect();
    assert_eq!(link.stacks[CLIENT].send(greedy[CLIENT], &data), Ok(data.len()));
    for id in modest {
        assert_eq!(link.stacks[CLIENT].send(id, b"one"), Ok(3));
    }
    let (now, mut counter) = (link.now, Counter::default());
    // One turn of the greedy one, then the others' turns, then again the greedy one's.
    assert_eq!(link.stacks[CLIENT].flush_within(now, 40, &mut counter), 0);
    let runs: Vec<usize> = counter.ports.chunk_by(|a, b| a == b).map(<[u16]>::len).collect();
    assert_eq!(runs, [32, 1, 1, 1, 5]);
    assert!(link.stacks[CLIENT].is_flush_due());
    assert_eq!(link.stacks[CLIENT].flush_within(now, 1000, &mut counter), 1000 - 7);
    assert_eq!(counter.ports.len(), 47);
    assert!(!link.stacks[CLIENT].is_flush_due());
    assert_eq!(link.stacks[CLIENT].counters().dropped(Reason::SinkFull), 0);
}
