//! Bytes and words of a region, for structures that both sides write: everything is copied, nothing is borrowed.

use crate::copy::{read_shared, write_shared};
use crate::segment::Region;
use crate::sync::Ordering;

impl Region {
    /// Copies what lies `offset` bytes behind its beginning into `target`. Gives bytes copied: fewer than asked for where
    /// the region ends. What another process writes meanwhile may be in it or not, byte by byte.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> usize {
        let count = target.len().min(self.length().saturating_sub(offset));
        let Some(target) = target.get_mut(..count).filter(|target| !target.is_empty()) else {
            return 0;
        };
        // SAFETY: `offset + count` lies within the region, as just checked, and `target` is the caller's own memory.
        unsafe { read_shared(self.base().as_ptr().add(offset), target) };
        count
    }

    /// Copies `bytes` to `offset` bytes behind its beginning. Gives bytes copied: fewer than given where the region ends.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.length().saturating_sub(offset));
        let Some(bytes) = bytes.get(..count).filter(|bytes| !bytes.is_empty()) else { return 0 };
        // SAFETY: as above; `bytes` is the caller's own memory.
        unsafe { write_shared(bytes, self.base().as_ptr().add(offset)) };
        count
    }

    /// Loads the word at `offset` bytes, and sees what was written before it was [stored](Self::store). `None`: it does not
    /// lie within the region, or is not aligned.
    #[must_use]
    pub fn load(&self, offset: usize) -> Option<u32> {
        self.word(offset).map(|word| word.load(Ordering::Acquire))
    }

    /// Stores the word at `offset` bytes, behind what was written before. Gives whether it lies within the region, and is
    /// aligned.
    pub fn store(&self, offset: usize, value: u32) -> bool {
        self.word(offset).map(|word| word.store(value, Ordering::Release)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use crate::segment::Segment;
    use std::sync::Arc;

    #[test]
    fn nothing_beyond_the_end_is_touched() {
        let segment = Arc::new(Segment::create("test", 4096).unwrap());
        let (region, next) = (segment.region(64, 100).unwrap(), segment.region(192, 64).unwrap());
        assert_eq!(segment.region(128, 128).unwrap().write(0, &[9; 200]), 128);
        assert_eq!(
            (region.write(90, &[7; 30]), region.write(100, &[7]), region.write(usize::MAX, &[7])),
            (10, 0, 0)
        );
        let mut bytes = [1; 30];
        assert_eq!((region.read(90, &mut bytes), region.read(100, &mut bytes)), (10, 0));
        assert_eq!((region.read(usize::MAX, &mut bytes), region.read(3, &mut [])), (0, 0));
        assert_eq!(bytes[..12], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 1, 1]);
        assert_eq!(next.read(0, &mut bytes[..1]), 1);
        assert_eq!(bytes[0], 9, "behind the region");
        assert!(region.store(96, 5) && !region.store(100, 5) && !region.store(98, 5));
        assert_eq!(
            (region.load(96), region.load(97), region.load(usize::MAX - 3)),
            (Some(5), None, None)
        );
    }
}
