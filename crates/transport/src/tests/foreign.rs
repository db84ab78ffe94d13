//! FIFOs that another process writes and reads, and which say of themselves what that process likes.

use std::cell::Cell;
use std::rc::Rc;

use super::pair::*;
use crate::*;

/// A ring whose lengths are right now and then.
#[derive(Debug)]
struct Foreign {
    ring: Ring,
    /// State of a generator; 0: honest.
    lies: Rc<Cell<u64>>,
}

impl Foreign {
    fn said(&self, truth: usize) -> usize {
        let state = self.lies.get();
        if state == 0 {
            return truth;
        }
        // xorshift64, which never comes to 0.
        let state = state ^ state << 13;
        let state = state ^ state >> 7;
        self.lies.set(state ^ state << 17);
        match state >> 40 & 7 {
            0 => 0,
            1 => truth / 2,
            2 => truth.saturating_add((state >> 8) as usize & 0xf_ffff),
            3 => usize::MAX,
            _ => truth,
        }
    }
}

impl ByteFifo for Foreign {
    fn len(&self) -> usize {
        self.said(self.ring.len())
    }

    fn room(&self) -> usize {
        self.said(self.ring.room())
    }

    fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let most = self.said(bytes.len()).min(bytes.len());
        self.ring.write_at(offset, &bytes[..most])
    }

    fn commit(&mut self, count: usize) {
        let count = self.said(count).min(self.ring.room());
        self.ring.commit(count);
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        let most = self.said(target.len()).min(target.len());
        self.ring.peek_beyond(offset, &mut target[..most])
    }

    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        let most = self.said(target.len()).min(target.len());
        self.ring.peek(offset, &mut target[..most])
    }

    fn consume(&mut self, count: usize) {
        self.ring.consume(self.said(count));
    }

    fn resize(&mut self, capacity: usize) -> usize {
        self.ring.resize(capacity)
    }
}

/// The first connection's FIFOs lie.
struct Liars {
    seed: u64,
    opened: usize,
}

impl Buffers for Liars {
    type Fifo = Foreign;

    fn open(&mut self, opening: &Opening) -> Grant<Foreign> {
        self.opened += 1;
        let seed = if self.opened == 1 { self.seed } else { 0 };
        let lies = Rc::new(Cell::new(seed));
        let fifo = |capacity| Foreign { ring: Ring::new(capacity), lies: Rc::clone(&lies) };
        Grant::Given(Pair { receive: fifo(opening.receive), transmit: fifo(opening.transmit) })
    }

    fn close(&mut self, _: ConnectionId, _: Pair<Foreign>) {}
}

#[test]
fn a_fifo_that_lies_harms_only_its_connection() {
    for seed in 1..=60 {
        let liars = |seed| Liars { seed, opened: 0 };
        let mut link = Link::with([liars(seed * 2), liars(seed * 3)]);
        let odd = link.connect(&Options::default(), &Options::default());
        let good = link.connect(&Options::default(), &Options::default());
        let (data, mut received) = (pattern(40_000), Vec::new());
        let mut buffer = vec![0; 65_536];
        for part in data.chunks(1000) {
            assert_eq!(link.stacks[CLIENT].send(good[CLIENT], part), Ok(part.len()));
            for side in [CLIENT, SERVER] {
                let _ = link.stacks[side].send(odd[side], part);
                let _ = link.stacks[side].recv(odd[side], &mut buffer);
            }
            link.run(20_000_000);
            let count = link.stacks[SERVER].recv(good[SERVER], &mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
        }
        link.run(1_000_000_000);
        let count = link.stacks[SERVER].recv(good[SERVER], &mut buffer).unwrap();
        received.extend_from_slice(&buffer[..count]);
        assert!(received == data, "seed {seed}");
        for side in [CLIENT, SERVER] {
            link.stacks[side].abort(odd[side]);
            link.stacks[side].abort(good[side]);
        }
        link.run(200_000_000_000);
        assert_eq!(
            [0, 1].map(|side: usize| link.stacks[side].connections()),
            [0, 0],
            "seed {seed}"
        );
    }
}

#[test]
fn a_transmit_buffer_grows_with_the_window() {
    let mut link = Link::new();
    let plain = link.connect(&Options::default(), &Options::default());
    let chosen = Options { transmit_buffer: 100_000, ..Options::default() };
    let fixed = link.connect(&chosen, &Options::default());
    let (data, mut buffer) = (pattern(600_000), vec![0; 1_000_000]);
    for _ in 0..200 {
        for ids in [plain, fixed] {
            let _ = link.stacks[CLIENT].send(ids[CLIENT], &data);
        }
        link.run(10_000_000);
        for ids in [plain, fixed] {
            let _ = link.stacks[SERVER].recv(ids[SERVER], &mut buffer);
        }
    }
    let capacity = |link: &mut Link, id| {
        link.stacks[CLIENT].transmit_fifo(id).map_or(0, |fifo| fifo.capacity())
    };
    assert!(capacity(&mut link, plain[CLIENT]) > 262_144);
    assert_eq!(capacity(&mut link, fixed[CLIENT]), 100_000);
}
