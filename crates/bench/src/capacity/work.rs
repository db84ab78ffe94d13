//! What is done for each packet besides forwarding it.

use std::fmt;
use std::hint::black_box;

use md5::{Digest as _, Md5};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The MD5 digest of the whole packet: takes the processor.
    Digest,
    /// A read of memory that no cache holds, whose place depends on the read before: takes memory.
    Read,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Digest, Self::Read];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => "md5",
            Self::Read => "uncached read",
        })
    }
}

/// Who works, and with what.
#[derive(Debug)]
pub(super) struct Work {
    kind: Kind,
    memory: Vec<u64>,
    place: u64,
}

impl Work {
    /// `megabytes`: of memory for reads.
    pub(super) fn new(kind: Kind, megabytes: u32) -> Self {
        let words = if kind == Kind::Read { (megabytes as usize) << 17 } else { 1 };
        // Not zero: a page of zeroes that was never written is the same page everywhere.
        Self { kind, memory: vec![1; words], place: 1 }
    }

    /// Works for a packet, so many times.
    #[inline]
    pub(super) fn act(&mut self, packet: &[u8], times: u32) {
        for _ in 0..times {
            match self.kind {
                Kind::Digest => {
                    black_box(Md5::digest(black_box(packet)));
                }
                Kind::Read => {
                    // Knuth's linear congruential generator (MMIX), whose high bits are the better ones.
                    let at = (self.place >> 24) as usize % self.memory.len();
                    let read = self.memory.get(at).copied().unwrap_or(1);
                    self.place = self.place.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(read);
                }
            }
        }
    }

    /// TSC cycles of one by itself, with a packet of this length that lies in the cache.
    pub(super) fn alone(&mut self, length: usize) -> f64 {
        const TIMES: u32 = 2_000;
        let packet = vec![7; length];
        let least = (0..5).map(|_| {
            let begin = dpdk::tsc();
            self.act(&packet, TIMES);
            dpdk::tsc().wrapping_sub(begin) as f64 / f64::from(TIMES)
        });
        least.fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_far_apart() {
        let mut work = Work::new(Kind::Read, 1);
        let places: std::collections::HashSet<usize> = (0..1000)
            .map(|_| {
                work.act(&[], 1);
                // Cache lines of eight words.
                (work.place >> 24) as usize % work.memory.len() / 8
            })
            .collect();
        assert!(places.len() > 950, "{}", places.len());
        let before = work.place;
        work.act(&[], 0);
        assert_eq!(work.place, before);
    }
}
