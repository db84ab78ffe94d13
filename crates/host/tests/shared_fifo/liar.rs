//! A process that lies: it writes into FIFOs whatever might hurt.

use std::sync::atomic::{AtomicBool, Ordering};

use shm::Region;

use crate::fifo::{BYTES, CAPACITY, READ, WRITTEN};

pub(crate) fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Writes into a FIFO whatever might hurt.
pub(crate) struct Liar {
    region: Region,
    next: Box<dyn FnMut() -> u64 + Send>,
}

impl std::fmt::Debug for Liar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Liar").finish_non_exhaustive()
    }
}

impl Liar {
    pub(crate) fn new(region: Region, seed: u64) -> Self {
        Self { region, next: Box::new(random(seed)) }
    }

    pub(crate) fn lie(&mut self) {
        let (number, region) = ((self.next)(), &self.region);
        let word = if number & 1 == 0 { READ } else { WRITTEN };
        let (value, old) = ((number >> 32) as u32, region.load(word).unwrap());
        match number >> 1 & 15 {
            0 => region.store(word, value),
            1 => region.store(word, old.wrapping_add(value % 3000)),
            2 => region.store(word, old.wrapping_sub(value % 3000)),
            3 => region.store(WRITTEN, region.load(READ).unwrap().wrapping_add(value % 40_000)),
            4 => region.store(word, u32::MAX - value % 100),
            5 => region.write(BYTES + value as usize % CAPACITY, &[value as u8; 700]) > 0,
            _ => true,
        };
    }
}

/// Lies until told to stop.
pub(crate) fn scribble(mut liars: [Liar; 2], stop: &AtomicBool, begun: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        liars.iter_mut().for_each(Liar::lie);
        begun.store(true, Ordering::Relaxed);
    }
}

/// Ends the liar, also when the test has failed.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
