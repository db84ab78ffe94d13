//! Writing and reading the format: little-endian, times as differences.

use super::error::ImportError;
use crate::isn::timestamp;
use crate::options::NEVER;

/// A time further away than this is written as if it were so far: ns (two years).
const FURTHEST: i64 = 730 * 86_400 * 1_000_000_000;
/// Written for [`NEVER`].
const NO_TIME: i64 = i64::MAX;

/// Bytes that grow.
#[derive(Debug)]
pub struct Writer {
    /// What was written so far.
    pub bytes: Vec<u8>,
    /// ns.
    now: u64,
}

impl Writer {
    /// Nothing yet. `now`: ns.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self { bytes: Vec::new(), now }
    }

    pub(crate) fn array<const N: usize>(&mut self, array: [u8; N]) {
        self.bytes.extend_from_slice(&array);
    }

    /// A time (ns) as its distance from now.
    pub(crate) fn time(&mut self, time: u64) {
        let apart = i128::from(time) - i128::from(self.now);
        let apart = apart.clamp(i128::from(-FURTHEST), i128::from(FURTHEST)) as i64;
        self.array(if time == NEVER { NO_TIME } else { apart }.to_le_bytes());
    }

    /// A time that may not be there.
    pub(crate) fn moment(&mut self, time: Option<u64>) {
        self.time(time.unwrap_or(NEVER));
    }

    /// A time in microseconds, modulo 2^32.
    pub(crate) fn micros(&mut self, time: u32) {
        self.array(((self.now / 1000) as u32).wrapping_sub(time).to_le_bytes());
    }

    /// A time in milliseconds, modulo 2^32; 0: never.
    pub(crate) fn millis(&mut self, time: u32) {
        let ago = ((self.now / 1_000_000) as u32).wrapping_sub(time);
        self.array(if time == 0 { u32::MAX } else { ago.min(u32::MAX - 1) }.to_le_bytes());
    }

    /// What time stamps are ahead of the clock, as the time stamp of now.
    pub(crate) fn stamp(&mut self, offset: u32) {
        self.array(timestamp(self.now, offset).to_le_bytes());
    }

    /// Bytes with their count in front.
    pub fn block(&mut self, block: &[u8]) {
        self.array((block.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(block);
    }
}

/// Bytes that are read once, none of them believed.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// By this stack's clock: ns.
    now: u64,
    /// How long it is since they were written: ns.
    age: u64,
    /// What is being read.
    pub field: &'static str,
}

impl<'a> Reader<'a> {
    /// `now`: ns by the reader's clock; `age`: how long it is since they were written, ns.
    #[must_use]
    pub fn new(bytes: &'a [u8], now: u64, age: u64) -> Self {
        Self { bytes, now, age: age.min(FURTHEST as u64), field: "header" }
    }

    /// Milliseconds since the bytes were written.
    pub(crate) fn age_millis(&self) -> u32 {
        (self.age / 1_000_000) as u32
    }

    /// Bytes that were not read yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// What is read has a value that it cannot have.
    ///
    /// # Errors
    /// Always.
    pub fn refuse<T>(&self) -> Result<T, ImportError> {
        Err(ImportError::Value(self.field))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let short = ImportError::Short(self.field);
        let (array, rest) = self.bytes.split_first_chunk::<N>().ok_or(short)?;
        self.bytes = rest;
        Ok(*array)
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// [`ImportError::Short`].
    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], ImportError> {
        let short = ImportError::Short(self.field);
        let (slice, rest) = self.bytes.split_at_checked(length).ok_or(short)?;
        self.bytes = rest;
        Ok(slice)
    }

    /// Bytes that have their count in front.
    ///
    /// # Errors
    /// [`ImportError::Short`].
    pub fn block(&mut self) -> Result<&'a [u8], ImportError> {
        let length = u32::from_le_bytes(self.array()?);
        self.slice(length as usize)
    }

    /// A time by this stack's clock: ns. One from before the clock began is its beginning.
    pub(crate) fn time(&mut self) -> Result<u64, ImportError> {
        let apart = i64::from_le_bytes(self.array()?);
        if apart == NO_TIME {
            return Ok(NEVER);
        }
        if !(-FURTHEST..=FURTHEST).contains(&apart) {
            return self.refuse();
        }
        let time = i128::from(self.now) - i128::from(self.age) + i128::from(apart);
        Ok(time.clamp(0, i128::from(NEVER - 1)) as u64)
    }

    pub(crate) fn moment(&mut self) -> Result<Option<u64>, ImportError> {
        Ok(Some(self.time()?).filter(|time| *time != NEVER))
    }

    pub(crate) fn micros(&mut self) -> Result<u32, ImportError> {
        let ago = u32::from_le_bytes(self.array()?).wrapping_add((self.age / 1000) as u32);
        Ok(((self.now / 1000) as u32).wrapping_sub(ago))
    }

    pub(crate) fn stamp(&mut self) -> Result<u32, ImportError> {
        let stamp = u32::from_le_bytes(self.array()?).wrapping_add(self.age_millis());
        Ok(stamp.wrapping_sub(timestamp(self.now, 0)))
    }

    pub(crate) fn millis(&mut self) -> Result<u32, ImportError> {
        let ago = u32::from_le_bytes(self.array()?);
        if ago == u32::MAX {
            return Ok(0);
        }
        let ago = ago.wrapping_add(self.age_millis());
        Ok(((self.now / 1_000_000) as u32).wrapping_sub(ago).max(1))
    }
}
