//! What interfaces do with IP packets besides forwarding them.
//!
//! A feature is a node on one of two arcs: packets pass the input arc between their validation and the look-up, by the
//! features of the interface that they came in by, and the output arc with their new Ethernet header on, before they go
//! to a port or a bridge, by those of the interface that they leave by. To add one, see `docs/features.md`.

use graph::FeatureSet;

/// Settings of an interface's features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// What SYNs that come in or leave may ask for over IPv4: bytes of TCP data in a segment. Over IPv6 it is 20 less,
    /// as the header is longer.
    pub tcp_mss: Option<u16>,
}

impl Features {
    /// Those on the input arc that are settings.
    #[inline]
    #[must_use]
    pub fn input(&self) -> FeatureSet {
        let set = FeatureSet::default();
        if self.tcp_mss.is_some() { set.with(InputFeature::TcpMss as u8) } else { set }
    }

    /// Those on the output arc.
    #[inline]
    #[must_use]
    pub fn output(&self) -> FeatureSet {
        let set = FeatureSet::default();
        if self.tcp_mss.is_some() { set.with(OutputFeature::TcpMss as u8) } else { set }
    }
}

/// Features of the input arc, in the order in which packets meet them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum InputFeature {
    /// `tcp-mss-input`
    TcpMss,
    /// `vrf-input`: packets leave the arc here, so it is the last. An interface has it by its VRF
    /// ([`Interface::vrf`](super::Interface::vrf)).
    Vrf,
}

impl InputFeature {
    /// All of them, with the names of their nodes.
    pub const NODES: [(Self, &'static str); 2] =
        [(Self::TcpMss, "tcp-mss-input"), (Self::Vrf, "vrf-input")];
}

/// Features of the output arc, in the order in which packets meet them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum OutputFeature {
    /// `tcp-mss-output`
    TcpMss,
}

impl OutputFeature {
    /// All of them, with the names of their nodes.
    pub const NODES: [(Self, &'static str); 1] = [(Self::TcpMss, "tcp-mss-output")];
}
