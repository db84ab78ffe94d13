//! What forwarding does to a header (RFC 1812 5.3.1).

use super::{Header, Malformed};

/// The time to live would reach zero: the packet ends here (RFC 1812 5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time to live ran out")]
pub struct TtlExpired;

/// Why [`forward_in_place`] left a packet as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotForwarded {
    /// The header is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The time to live ran out.
    #[error(transparent)]
    TtlExpired(#[from] TtlExpired),
}

/// One hop less, with the checksum put right. Errors: `TtlExpired` when the time to live is 0 or
/// 1; the header is unchanged then.
#[inline]
pub fn decrement_ttl(header: &mut Header) -> Result<(), TtlExpired> {
    if header.ttl <= 1 {
        return Err(TtlExpired);
    }
    let words: &mut [[u8; 4]; 5] = zerocopy::transmute_mut!(header);
    // TTL, protocol and checksum as one little-endian number. The word of the first two falls by
    // 0x0100, so the checksum grows by as much, with the carry brought round (RFC 1624 equation 3;
    // 0xffff becomes 0, as a new sum would have it). In this byte order that is 0x0001.
    let word = u32::from_le_bytes(words[2]);
    let word = if word < 0xfffe_0000 { word + 0xffff } else { carried_round(word) };
    words[2] = word.to_le_bytes();
    Ok(())
}

/// One header in 32,768 needs it. The others do with a comparison, because this is out of their way.
#[cold]
#[inline(never)]
fn carried_round(word: u32) -> u32 {
    word.wrapping_add(0x1_ffff)
}

/// Checks a packet and takes one hop off it: all that forwarding changes in the header.
/// Errors: see [`NotForwarded`]; the packet is unchanged then.
#[inline]
pub fn forward_in_place(packet: &mut [u8]) -> Result<&mut Header, NotForwarded> {
    let header = Header::parse_mut(packet)?;
    decrement_ttl(header)?;
    Ok(header)
}
