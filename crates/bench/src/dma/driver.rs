//! The driver: the host's side of both ways.

use super::Broken;
use super::frames::Frames;
use super::memory::{Memory, SLOTS, WORD, buffer, descriptor};
use super::model::{DESCRIPTOR, Model, Way};
use super::nic::{DONE, LENGTH, REPORT};
use super::registers::{Access, Registers, wait};

/// A driver of one ring.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    memory: &'a Memory,
    model: Model,
    registers: Registers,
    /// Descriptors given to the device so far.
    given: u64,
    /// Packets that the device is known to be done with.
    done: u64,
}

impl<'a> Driver<'a> {
    pub(super) fn new(memory: &'a Memory, model: Model, registers: Registers) -> Self {
        Self { memory, model, registers, given: 0, done: 0 }
    }

    fn describe(&mut self, status: u64) -> Result<(), Broken> {
        let (at, address) = (descriptor(self.given), buffer(self.given));
        self.memory.store(at, address)?;
        self.memory.store(at + WORD, status)?;
        self.given += 1;
        Ok(())
    }

    /// Gives the device as many buffers to fill as it fetches at once.
    fn give(&mut self) -> Result<(), Broken> {
        for _ in 0..self.model.fetch {
            // A length of 0 ahead of the packet: it has not come yet.
            self.memory.store(buffer(self.given), 0)?;
            self.describe(0)?;
        }
        self.registers.access(Access::Tail(self.given))
    }

    /// Takes all packets and checks them.
    pub(super) fn receive(&mut self, frames: &Frames) -> Result<(), Broken> {
        while self.given + self.model.fetch <= SLOTS {
            self.give()?;
        }
        for number in 0..frames.count() {
            let packet = self.next(number)?;
            frames.check(number, &packet)?;
            if (number + 1) % self.model.fetch == 0 {
                self.give()?;
            }
        }
        Ok(())
    }

    /// Waits for the next packet and copies it out.
    fn next(&self, number: u64) -> Result<Vec<u64>, Broken> {
        // Where it shows that it came, what is said of it beside, and where it begins.
        let (mark, arrived, said, data) = match self.model.way {
            Way::Classic { .. } => {
                (descriptor(number) + WORD, DONE, descriptor(number), buffer(number))
            }
            Way::SelfDescribed => {
                (buffer(number), LENGTH, buffer(number) + WORD, buffer(number) + DESCRIPTOR)
            }
        };
        let found = wait(|| Ok(Some(self.memory.load(mark)?).filter(|word| word & arrived != 0)))?;
        if self.memory.load(said)? != number {
            return Err(Broken::Packet(number));
        }
        (0..found & LENGTH).step_by(WORD as usize).map(|at| self.memory.load(data + at)).collect()
    }

    /// Sends all packets, and waits until the device is done with them.
    pub(super) fn transmit(&mut self, frames: &Frames) -> Result<(), Broken> {
        let (count, mut words) = (frames.count(), Vec::new());
        while self.given < count {
            if self.given - self.done == SLOTS {
                self.reclaim(count)?;
            }
            let number = self.given;
            words.clear();
            frames.append(number, &mut words);
            for (at, word) in (0..).step_by(WORD as usize).zip(&words) {
                self.memory.store(buffer(number) + at, *word)?;
            }
            let ends = |batch: u64| (number + 1) % batch == 0 || number + 1 == count;
            let reports = matches!(self.model.way, Way::Classic { batch } if ends(batch));
            self.describe(frames.size(number) | if reports { REPORT } else { 0 })?;
            if ends(self.model.fetch) {
                self.registers.access(Access::Tail(self.given))?;
                if self.model.way == Way::SelfDescribed {
                    self.registers.access(Access::Head)?;
                }
            }
        }
        while self.done < count {
            self.reclaim(count)?;
        }
        Ok(())
    }

    /// Waits until the device is done with some more of `count` packets.
    fn reclaim(&mut self, count: u64) -> Result<(), Broken> {
        self.done = match self.model.way {
            Way::Classic { batch } => {
                let until = (self.done + batch).min(count);
                let status = descriptor(until - 1) + WORD;
                wait(|| Ok(Some(self.memory.load(status)?).filter(|word| word & DONE != 0)))?;
                until
            }
            Way::SelfDescribed => self.registers.head()?,
        };
        Ok(())
    }
}
