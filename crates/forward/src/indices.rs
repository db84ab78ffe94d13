//! Indices of a table that workers read: a freed one is reused only when no worker can still hold it.

use std::collections::VecDeque;

/// Indices from `first` to `end`, given out and taken back.
#[derive(Debug)]
pub(crate) struct Indices {
    next: u32,
    end: u32,
    free: Vec<u32>,
    retired: VecDeque<(u64, u32)>,
}

impl Indices {
    pub(crate) fn new(first: u32, end: u32) -> Self {
        Self { next: first, end, free: Vec::new(), retired: VecDeque::new() }
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let index = self.next;
            (index < self.end).then(|| {
                self.next += 1;
                index
            })
        })
    }

    /// How many are free.
    pub(crate) fn free(&self) -> usize {
        self.free.len() + self.end.saturating_sub(self.next) as usize
    }

    /// Takes an index back that no worker has seen.
    pub(crate) fn put_back(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Takes an index back that workers may hold until they have passed the epoch `tag`.
    pub(crate) fn retire(&mut self, index: u32, tag: u64) {
        self.retired.push_back((tag, index));
    }

    /// Makes what was retired up to `passed` free, and returns it.
    pub(crate) fn reclaim(&mut self, passed: u64) -> &[u32] {
        let before = self.free.len();
        while let Some((tag, index)) = self.retired.front().copied() {
            if tag > passed {
                break;
            }
            self.retired.pop_front();
            self.free.push(index);
        }
        self.free.get(before..).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_back_only_after_its_epoch() {
        let mut indices = Indices::new(16, 18);
        assert_eq!(indices.free(), 2);
        assert_eq!((indices.take(), indices.take(), indices.take()), (Some(16), Some(17), None));
        indices.retire(17, 5);
        assert_eq!(indices.reclaim(4), [0; 0]);
        assert_eq!((indices.take(), indices.free()), (None, 0));
        assert_eq!(indices.reclaim(5), [17]);
        assert_eq!(indices.free(), 1);
        assert_eq!(indices.take(), Some(17));
    }
}
