//! Stacks beside the router, through the whole graph: frames in, rings out; rings in, frames out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod delivery;
#[path = "../router/frames.rs"]
mod frames;
mod resets;
#[path = "../router/mod.rs"]
mod router;
mod sending;
#[path = "../router/stack.rs"]
mod stack;
mod vacant;

use stack::segment;
use wire::build::Payload;
use wire::ipv4;
use wire::tcp::Flags;

const ETHERNET: usize = 14;

fn syn(port: u16) -> Payload<'static> {
    segment((port, 80), Flags::SYN, &[])
}

/// A frame's fragments, of `size` bytes of payload each.
fn cut(frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (link, packet) = frame.split_at(ETHERNET);
    let (header, payload) = packet.split_at(20);
    let count = payload.len().div_ceil(size);
    let part = |(at, chunk): (usize, &[u8])| {
        let mut header = header.to_vec();
        let fixed = ipv4::Header::peek_mut(&mut header).unwrap();
        fixed.set_fragment(false, at + 1 < count, (at * size / 8) as u16);
        fixed.set_total_length((20 + chunk.len()) as u16);
        ipv4::write_checksum(&mut header).unwrap();
        [link, &header, chunk].concat()
    };
    payload.chunks(size).enumerate().map(part).collect()
}
