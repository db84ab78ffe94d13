//! The largest segment that two hosts agree on, made smaller on its way between them.

use zerocopy::FromBytes as _;

use super::{Flags, HEADER_LENGTH, Header, Option};
use crate::checksum;

/// Lowers the MSS option of a SYN (RFC 9293 3.7.1) to `most` bytes, and puts the checksum right by the difference
/// (RFC 1624). `segment`: from its TCP header on; the data need not be all there. `false`, and no change: it is no SYN,
/// has no such option, or asks for no more.
pub fn limit_segment_size(segment: &mut [u8], most: u16) -> bool {
    let Ok((header, rest)) = Header::mut_from_prefix(segment) else { return false };
    if !header.flags().contains(Flags::SYN) {
        return false;
    }
    let length = header.header_length().saturating_sub(HEADER_LENGTH);
    let Some(options) = rest.get_mut(..length) else { return false };
    let Some(at) = offset(options) else { return false };
    let Some([high, low]) = options.get_mut(at..at + 2) else { return false };
    let old = u16::from_be_bytes([*high, *low]);
    if old <= most {
        return false;
    }
    [*high, *low] = most.to_be_bytes();
    // The checksum adds up words from the header on: at an odd offset each byte is in the other half of its word.
    let turn = |word: u16| if at % 2 == 0 { word } else { word.swap_bytes() };
    header.set_checksum(checksum::update_u16(header.checksum(), turn(old), turn(most)));
    true
}

/// Where the value of the MSS option lies.
fn offset(bytes: &[u8]) -> std::option::Option<usize> {
    let mut options = super::Options::new(bytes);
    loop {
        if let Option::MaximumSegmentSize(_) = options.next()?.ok()? {
            return (bytes.len() - options.rest()).checked_sub(2);
        }
    }
}
