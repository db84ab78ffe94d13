//! The soft NIC: the device's side of both ways, over the [`Bus`], which counts.

use std::collections::VecDeque;

use super::Broken;
use super::bus::Bus;
use super::frames::Frames;
use super::ledger::{Ledger, Purpose};
use super::memory::{WORD, descriptor};
use super::model::{DESCRIPTOR, Model, Way};
use super::registers::{Access, Accesses};

/// In a descriptor's second word: the device is done.
pub(super) const DONE: u64 = 1 << 63;
/// There: the driver wants to know when it is.
pub(super) const REPORT: u64 = 1 << 62;
/// There, and in the word ahead of a packet: its length.
pub(super) const LENGTH: u64 = 0xffff;

/// A device with one ring.
#[derive(Debug)]
pub(super) struct Nic<'a> {
    bus: Bus<'a>,
    model: Model,
    accesses: Accesses,
    /// Descriptors that were fetched and not used yet.
    fetched: VecDeque<[u64; 2]>,
    /// Descriptors fetched so far.
    head: u64,
    /// What each packet's transfers were.
    pub(super) ledgers: Vec<Ledger>,
}

impl<'a> Nic<'a> {
    pub(super) fn new(bus: Bus<'a>, model: Model, accesses: Accesses) -> Self {
        Self { bus, model, accesses, fetched: VecDeque::new(), head: 0, ledgers: Vec::new() }
    }

    /// Fetches descriptors in bulk, as many as there are up to `tail`.
    fn fetch(&mut self, tail: u64) -> Result<(), Broken> {
        let count = self.model.fetch.min(tail.saturating_sub(self.head));
        let mut words = Vec::new();
        let (from, length) = (descriptor(self.head), count * DESCRIPTOR);
        self.bus.read(Purpose::Descriptors, from, length, &mut words)?;
        let pairs = words.chunks_exact(2).filter_map(|pair| <[u64; 2]>::try_from(pair).ok());
        self.fetched.extend(pairs);
        self.head += count;
        Ok(())
    }

    /// Waits for a doorbell. Gives the tail.
    fn doorbell(&mut self) -> Result<u64, Broken> {
        match self.accesses.next()? {
            Access::Tail(tail) => {
                self.bus.register_written(Purpose::Doorbell);
                Ok(tail)
            }
            Access::Head => Err(Broken::Silent),
        }
    }

    /// A packet's transfers are over.
    fn close(&mut self) {
        self.ledgers.push(std::mem::take(&mut self.bus.ledger));
    }

    /// Packets come from the wire.
    pub(super) fn receive(&mut self, frames: &Frames) -> Result<(), Broken> {
        let (mut words, mut written_back) = (Vec::new(), Vec::new());
        for number in 0..frames.count() {
            if self.fetched.is_empty() {
                let tail = self.doorbell()?;
                self.fetch(tail)?;
            }
            let [address, _] = self.fetched.pop_front().ok_or(Broken::Silent)?;
            let size = frames.size(number);
            words.clear();
            if self.model.way == Way::SelfDescribed {
                words.extend([size, number]);
            }
            let ahead = words.len() as u64 * WORD;
            frames.append(number, &mut words);
            self.bus.write(Purpose::Packet, address, &words, ahead + size)?;
            if let Way::Classic { batch } = self.model.way {
                written_back.extend([number, DONE | size]);
                // When the wire falls idle what is left is written back.
                let idle = number + 1 == frames.count();
                if (number + 1) % batch == 0 || idle {
                    let length = written_back.len() as u64 * WORD;
                    let first = number + 1 - length / DESCRIPTOR;
                    self.bus.write(Purpose::Report, descriptor(first), &written_back, length)?;
                    written_back.clear();
                }
            }
            self.close();
        }
        Ok(())
    }

    /// Packets go to the wire, where they are checked.
    pub(super) fn transmit(&mut self, frames: &Frames) -> Result<(), Broken> {
        let mut told = self.model.way != Way::SelfDescribed;
        while self.ledgers.len() as u64 != frames.count() || !told {
            match self.accesses.next()? {
                Access::Tail(tail) => {
                    self.bus.register_written(Purpose::Doorbell);
                    while self.head < tail {
                        self.fetch(tail)?;
                        self.send(frames)?;
                    }
                }
                Access::Head => {
                    self.bus.register_read(Purpose::Report);
                    let read = std::mem::take(&mut self.bus.ledger);
                    // It tells of the packets up to the last one.
                    *self.ledgers.last_mut().ok_or(Broken::Silent)? += read;
                    self.accesses.answer(self.head)?;
                    told = self.head == frames.count();
                }
            }
        }
        Ok(())
    }

    /// All that was fetched.
    fn send(&mut self, frames: &Frames) -> Result<(), Broken> {
        let mut words = Vec::new();
        while let Some([address, status]) = self.fetched.pop_front() {
            let number = self.ledgers.len() as u64;
            words.clear();
            self.bus.read(Purpose::Packet, address, status & LENGTH, &mut words)?;
            frames.check(number, &words)?;
            if status & REPORT != 0 {
                let done = [address, status | DONE];
                self.bus.write(Purpose::Report, descriptor(number), &done, DESCRIPTOR)?;
            }
            self.close();
        }
        Ok(())
    }
}
