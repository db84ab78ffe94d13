//! Which stack leases which local port, as the daemon has written it down for processes that hear from each other without
//! it: a word for each TCP port, the number of a stack or 0. The daemon writes; processes have it to read only.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::segment::{Region, Segment, SegmentError};

/// Ports.
const PORTS: usize = 1 << 16;
/// Bytes.
const LENGTH: usize = PORTS * 4;

/// The daemon's side.
#[derive(Debug)]
pub struct BookWriter {
    segment: Arc<Segment>,
    region: Region,
}

/// A process's side.
#[derive(Debug)]
pub struct BookReader {
    region: Region,
}

impl BookWriter {
    /// Nobody leases anything.
    ///
    /// # Errors
    /// [`SegmentError`]: no memory, no descriptor, or a kernel before 5.1.
    pub fn new() -> Result<Self, SegmentError> {
        let segment = Arc::new(Segment::create("millrace-book", LENGTH)?);
        // It is mapped here already: nobody else writes.
        segment.seal()?;
        let region = segment.region(0, LENGTH).ok_or(SegmentError::Size(LENGTH))?;
        Ok(Self { segment, region })
    }

    /// `count` ports from `first` on are leased to a stack; 0: to none.
    pub fn note(&self, first: u16, count: u16, stack: u32) {
        let end = (usize::from(first) + usize::from(count)).min(PORTS);
        for port in usize::from(first)..end {
            if let Some(word) = self.region.word(port * 4) {
                word.store(stack, Ordering::Release);
            }
        }
    }
}

impl AsFd for BookWriter {
    /// To hand over.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }
}

impl BookReader {
    /// Maps what the daemon has handed over.
    ///
    /// # Errors
    /// [`SegmentError`]; [`SegmentError::Size`]: it has another length.
    pub fn from_file(file: OwnedFd) -> Result<Self, SegmentError> {
        let segment = Arc::new(Segment::from_file_to_read(file)?);
        let length = segment.length();
        let region = segment.region(0, LENGTH).ok_or(SegmentError::Size(length))?;
        Ok(Self { region })
    }

    /// The stack that leases a port; 0: none does.
    #[inline]
    #[must_use]
    pub fn lessee(&self, port: u16) -> u32 {
        let word = self.region.word(usize::from(port) * 4);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_nobody_else_writes() {
        let writer = BookWriter::new().unwrap();
        let file = writer.as_fd().try_clone_to_owned().unwrap();
        let reader = BookReader::from_file(file.try_clone().unwrap()).unwrap();
        writer.note(1024, 256, 7);
        writer.note(65_535, 256, 9);
        let lessees = [1023, 1024, 1279, 1280, 65_535, 0].map(|port| reader.lessee(port));
        assert_eq!(lessees, [0, 7, 7, 0, 9, 0]);
        writer.note(1024, 256, 0);
        assert_eq!(reader.lessee(1024), 0);
        assert!(Segment::from_file(file.try_clone().unwrap()).is_err(), "to write");
        assert!(rustix::io::pwrite(&file, &[1], 0).is_err());
        let short = Segment::create("short", 4096).unwrap();
        let short = short.as_fd().try_clone_to_owned().unwrap();
        assert!(BookReader::from_file(short).is_err());
    }
}
