//! Frames that must not leave for the kernel because a stack has them.

use std::fmt;

use graph::Served;
use wire::{EtherType, ethernet, ipv4, ipv6, vlan};

use super::SteeringReader;
use crate::state::{State, reserved};

/// VLAN tags that are looked behind at most.
const TAGS: usize = 2;

/// Knows which received frames are for stacks.
pub struct ServedFrames {
    state: State,
    steering: SteeringReader,
}

impl ServedFrames {
    /// The routes say which addresses are the router's own.
    #[must_use]
    pub fn new(state: State, steering: SteeringReader) -> Self {
        Self { state, steering }
    }

    fn is_own(&self, packet: &[u8]) -> bool {
        let mut value = [reserved::MISS];
        if let Some(header) = ipv4::Header::peek(packet) {
            self.state.routes4.lookup_batch(&[header.destination().to_bits()], &mut value);
        } else if let Some(header) = ipv6::Header::peek(packet) {
            self.state.routes6.lookup_batch(&[header.destination().to_bits()], &mut value);
        }
        value == [reserved::LOCAL]
    }
}

impl fmt::Debug for ServedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedFrames").finish_non_exhaustive()
    }
}

impl Served for ServedFrames {
    fn serves(&self, frame: &[u8]) -> bool {
        let Some(packet) = network(frame) else { return false };
        self.steering.stack_of(packet).is_some() && self.is_own(packet)
    }
}

/// The IP packet of a frame.
fn network(frame: &[u8]) -> Option<&[u8]> {
    let (header, mut rest) = ethernet::Header::parse(frame).ok()?;
    let mut ether_type = header.ether_type();
    for _ in 0..TAGS {
        if ether_type.is_vlan() {
            let (tag, after) = vlan::Tag::parse(rest).ok()?;
            (ether_type, rest) = (tag.ether_type(), after);
        }
    }
    matches!(ether_type, EtherType::IPV4 | EtherType::IPV6).then_some(rest)
}
