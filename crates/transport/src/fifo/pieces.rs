//! Memory of a FIFO that holds much, in pieces: growth takes one more and moves nothing.

use std::collections::VecDeque;
use std::marker::PhantomData;

use wire::checksum::Sum;

/// Bytes of a piece.
pub const PIECE: usize = 16_384;

/// Pieces that are listed together: their list is a page.
const LISTED: usize = 4096 / size_of::<Box<[u8]>>();

/// What is read where nothing was written.
static NOTHING: [u8; PIECE] = [0; PIECE];

/// Where pieces come from, and where they go.
pub trait PieceMemory {
    /// A piece of [`PIECE`] bytes. What it holds means nothing.
    fn borrow() -> Box<[u8]>;

    /// Takes one back.
    fn give(piece: Box<[u8]>);
}

/// A list of pieces; those that nothing was written to are empty.
type List = Box<[Box<[u8]>; LISTED]>;

/// Bytes in the order of the stream; what is read begins in the first piece. The list of pieces comes by pages, only where
/// something was written, and a page stands for 4 MiB: it is never in the way either.
pub struct Pieces<M> {
    lists: VecDeque<Option<List>>,
    /// Pieces of the first list that are gone.
    gone: usize,
    /// Pieces from there to the last that was written to.
    count: usize,
    /// The last that was used up.
    spare: Box<[u8]>,
    memory: PhantomData<fn() -> M>,
}

impl<M> std::fmt::Debug for Pieces<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("count", &self.count).finish_non_exhaustive()
    }
}

impl<M: PieceMemory> Pieces<M> {
    /// With `first`, which is whole.
    #[must_use]
    pub fn new(first: Box<[u8]>) -> Self {
        let mut list = none();
        if let Some(place) = list.first_mut() {
            *place = first;
        }
        let lists = [Some(list)].into();
        Self { lists, gone: 0, count: 1, spare: Box::default(), memory: PhantomData }
    }

    /// Bytes up to the end of the last piece that was written to.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.count * PIECE
    }

    /// Bytes of memory that it has at most: as if something had been written to each piece.
    pub(super) fn memory_bytes(&self) -> usize {
        self.reach() + self.spare.len() + self.lists.len() * LISTED * size_of::<Box<[u8]>>()
    }

    /// What lies at `at`, to the end of its piece.
    fn run(&self, at: usize) -> &[u8] {
        let number = self.gone + at / PIECE;
        let list = self.lists.get(number / LISTED).and_then(Option::as_ref);
        let piece = list.and_then(|list| list.get(number % LISTED));
        let piece = piece.filter(|piece| !piece.is_empty());
        piece.map_or(&NOTHING[..], |piece| piece).get(at % PIECE..).unwrap_or(&[])
    }

    /// The byte at `at`.
    #[must_use]
    pub fn first(&self, at: usize) -> Option<&u8> {
        self.run(at).first()
    }

    /// The piece for what is written at `at`.
    fn piece_mut(&mut self, at: usize) -> Option<&mut Box<[u8]>> {
        let number = self.gone + at / PIECE;
        if self.lists.len() <= number / LISTED {
            self.lists.resize_with(number / LISTED + 1, || None);
        }
        self.count = self.count.max(at / PIECE + 1);
        let list = self.lists.get_mut(number / LISTED)?.get_or_insert_with(none);
        let piece = list.get_mut(number % LISTED)?;
        if piece.is_empty() {
            let spare = std::mem::take(&mut self.spare);
            *piece = if spare.is_empty() { M::borrow() } else { spare };
        }
        Some(piece)
    }

    /// Writes at `at`.
    #[inline(never)]
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let (mut at, mut bytes) = (at, bytes);
        while !bytes.is_empty() {
            let Some(piece) = self.piece_mut(at) else { return };
            let run = piece.get_mut(at % PIECE..).unwrap_or_default();
            let (now, rest) = bytes.split_at(run.len().min(bytes.len()));
            if let Some(run) = run.get_mut(..now.len()) {
                run.copy_from_slice(now);
            }
            at += now.len();
            bytes = rest;
        }
    }

    /// Fills `target` with what lies at `at`: zeros where nothing was ever written.
    #[inline(never)]
    pub fn read(&self, at: usize, target: &mut [u8]) {
        self.read_with(at, target, |_, run, part| part.copy_from_slice(run));
    }

    /// The same, with the sum of what was copied.
    #[inline(never)]
    pub fn read_summed(&self, at: usize, target: &mut [u8]) -> Sum {
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
    pub fn advance(&mut self, head: usize) -> usize {
        let mut head = head;
        while head >= PIECE {
            head -= PIECE;
            self.pop();
        }
        head
    }

    /// Takes the first piece off.
    fn pop(&mut self) {
        let first = self.lists.front_mut().and_then(Option::as_mut);
        let piece = first.and_then(|list| list.get_mut(self.gone)).map(std::mem::take);
        if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
            let before = std::mem::replace(&mut self.spare, piece);
            give::<M>(before);
        }
        self.gone += 1;
        self.count = self.count.saturating_sub(1);
        if self.gone == LISTED {
            self.lists.pop_front();
            self.gone = 0;
        }
    }

    /// Gives all of them back.
    pub fn release(self) {
        give::<M>(self.spare);
        self.lists.into_iter().flatten().flat_map(|list| *list).for_each(give::<M>);
    }

    /// The pieces, those that nothing was written to too.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &[u8]> {
        let place = |number: usize| self.lists.get(number / LISTED)?.as_ref()?.get(number % LISTED);
        (0..self.count).map(move |number| place(self.gone + number).map_or(&[][..], |piece| piece))
    }
}

/// A list without pieces.
fn none() -> List {
    Box::new(std::array::from_fn(|_| Box::default()))
}

fn give<M: PieceMemory>(piece: Box<[u8]>) {
    if !piece.is_empty() {
        M::give(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fresh;

    impl PieceMemory for Fresh {
        fn borrow() -> Box<[u8]> {
            vec![0; PIECE].into()
        }

        fn give(_: Box<[u8]>) {}
    }

    #[test]
    fn a_list_of_pieces_is_a_page() {
        assert_eq!(size_of::<[Box<[u8]>; LISTED]>(), 4096);
        let mut pieces = Pieces::<Fresh>::new(Fresh::borrow());
        // A gigabyte ahead: one list and one piece more, and a word for each list between.
        pieces.write((1 << 30) - 1, &[7]);
        assert_eq!(pieces.lists.iter().flatten().count(), 2);
        assert!(pieces.lists.capacity() * size_of::<Option<List>>() <= 4096);
        assert_eq!(pieces.all().filter(|piece| !piece.is_empty()).count(), 2);
        assert_eq!((pieces.first((1 << 30) - 1), pieces.reach()), (Some(&7), 1 << 30));
        // All the way there.
        assert_eq!(pieces.advance((1 << 30) - 1), PIECE - 1);
        assert_eq!((pieces.first(PIECE - 1), pieces.reach()), (Some(&7), PIECE));
        assert_eq!(pieces.lists.len(), 1);
    }
}
