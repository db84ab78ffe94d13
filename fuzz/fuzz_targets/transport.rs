//! Two stacks joined by a wire in the fuzzer's hands: packets are delivered, lost, doubled, changed (with
//! checksums put right), made up from what was seen, or plain bytes; ICMP errors quote what was sent; time
//! passes; sockets are called. Whatever happens: every packet sent is sound, answers are bounded, windows
//! are not taken back, and at the end nothing is left.
#![no_main]

#[path = "transport/bytes.rs"]
mod bytes;
#[path = "transport/packets.rs"]
mod packets;
#[path = "transport/world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;

use bytes::Bytes;
use world::World;

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let mut world = World::new(&mut bytes);
    while let Some(operation) = bytes.next() {
        world.act(operation, &mut bytes);
    }
    world.end();
});
