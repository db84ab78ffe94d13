//! Reading packets where they lie.

use client::Channel;

use super::carry::{Meter, Wait, is_end};
use crate::failure::Failure;

/// Bytes of a word; a frame of minimum size has no part of one.
const WORD: usize = 4;

/// Reads every byte of every packet, a burst at most at once, until the other side ends the turn. Returns the
/// sum of all packets' words.
pub(super) fn read(channel: &mut Channel, burst: u16, meter: &mut Meter) -> Result<u32, Failure> {
    let (mut wait, mut all, mut packets) = (Wait::default(), 0_u32, Vec::new());
    loop {
        if channel.receive(&mut packets, burst.into())? == 0 {
            wait.go_on()?;
            continue;
        }
        wait.over();
        let ends = packets.last().is_some_and(is_end);
        let count = packets.len() - usize::from(ends);
        for packet in packets.iter().take(count) {
            for place in 0..packet.pieces() {
                all = all.wrapping_add(sum(channel.piece(packet, place).unwrap_or_default()));
            }
        }
        channel.release_burst(&mut packets);
        meter.add(count);
        if ends {
            return Ok(all);
        }
    }
}

/// The sum of a packet's words, the last of which may be shorter. Slots hold whole words, so the sums of a
/// packet's pieces are that of the packet.
#[inline(always)]
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(WORD);
    let last = words.remainder().iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let whole = words.filter_map(|word| word.try_into().ok().map(u32::from_le_bytes));
    whole.fold(last, u32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::super::carry::{self, Packets};
    use super::super::memory;
    use super::*;

    #[test]
    fn every_byte_counts() {
        assert_eq!(sum(&[]), 0);
        assert_eq!(sum(&[1, 0, 0, 2, 5, 1]), 1 + (2 << 24) + 5 + (1 << 8));
        let mut bytes = [7; 60];
        let before = sum(&bytes);
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_ne!(sum(&bytes), before, "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn what_is_read_in_place_is_what_was_sent() {
        let (mut ours, mut theirs) = memory::both();
        for bytes in [60, 61, 2048, 8996] {
            let packets = Packets::new(bytes, 7);
            carry::burst(&mut ours.out, &packets).unwrap();
            carry::end(&mut ours.out).unwrap();
            let mut meter = Meter::new(1);
            let all = read(&mut theirs, 4, &mut meter).unwrap();
            let whole = packets.all().map(sum).fold(0, u32::wrapping_add);
            assert_eq!((meter.finish().0, all), (7, whole), "{bytes} bytes");
            assert!(ours.out.is_drained());
        }
    }
}
