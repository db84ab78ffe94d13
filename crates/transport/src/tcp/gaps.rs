//! What arrived out of order, and what the peer is told of it (RFC 2018, RFC 2883).

use crate::sequence::Seq;

/// Pieces kept at most: each costs 12 bytes, and a peer decides how many there are.
const MAXIMUM: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: Seq,
    end: Seq,
    /// Counts arrivals: the highest is the latest.
    touched: u32,
}

/// Pieces beyond RCV.NXT; nothing but a word while there are none.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Option<Box<Pieces>>);

impl Gaps {
    /// Whether everything is in order.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|pieces| pieces.pieces.is_empty())
    }

    /// Whether there is something to tell.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a piece; gives whether it could be kept. What was there before is told as duplicate.
    pub(crate) fn insert(&mut self, start: Seq, end: Seq) -> bool {
        self.0.get_or_insert_default().insert(start, end)
    }

    /// RCV.NXT has come to `next`: gives where it may go on to, since the data is there.
    pub(crate) fn advance(&mut self, next: Seq) -> Seq {
        let next = self.0.as_mut().map_or(next, |pieces| pieces.advance(next));
        self.tidy();
        next
    }

    /// Notes data that was received before, to be told once.
    pub(crate) fn note_duplicate(&mut self, start: Seq, end: Seq) {
        self.0.get_or_insert_default().duplicate = Some((start, end));
    }

    /// The blocks to tell: a duplicate first, then the latest pieces.
    pub(crate) fn take_blocks(&mut self) -> ([(Seq, Seq); 4], usize) {
        let none = ([(Seq(0), Seq(0)); 4], 0);
        let blocks = self.0.as_mut().map_or(none, |pieces| pieces.take_blocks());
        self.tidy();
        blocks
    }

    fn tidy(&mut self) {
        if self.0.as_ref().is_some_and(|all| all.pieces.is_empty() && all.duplicate.is_none()) {
            self.0 = None;
        }
    }
}

/// Pieces apart from each other, in order.
#[derive(Debug, Default)]
struct Pieces {
    pieces: Vec<Piece>,
    arrivals: u32,
    duplicate: Option<(Seq, Seq)>,
}

impl Pieces {
    fn insert(&mut self, start: Seq, end: Seq) -> bool {
        let first = self.pieces.partition_point(|piece| piece.end.before(start));
        let mut merged = Piece { start, end, touched: self.arrivals.wrapping_add(1) };
        let mut last = first;
        while let Some(piece) = self.pieces.get(last).filter(|piece| !piece.start.after(end)) {
            let overlap = (piece.start.max(start), piece.end.min(end));
            if overlap.0.before(overlap.1) && self.duplicate.is_none() {
                self.duplicate = Some(overlap);
            }
            merged.start = merged.start.min(piece.start);
            merged.end = merged.end.max(piece.end);
            last += 1;
        }
        if first == last && self.pieces.len() >= MAXIMUM {
            return false;
        }
        self.arrivals = merged.touched;
        self.pieces.splice(first..last, [merged]);
        true
    }

    fn advance(&mut self, next: Seq) -> Seq {
        let mut next = next;
        let mut taken = 0;
        for piece in &self.pieces {
            if piece.start.after(next) {
                break;
            }
            next = next.max(piece.end);
            taken += 1;
        }
        self.pieces.drain(..taken);
        next
    }

    fn take_blocks(&mut self) -> ([(Seq, Seq); 4], usize) {
        let mut blocks = [(Seq(0), Seq(0)); 4];
        let mut count = 0;
        if let Some(duplicate) = self.duplicate.take() {
            blocks[0] = duplicate;
            count = 1;
        }
        let mut below = None;
        while let Some(place) = blocks.get_mut(count) {
            let age = |piece: &Piece| self.arrivals.wrapping_sub(piece.touched);
            let next = self
                .pieces
                .iter()
                .filter(|piece| below.is_none_or(|bound| age(piece) > bound))
                .min_by_key(|piece| age(piece));
            let Some(piece) = next else { break };
            below = Some(age(piece));
            *place = (piece.start, piece.end);
            count += 1;
        }
        (blocks, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(gaps: &mut Gaps) -> Vec<(u32, u32)> {
        let (blocks, count) = gaps.take_blocks();
        blocks[..count].iter().map(|(start, end)| (start.0, end.0)).collect()
    }

    #[test]
    fn tells_the_latest_first() {
        let mut gaps = Gaps::default();
        assert!(gaps.insert(Seq(100), Seq(200)));
        assert!(gaps.insert(Seq(300), Seq(400)));
        assert_eq!(blocks(&mut gaps), [(300, 400), (100, 200)]);
        assert!(gaps.insert(Seq(200), Seq(250)));
        assert_eq!(blocks(&mut gaps), [(100, 250), (300, 400)]);
        assert_eq!(gaps.advance(Seq(100)), Seq(250));
        assert_eq!(blocks(&mut gaps), [(300, 400)]);
        assert_eq!(gaps.advance(Seq(299)), Seq(299));
        assert!(gaps.insert(Seq(250), Seq(300)));
        assert_eq!(gaps.advance(Seq(250)), Seq(400));
        assert!(gaps.is_empty());
    }

    #[test]
    fn tells_duplicates_once() {
        let mut gaps = Gaps::default();
        assert!(gaps.insert(Seq(100), Seq(200)));
        assert!(gaps.insert(Seq(150), Seq(250)));
        assert_eq!(blocks(&mut gaps), [(150, 200), (100, 250)]);
        assert_eq!(blocks(&mut gaps), [(100, 250)]);
        gaps.note_duplicate(Seq(10), Seq(20));
        assert_eq!(blocks(&mut gaps), [(10, 20), (100, 250)]);
    }

    #[test]
    fn is_bounded() {
        let mut gaps = Gaps::default();
        let kept = (0..1000).filter(|i| gaps.insert(Seq(i * 10), Seq(i * 10 + 5))).count();
        assert_eq!(kept, MAXIMUM);
        assert!(gaps.insert(Seq(5), Seq(10)));
    }
}
