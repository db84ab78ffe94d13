//! Which stack of a host gets a packet, where a host has two.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use transport::Ends;

/// Stacks of connections, by the host's own address and the other's.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    /// With when it gets their packets: ns. What was so before does until then.
    stacks: BTreeMap<(SocketAddr, SocketAddr), Vec<(u64, usize)>>,
}

impl Steering {
    /// From then on (ns) a connection's packets are for that stack.
    pub(crate) fn turn(&mut self, at: u64, ends: &Ends, stack: usize) {
        self.stacks.entry((ends.local, ends.remote)).or_default().push((at, stack));
    }

    /// The stack for a packet that arrives then (ns); `None`: the host's first.
    pub(crate) fn stack_for(&self, packet: &[u8], at: u64) -> Option<usize> {
        let turns = self.stacks.get(&ends(packet)?)?;
        turns.iter().rev().find(|(from, _)| *from <= at).map(|(_, stack)| *stack)
    }
}

/// Own and other end of the connection that a packet is for, or that an ICMP error is about.
fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (source, target, protocol, rest) = match packet.first()? >> 4 {
        4 => {
            let address =
                |at| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
            (address(12)?, address(16)?, *packet.get(9)?, packet.get(20..)?)
        }
        _ => {
            let address =
                |at| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
            (address(8)?, address(24)?, *packet.get(6)?, packet.get(40..)?)
        }
    };
    if protocol != 6 {
        // The packet that it quotes went the other way.
        return ends(rest.get(8..)?).map(|(other, own)| (own, other));
    }
    let port = |at| Some(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?));
    Some((SocketAddr::new(target, port(2)?), SocketAddr::new(source, port(0)?)))
}
