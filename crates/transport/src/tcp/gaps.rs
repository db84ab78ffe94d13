//! What arrived out of order, and what the peer is told of it (RFC 2018, RFC 2883).

use std::collections::VecDeque;

use tables::PagedList;

use crate::carried::{Carried, ImportError, Reader, Writer};
use crate::sequence::Seq;

/// Bytes of receive buffer for each piece that is kept: a piece costs 8 bytes, and a peer decides how
/// many there are. Every second segment lost in a full window is still within.
const BYTES_PER_PIECE: usize = 1024;
/// Pieces that are kept in any case.
const LEAST: usize = 128;
/// Blocks that fit into a segment without time stamps.
const BLOCKS: usize = 4;

type Piece = (Seq, Seq);

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

    /// Notes a piece, `buffer` being the bytes of the receive buffer; gives whether it could be kept. What
    /// was there before is told as duplicate.
    pub(crate) fn insert(&mut self, start: Seq, end: Seq, buffer: usize) -> bool {
        self.0.get_or_insert_default().insert(start, end, LEAST + buffer / BYTES_PER_PIECE)
    }

    /// RCV.NXT has come to `next`: gives where it may go on to, since the data is there. What of it was
    /// held already is told as duplicate (RFC 2883 4.2).
    pub(crate) fn advance(&mut self, next: Seq) -> Seq {
        let next = self.0.as_mut().map_or(next, |pieces| pieces.advance(next));
        self.tidy();
        next
    }

    /// Notes data that was received before, to be told once.
    pub(crate) fn note_duplicate(&mut self, start: Seq, end: Seq) {
        self.0.get_or_insert_default().duplicate = Some((start, end));
    }

    /// The peer's FIN came ahead of data: a block tells of it too, since it has a sequence number.
    pub(crate) fn note_fin(&mut self, at: Seq) {
        self.0.get_or_insert_default().fin = Some(at);
    }

    /// Its turn has come.
    pub(crate) fn take_fin(&mut self) {
        if let Some(pieces) = &mut self.0 {
            pieces.fin = None;
            self.tidy();
        }
    }

    /// The blocks to tell: a duplicate first, then the latest pieces.
    pub(crate) fn blocks(&self) -> ([Piece; BLOCKS], usize) {
        let none = ([(Seq(0), Seq(0)); BLOCKS], 0);
        self.0.as_ref().map_or(none, |pieces| pieces.blocks())
    }

    /// The blocks left: a duplicate is told once.
    #[inline]
    pub(crate) fn told(&mut self) {
        if let Some(pieces) = &mut self.0 {
            pieces.duplicate = None;
            self.tidy();
        }
    }

    /// How many of them there are.
    pub(crate) fn count(&self) -> usize {
        let all = self.0.as_ref();
        let count = all.map_or(0, |all| {
            let others = [all.duplicate.is_some(), all.bare_fin().is_some()];
            all.pieces.len() + others.into_iter().filter(|one| *one).count()
        });
        count.min(BLOCKS)
    }

    /// All pieces, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.0.iter().flat_map(|pieces| pieces.pieces.iter().copied())
    }

    /// Whether the pieces are apart from each other, in order, and lie between `next` and `edge`.
    pub(crate) fn is_sound(&self, next: Seq, edge: Seq) -> bool {
        let mut at = next;
        let window = edge.since(next);
        let sound = self.pieces().all(|(start, end)| {
            let (from, to) = (start.since(next), end.since(next));
            let apart = from > at.since(next) && from < to && to <= window;
            at = end;
            apart
        });
        sound && self.0.as_ref().is_none_or(|pieces| pieces.recent.len() <= BLOCKS)
    }

    fn tidy(&mut self) {
        let is_bare = |all: &Pieces| all.duplicate.is_none() && all.fin.is_none();
        if self.0.as_ref().is_some_and(|all| all.pieces.is_empty() && is_bare(all)) {
            self.0 = None;
        }
    }
}

/// Pieces apart from each other, in order.
#[derive(Debug, Default)]
struct Pieces {
    pieces: PagedList<Piece>,
    /// A place in each of the pieces that grew last, the latest first.
    recent: VecDeque<Seq>,
    duplicate: Option<Piece>,
    /// Where the peer's FIN is, when it came ahead of data.
    fin: Option<Seq>,
}

impl Pieces {
    /// The FIN, unless a piece ends with it.
    fn bare_fin(&self) -> Option<Piece> {
        let at = self.fin.filter(|at| self.pieces.back().is_none_or(|last| last.1 != *at))?;
        Some((at, at.add(1)))
    }

    fn insert(&mut self, start: Seq, end: Seq, most: usize) -> bool {
        let first = self.pieces.partition_point(|piece| piece.1.before(start));
        let mut merged = (start, end);
        let mut last = first;
        while let Some(piece) = self.pieces.get(last).filter(|piece| !piece.0.after(end)) {
            let overlap = (piece.0.max(start), piece.1.min(end));
            if overlap.0.before(overlap.1) && self.duplicate.is_none() {
                self.duplicate = Some(overlap);
            }
            merged = (merged.0.min(piece.0), merged.1.max(piece.1));
            last = self.pieces.after(last);
        }
        if first == last {
            if self.pieces.len() >= most {
                return false;
            }
            self.pieces.insert(first, merged);
        } else {
            if let Some(piece) = self.pieces.get_mut(first) {
                *piece = merged;
            }
            self.pieces.remove(self.pieces.after(first)..last);
        }
        self.recent.retain(|place| !place.within(merged.0, merged.1));
        self.recent.push_front(merged.0);
        self.recent.truncate(BLOCKS);
        true
    }

    fn advance(&mut self, next: Seq) -> Seq {
        let mut next = next;
        let filled = next;
        while let Some(piece) = self.pieces.front().copied().filter(|piece| !piece.0.after(next)) {
            if piece.0.before(filled) && self.duplicate.is_none() {
                self.duplicate = Some((piece.0, piece.1.min(filled)));
            }
            next = next.max(piece.1);
            self.pieces.pop_front();
        }
        next
    }

    /// The piece that holds a place.
    fn holding(&self, place: Seq) -> Option<Piece> {
        let found = self.pieces.partition_point(|piece| !piece.1.after(place));
        self.pieces.get(found).copied().filter(|piece| !piece.0.after(place))
    }

    fn blocks(&self) -> ([Piece; BLOCKS], usize) {
        let mut blocks = [(Seq(0), Seq(0)); BLOCKS];
        let mut count = 0;
        let duplicate = self.duplicate;
        let recent = self.recent.iter().filter_map(|place| self.holding(*place));
        let recent = self.bare_fin().into_iter().chain(recent);
        // What room is left tells of the lowest pieces, which the peer was told of before.
        let pieces = recent.chain(self.pieces.iter().copied().take(BLOCKS));
        let pieces = pieces.map(|(start, end)| (start, end.add(u32::from(self.fin == Some(end)))));
        for block in duplicate.into_iter().chain(pieces) {
            let told = blocks.get(usize::from(duplicate.is_some())..count).unwrap_or_default();
            if told.contains(&block) {
                continue;
            }
            let Some(place) = blocks.get_mut(count) else { break };
            *place = block;
            count += 1;
        }
        (blocks, count)
    }
}

impl Carried for Gaps {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self(Carried::take(from)?))
    }
}

carried!(Pieces { pieces, recent, duplicate, fin });

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(gaps: &mut Gaps) -> Vec<(u32, u32)> {
        let (blocks, count) = gaps.blocks();
        gaps.told();
        blocks[..count].iter().map(|(start, end)| (start.0, end.0)).collect()
    }

    #[test]
    fn tells_the_latest_first() {
        let mut gaps = Gaps::default();
        assert!(gaps.insert(Seq(100), Seq(200), 0));
        assert!(gaps.insert(Seq(300), Seq(400), 0));
        assert_eq!(blocks(&mut gaps), [(300, 400), (100, 200)]);
        assert!(gaps.insert(Seq(200), Seq(250), 0));
        assert_eq!(blocks(&mut gaps), [(100, 250), (300, 400)]);
        assert_eq!(gaps.advance(Seq(100)), Seq(250));
        assert_eq!(blocks(&mut gaps), [(300, 400)]);
        assert_eq!(gaps.advance(Seq(299)), Seq(299));
        assert!(gaps.insert(Seq(250), Seq(300), 0));
        assert_eq!(gaps.advance(Seq(250)), Seq(400));
        assert!(gaps.is_empty());
    }

    #[test]
    fn tells_duplicates_once() {
        let mut gaps = Gaps::default();
        assert!(gaps.insert(Seq(100), Seq(200), 0));
        assert!(gaps.insert(Seq(150), Seq(250), 0));
        assert_eq!(blocks(&mut gaps), [(150, 200), (100, 250)]);
        assert_eq!(blocks(&mut gaps), [(100, 250)]);
        gaps.note_duplicate(Seq(10), Seq(20));
        assert_eq!(blocks(&mut gaps), [(10, 20), (100, 250)]);
    }

    #[test]
    fn is_bounded() {
        let mut gaps = Gaps::default();
        let kept = (0..1000).filter(|i| gaps.insert(Seq(i * 10), Seq(i * 10 + 5), 0)).count();
        assert_eq!(kept, LEAST);
        assert!(gaps.insert(Seq(5), Seq(10), 0));
    }

    #[test]
    fn a_large_buffer_keeps_every_second_segment_of_a_window() {
        let (mut gaps, buffer) = (Gaps::default(), 6 << 20);
        let pieces = buffer as u32 / 2896;
        let kept = (0..pieces).filter(|i| gaps.insert(Seq(i * 2896), Seq(i * 2896 + 1448), buffer));
        assert_eq!(kept.count(), pieces as usize);
        // The last four, then the lowest.
        assert_eq!(blocks(&mut gaps)[0].0, (pieces - 1) * 2896);
        assert_eq!(gaps.advance(Seq(0)), Seq(1448));
        let gone = gaps.advance(Seq(pieces * 2896));
        assert!(gaps.is_empty() && gone == Seq(pieces * 2896));
    }

    #[test]
    fn what_a_filled_hole_overlaps_is_told_as_duplicate() {
        let mut gaps = Gaps::default();
        for (start, end) in [(100, 300), (400, 500), (700, 800)] {
            assert!(gaps.insert(Seq(start), Seq(end), 0));
        }
        assert_eq!(blocks(&mut gaps).len(), 3);
        // The lowest piece goes first, and only once; the others are told of as held.
        assert_eq!(gaps.advance(Seq(600)), Seq(600));
        assert_eq!(blocks(&mut gaps), [(100, 300), (700, 800)]);
        // Only what overlaps: the rest was new.
        assert_eq!(gaps.advance(Seq(750)), Seq(800));
        assert_eq!(blocks(&mut gaps), [(700, 750)]);
        assert!(!gaps.has_news());
        assert!(gaps.insert(Seq(900), Seq(950), 0));
        assert_eq!(blocks(&mut gaps), [(900, 950)]);
        // Up to its beginning is no overlap.
        assert_eq!(gaps.advance(Seq(900)), Seq(950));
        assert_eq!(blocks(&mut gaps), []);
    }

    /// Maximal runs of `set`, in order.
    fn runs(set: &std::collections::BTreeSet<u32>) -> Vec<(u32, u32)> {
        set.iter().fold(Vec::<(u32, u32)>::new(), |mut runs, byte| {
            match runs.last_mut() {
                Some(last) if last.1 == *byte => last.1 += 1,
                _ => runs.push((*byte, *byte + 1)),
            }
            runs
        })
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_plain_set(steps in proptest::collection::vec((0..200u32, 1..30u32, 0..5u8), 1..100)) {
            let (mut gaps, mut set, mut next) = (Gaps::default(), std::collections::BTreeSet::new(), 0);
            let mut duplicate = None;
            for (start, length, kind) in steps {
                let start = next + 1 + start;
                // The first stretch of what arrives that was there.
                let arrived = if kind == 0 { (next, start) } else { (start, start + length) };
                let again = runs(&set.range(arrived.0..arrived.1).copied().collect());
                duplicate = duplicate.or(again.first().copied());
                if kind == 0 {
                    // The hole is filled up to there.
                    next = gaps.advance(Seq(start)).0;
                    let mut expected = start;
                    while set.contains(&expected) {
                        expected += 1;
                    }
                    set.retain(|byte| *byte >= expected);
                    proptest::prop_assert_eq!(next, expected);
                    continue;
                }
                proptest::prop_assert!(gaps.insert(Seq(start), Seq(start + length), 0));
                set.extend(start..start + length);
                let mut told = blocks(&mut gaps);
                if let Some(duplicate) = duplicate.take() {
                    proptest::prop_assert_eq!(told.remove(0), duplicate);
                }
                let pieces = runs(&set);
                proptest::prop_assert!(told.iter().all(|block| pieces.contains(block)));
                proptest::prop_assert!(told[0].0 <= start && start + length <= told[0].1);
            }
        }
    }
}
