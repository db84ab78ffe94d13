//! The device's end of the link: every transfer is done, a TLP at a time, and counted as it is done.

use super::Broken;
use super::ledger::{Crossed, Ledger, Purpose};
use super::memory::{Memory, WORD};
use super::model::REGISTER;
use super::pcie::{Kind, Link, PAGE};

/// Which way a TLP goes.
#[derive(Debug, Clone, Copy)]
enum Towards {
    Host,
    Device,
}

/// Does transfers.
#[derive(Debug)]
pub(super) struct Bus<'a> {
    memory: &'a Memory,
    link: Link,
    /// Since it was last taken.
    pub(super) ledger: Ledger,
}

impl<'a> Bus<'a> {
    pub(super) fn new(memory: &'a Memory, link: Link) -> Self {
        Self { memory, link, ledger: Ledger::default() }
    }

    fn count(&mut self, purpose: Purpose, towards: Towards, kind: Kind, payload: u64) {
        let one = Crossed::tlps(kind, 1, self.link.tlp(kind, payload));
        let entry = self.ledger.entry(purpose);
        match towards {
            Towards::Host => entry.up = entry.up + one,
            Towards::Device => entry.down = entry.down + one,
        }
    }

    /// Writes the first `length` bytes of `words`. The TLP with the first bytes goes last: who sees them
    /// sees all.
    pub(super) fn write(
        &mut self,
        purpose: Purpose,
        address: u64,
        words: &[u64],
        length: u64,
    ) -> Result<(), Broken> {
        for piece in (0..length.div_ceil(self.link.payload)).rev() {
            let start = piece * self.link.payload;
            let bytes = (length - start).min(self.link.payload);
            within_page(address + start, bytes)?;
            self.count(purpose, Towards::Host, Kind::Write, bytes);
            for place in (start / WORD..(start + bytes).div_ceil(WORD)).rev() {
                let word = words.get(place as usize).ok_or(Broken::Address(address))?;
                self.memory.store(address + place * WORD, *word)?;
            }
        }
        Ok(())
    }

    /// Asks for `length` bytes and puts the answers into `words`, behind what is there.
    pub(super) fn read(
        &mut self,
        purpose: Purpose,
        address: u64,
        length: u64,
        words: &mut Vec<u64>,
    ) -> Result<(), Broken> {
        let end = address + length;
        let mut asked = address;
        while asked < end {
            let until = end.min(asked + self.link.request);
            within_page(asked, until - asked)?;
            self.count(purpose, Towards::Host, Kind::Read, 0);
            // The host's answers: each ends at a boundary, but for the last.
            while asked < until {
                let boundary = (asked / self.link.completion + 1) * self.link.completion;
                let bytes = boundary.min(until) - asked;
                self.count(purpose, Towards::Device, Kind::Completion, bytes);
                for place in (asked..asked + bytes).step_by(WORD as usize) {
                    words.push(self.memory.load(place)?);
                }
                asked += bytes;
            }
        }
        Ok(())
    }

    /// The driver has written a register.
    pub(super) fn register_written(&mut self, purpose: Purpose) {
        self.count(purpose, Towards::Device, Kind::Write, REGISTER);
    }

    /// The driver has read a register.
    pub(super) fn register_read(&mut self, purpose: Purpose) {
        self.count(purpose, Towards::Device, Kind::Read, 0);
        self.count(purpose, Towards::Host, Kind::Completion, REGISTER);
    }
}

/// No request may cross a page.
fn within_page(address: u64, length: u64) -> Result<(), Broken> {
    let crosses = address / PAGE != (address + length.max(1) - 1) / PAGE;
    if crosses { Err(Broken::Page(address)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::memory::buffer;
    use super::*;

    #[test]
    fn what_is_written_is_read_and_counted() {
        let memory = Memory::new();
        let mut bus = Bus::new(&memory, Link::default());
        let words: Vec<u64> = (1..=75).collect();
        bus.write(Purpose::Packet, buffer(1), &words, 600).unwrap();
        let up = bus.ledger.packet.up;
        assert_eq!((up.writes, up.bytes, up.units), (3, 600 + 3 * 24, 5 + 5 + 2));
        let mut back = Vec::new();
        bus.read(Purpose::Packet, buffer(1), 600, &mut back).unwrap();
        assert_eq!(back, words);
        let packet = bus.ledger.packet;
        assert_eq!((packet.up.reads, packet.up.bytes), (2, 672 + 2 * 24));
        assert_eq!((packet.down.completions, packet.down.bytes), (3, 600 + 3 * 20));
        assert_eq!(bus.ledger.report, Default::default());
    }

    #[test]
    fn a_request_across_a_page_is_refused() {
        let memory = Memory::new();
        let mut bus = Bus::new(&memory, Link::default());
        let words = [0; 32];
        assert_eq!(bus.write(Purpose::Packet, 4032, &words, 128), Err(Broken::Page(4032)));
        assert_eq!(bus.read(Purpose::Packet, 4032, 128, &mut Vec::new()), Err(Broken::Page(4032)));
        assert_eq!(bus.write(Purpose::Packet, 4032, &words, 64), Ok(()));
    }
}
