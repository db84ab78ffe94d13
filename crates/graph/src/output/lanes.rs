//! Which packets of a burst leave by a port, as bits.

use crate::PortId;

/// Packets that have a bit.
const LANES: usize = u64::BITS as usize;

/// Bits of the first packets, as many as there are ports.
#[inline(always)]
pub(super) fn first(ports: &[PortId]) -> u64 {
    let without = LANES.saturating_sub(ports.len()) as u32;
    u64::MAX.checked_shr(without).unwrap_or(0)
}

/// Bits of those whose port this is, the first packet's the lowest.
#[inline(always)]
pub(super) fn of(ports: &[PortId], port: PortId) -> u64 {
    // Without a branch for each, so that the compiler compares several at once.
    let mut equal = [0_u8; LANES];
    for (lane, other) in equal.iter_mut().zip(ports) {
        *lane = u8::from(*other == port);
    }
    equal.chunks_exact(8).rev().fold(0, |lanes, eight| {
        let eight = eight.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
        // Takes bit 8 n to 56 + n, and all others elsewhere.
        lanes << 8 | eight.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_has_the_bit_of_its_place() {
        for count in 0..=LANES {
            let all: Vec<PortId> =
                (0..count).map(|n| PortId::new((n * n % 7 + n / 9) as u16 % 5)).collect();
            let mut together = 0;
            for port in (0..5).map(PortId::new) {
                let lanes = of(&all, port);
                for lane in 0..LANES {
                    let is_its = all.get(lane) == Some(&port);
                    assert_eq!(lanes >> lane & 1 != 0, is_its, "{lane} of {count}");
                }
                assert_eq!(together & lanes, 0);
                together |= lanes;
            }
            assert_eq!(together, first(&all), "{count}");
        }
    }
}
