//! Memory of a FIFO that holds much, in pieces: growth takes one more and moves nothing.

use std::collections::VecDeque;

use wire::checksum::Sum;

use super::pool::{PIECE, borrow, give};

/// What is read where nothing was written.
static NOTHING: [u8; PIECE] = [0; PIECE];

/// Bytes in the order of the stream; what is read begins in the first piece. Pieces that nothing was written to are
/// empty.
#[derive(Debug, Default)]
pub(super) struct Pieces(VecDeque<Box<[u8]>>);

impl Pieces {
    /// With `first`, which is whole.
    pub(super) fn new(first: Box<[u8]>) -> Self {
        Self([first].into())
    }

    /// What lies at `at`, to the end of its piece.
    fn run(&self, at: usize) -> &[u8] {
        let piece = self.0.get(at / PIECE).filter(|piece| !piece.is_empty());
        piece.map_or(&NOTHING[..], |piece| piece).get(at % PIECE..).unwrap_or(&[])
    }

    pub(super) fn first(&self, at: usize) -> Option<&u8> {
        self.run(at).first()
    }

    #[inline(never)]
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let pieces = (at + bytes.len()).div_ceil(PIECE);
        if pieces > self.0.len() {
            self.0.resize_with(pieces, Box::default);
        }
        let (mut at, mut bytes) = (at, bytes);
        while let Some(piece) = self.0.get_mut(at / PIECE).filter(|_| !bytes.is_empty()) {
            if piece.is_empty() {
                *piece = borrow(PIECE);
            }
            let run = piece.get_mut(at % PIECE..).unwrap_or_default();
            let (now, rest) = bytes.split_at(run.len().min(bytes.len()));
            if let Some(run) = run.get_mut(..now.len()) {
                run.copy_from_slice(now);
            }
            at += now.len();
            bytes = rest;
        }
    }

    /// Fills `target` with what lies at `at`.
    #[inline(never)]
    pub(super) fn read(&self, at: usize, target: &mut [u8]) {
        self.read_with(at, target, |_, run, part| part.copy_from_slice(run));
    }

    /// The same, with the sum of what was copied.
    #[inline(never)]
    pub(super) fn read_summed(&self, at: usize, target: &mut [u8]) -> Sum {
        let mut sum = Sum::new();
        self.read_with(at, target, |done, run, part| {
            sum = sum.join(Sum::new().copy(run, part), done);
        });
        sum
    }

    /// `copy` is told how many bytes are copied already.
    fn read_with(
        &self,
        at: usize,
        target: &mut [u8],
        mut copy: impl FnMut(usize, &[u8], &mut [u8]),
    ) {
        let (mut target, mut done) = (target, 0);
        while !target.is_empty() {
            let run = self.run(at + done);
            let (part, rest) = target.split_at_mut(run.len().min(target.len()));
            copy(done, run.get(..part.len()).unwrap_or(&[]), part);
            done += part.len();
            target = rest;
        }
    }

    /// What is read begins at `head` now: pieces before it are given back. Gives where that is.
    #[inline(never)]
    pub(super) fn advance(&mut self, head: usize) -> usize {
        let mut head = head;
        while head >= PIECE {
            head -= PIECE;
            let piece = self.0.pop_front().unwrap_or_default();
            if !piece.is_empty() {
                give(piece);
            }
        }
        head
    }

    /// Gives all of them back.
    pub(super) fn release(self) {
        self.0.into_iter().filter(|piece| !piece.is_empty()).for_each(give);
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &VecDeque<Box<[u8]>> {
        &self.0
    }
}
