//! Frames that are too short for some devices.

use dpdk::Buffer;

/// Shorter frames have no room for an IP header behind that of Ethernet. Some drivers take none that are much shorter (i40e,
/// iavf and ice 17 bytes, mlx5 18), others look for that header.
const RUNT: usize = 14 + 20;
/// What they are made: bytes of the shortest frame on the wire (IEEE 802.3 3.2.8), less its check sequence.
const WHOLE: usize = 60;

/// Whether a frame of that length is to be padded before a device gets it.
#[inline]
pub(super) fn is_runt(length: usize) -> bool {
    length < RUNT
}

/// Pads a frame with zeros. `None`: its buffer has no room.
#[inline]
pub(super) fn padded(mut buffer: Buffer) -> Option<Buffer> {
    if is_runt(buffer.len()) {
        let missing = WHOLE.saturating_sub(buffer.len());
        buffer.append(missing)?.fill(0);
    }
    Some(buffer)
}
