//! The host's memory, which driver and device share: words that both may touch at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Broken;

/// Bytes of a word.
pub(super) const WORD: u64 = 8;
/// Descriptors of a ring, and buffers.
pub(super) const SLOTS: u64 = 256;
/// Bytes from buffer to buffer: half a page, so that none crosses one.
const STRIDE: u64 = 2048;
/// Bytes of the ring of descriptors: one page, and the buffers follow.
const RING: u64 = SLOTS * super::model::DESCRIPTOR;
const BYTES: u64 = RING + SLOTS * STRIDE;

/// Memory by address, which counts bytes from 0.
#[derive(Debug)]
pub(super) struct Memory(Box<[AtomicU64]>);

impl Memory {
    /// All zeros.
    pub(super) fn new() -> Self {
        Self((0..BYTES / WORD).map(|_| AtomicU64::new(0)).collect())
    }

    fn word(&self, address: u64) -> Result<&AtomicU64, Broken> {
        let place = usize::try_from(address / WORD).map_err(|_| Broken::Address(address))?;
        self.0.get(place).filter(|_| address % WORD == 0).ok_or(Broken::Address(address))
    }

    /// Acquire: with a word comes all that was stored before it.
    pub(super) fn load(&self, address: u64) -> Result<u64, Broken> {
        Ok(self.word(address)?.load(Ordering::Acquire))
    }

    /// Release, for whoever loads it.
    pub(super) fn store(&self, address: u64, value: u64) -> Result<(), Broken> {
        self.word(address)?.store(value, Ordering::Release);
        Ok(())
    }
}

/// Where the descriptor of a packet lies.
pub(super) fn descriptor(packet: u64) -> u64 {
    packet % SLOTS * super::model::DESCRIPTOR
}

/// Where its buffer begins.
pub(super) fn buffer(packet: u64) -> u64 {
    RING + packet % SLOTS * STRIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_within_are_touched() {
        let memory = Memory::new();
        assert_eq!(memory.store(buffer(SLOTS - 1) + STRIDE - WORD, 7), Ok(()));
        assert_eq!(memory.load(BYTES - WORD), Ok(7));
        for address in [BYTES, 4, u64::MAX] {
            assert_eq!(memory.load(address), Err(Broken::Address(address)));
        }
        assert_eq!(descriptor(SLOTS), descriptor(0));
        assert!(descriptor(SLOTS - 1) < buffer(0));
    }
}
