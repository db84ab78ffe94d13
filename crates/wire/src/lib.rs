//! Every header as a typed view over received bytes, checksums, flow keys, prefixes and builders.
//!
//! Views are references into the packet (`zerocopy`): nothing is copied or allocated. Each parser
//! checks all that its view relies on and names its refusal, so that a drop reason maps onto it.
#![forbid(unsafe_code)]

pub mod arp;
pub mod build;
pub mod checksum;
pub mod ethernet;
pub mod flow;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ndp;
pub mod prefix;
pub mod protocol;
pub mod siphash;
pub mod special;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use ethernet::{EtherType, MacAddr};
pub use prefix::{Ipv4Prefix, Ipv6Prefix};
pub use protocol::Protocol;
