//! Memory of a large ring, in pieces.

use std::collections::VecDeque;

use wire::checksum::Sum;

/// Bytes of a piece.
pub(super) const PIECE: usize = 16_384;

/// Bytes in the order of the stream; what is read begins in the first piece. Pieces that nothing was written to are
/// empty.
#[derive(Debug)]
pub(super) struct Pieces(VecDeque<Vec<u8>>);

impl Pieces {
    /// With `first`, which is whole, and places for `capacity` bytes without moving the list of pieces.
    pub(super) fn new(first: Vec<u8>, capacity: usize) -> Self {
        // The data may begin anywhere in the first.
        let mut pieces = VecDeque::with_capacity(capacity.div_ceil(PIECE) + 1);
        pieces.push_back(first);
        Self(pieces)
    }

    /// Bytes that have a place.
    pub(super) fn len(&self) -> usize {
        self.0.len() * PIECE
    }

    /// Places for `needed` bytes.
    pub(super) fn reserve(&mut self, needed: usize) {
        self.0.resize_with(needed.div_ceil(PIECE).max(self.0.len()), Vec::new);
    }

    /// What lies at `at`, to the end of its piece.
    fn run(&self, at: usize) -> &[u8] {
        self.0.get(at / PIECE).and_then(|piece| piece.get(at % PIECE..)).unwrap_or(&[])
    }

    pub(super) fn first(&self, at: usize) -> Option<&u8> {
        self.run(at).first()
    }

    /// Writes at `at`, where there are places.
    #[inline(never)]
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let (mut at, mut bytes) = (at, bytes);
        while let Some(piece) = self.0.get_mut(at / PIECE).filter(|_| !bytes.is_empty()) {
            if piece.is_empty() {
                *piece = vec![0; PIECE];
            }
            let run = piece.get_mut(at % PIECE..).unwrap_or_default();
            let count = run.len().min(bytes.len());
            let (now, rest) = bytes.split_at(count);
            run.iter_mut().zip(now).for_each(|(byte, value)| *byte = *value);
            at += count;
            bytes = rest;
        }
    }

    /// Copies from `at` on. Gives bytes copied: up to where nothing was ever written.
    #[inline(never)]
    pub(super) fn read(&self, at: usize, target: &mut [u8]) -> usize {
        self.read_with(at, target, |_, run, part| part.copy_from_slice(run))
    }

    /// The same, with the sum of what was copied.
    #[inline(never)]
    pub(super) fn read_summed(&self, at: usize, target: &mut [u8]) -> (usize, Sum) {
        let mut sum = Sum::new();
        let copied = self.read_with(at, target, |done, run, part| {
            sum = sum.join(Sum::new().copy(run, part), done);
        });
        (copied, sum)
    }

    /// `copy` is told how many bytes are copied already.
    fn read_with(
        &self,
        at: usize,
        target: &mut [u8],
        mut copy: impl FnMut(usize, &[u8], &mut [u8]),
    ) -> usize {
        let (mut target, mut done) = (target, 0);
        loop {
            let run = self.run(at + done);
            let (part, rest) = target.split_at_mut(run.len().min(target.len()));
            let Some(run) = run.get(..part.len()).filter(|run| !run.is_empty()) else {
                return done;
            };
            copy(done, run, part);
            done += run.len();
            target = rest;
        }
    }

    /// What is read begins at `head` now. Gives where that is: pieces before it hold what comes later.
    #[inline(never)]
    pub(super) fn advance(&mut self, head: usize) -> usize {
        let mut head = head;
        while head >= PIECE {
            head -= PIECE;
            let piece = self.0.pop_front();
            self.0.extend(piece);
        }
        head
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &VecDeque<Vec<u8>> {
        &self.0
    }
}
