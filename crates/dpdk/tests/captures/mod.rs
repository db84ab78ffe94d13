//! Capture files.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

/// A capture file of `packets`: the classic format, little-endian, Ethernet.
pub fn write_capture(path: &Path, packets: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for packet in packets {
        let length = packet.len() as u32;
        for word in [1, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    std::fs::write(path, file).unwrap();
}

/// The packets of one.
pub fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let mut packets = Vec::new();
    let mut rest = &file[24..];
    while let Some((head, tail)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        packets.push(tail[..length].to_vec());
        rest = &tail[length..];
    }
    packets
}
