//! A packet function that drops UDP datagrams to one port, IPv4 and untagged.
//!
//! `cargo build --release -p millrace-function --example drop_port`, copy
//! `target/release/examples/libdrop_port.so` to the folder of functions as root, then
//! `millrace function add libdrop_port.so --argument 53`.

use millrace_function::{Function, Packet, Verdict, export};

struct DropPort(u16);

impl Function for DropPort {
    fn create(argument: &str) -> Result<Self, String> {
        argument.parse().map(Self).map_err(|_| "give a UDP port: 0 to 65535".to_owned())
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        if destination(packet.bytes()) == Some(self.0) { Verdict::Drop } else { Verdict::Pass }
    }
}

/// The UDP port that a frame goes to.
fn destination(frame: &[u8]) -> Option<u16> {
    let ip = frame.get(14..).filter(|_| frame.get(12..14) == Some(&[0x08, 0x00]))?;
    let header = usize::from(ip.first()? & 15) * 4;
    let fragment = u16::from_be_bytes(ip.get(6..8)?.try_into().ok()?) & 0x1fff;
    if *ip.get(9)? != 17 || fragment != 0 {
        return None;
    }
    Some(u16::from_be_bytes(ip.get(header + 2..header + 4)?.try_into().ok()?))
}

export!(DropPort);
