//! Packets that device and driver exchange: both know what is in each, so that both can tell a wrong one.

use super::Broken;
use super::memory::WORD;
use crate::load::Random;

/// Packets by number.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    /// Bytes of each.
    sizes: Vec<u64>,
    seed: u64,
}

impl Frames {
    pub(super) fn new(sizes: Vec<u64>, seed: u64) -> Self {
        Self { sizes, seed }
    }

    /// How many.
    pub(super) fn count(&self) -> u64 {
        self.sizes.len() as u64
    }

    /// Bytes of one; 0 for one that there is not.
    pub(super) fn size(&self, number: u64) -> u64 {
        usize::try_from(number).ok().and_then(|at| self.sizes.get(at)).copied().unwrap_or(0)
    }

    /// The bytes of one, in words; what is behind its end is zero. They are put behind what is in `words`.
    pub(super) fn append(&self, number: u64, words: &mut Vec<u64>) {
        let mut random = Random::new(self.seed ^ number);
        let size = self.size(number);
        let starts = (0..size).step_by(WORD as usize);
        words.extend(starts.map(|start| {
            let left = size - start;
            random.next() & if left < WORD { (1 << (8 * left)) - 1 } else { u64::MAX }
        }));
    }

    /// Whether `words` are the packet.
    pub(super) fn check(&self, number: u64, words: &[u64]) -> Result<(), Broken> {
        let mut expected = Vec::new();
        self.append(number, &mut expected);
        if words == expected { Ok(()) } else { Err(Broken::Packet(number)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_noticed() {
        let frames = Frames::new(vec![64, 61], 1);
        let mut words = Vec::new();
        frames.append(1, &mut words);
        assert_eq!((words.len(), words[7] >> 40), (8, 0));
        assert_eq!(frames.check(1, &words), Ok(()));
        assert_eq!(frames.check(0, &words), Err(Broken::Packet(0)));
        words[7] ^= 1 << 32;
        assert_eq!(frames.check(1, &words), Err(Broken::Packet(1)));
    }
}
