//! What the device says of a packet that it received.

use super::Buffer;

const RX_VLAN: u64 = 1 << 0;
const RX_RSS_HASH: u64 = 1 << 1;
const RX_L4_BAD: u64 = 1 << 3;
const RX_IP_BAD: u64 = 1 << 4;
const RX_VLAN_STRIPPED: u64 = 1 << 6;
const RX_IP_GOOD: u64 = 1 << 7;
const RX_L4_GOOD: u64 = 1 << 8;

/// What the device says of a checksum in a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The device did not look.
    Unknown,
    /// Right.
    Good,
    /// Wrong.
    Bad,
}

impl Buffer {
    /// The DPDK port that it was received on.
    #[inline(always)]
    #[must_use]
    pub fn port(&self) -> u16 {
        self.mbuf().port
    }

    /// Sets the port that it counts as received on.
    #[inline(always)]
    pub fn set_port(&mut self, port: u16) {
        self.mbuf_mut().port = port;
    }

    /// What the device found out about the headers: `RTE_PTYPE_*`, 0 when nothing.
    #[inline(always)]
    #[must_use]
    pub fn packet_type(&self) -> u32 {
        self.mbuf().packet_type
    }

    /// The RSS hash, where the device computed one.
    #[inline(always)]
    #[must_use]
    pub fn rss_hash(&self) -> Option<u32> {
        let mbuf = self.mbuf();
        (mbuf.ol_flags & RX_RSS_HASH != 0).then_some(mbuf.rss)
    }

    /// All of DPDK's receive flags: `RTE_MBUF_F_*`.
    #[inline(always)]
    #[must_use]
    pub fn flags(&self) -> u64 {
        self.mbuf().ol_flags
    }

    /// What the device says of the IPv4 header checksum.
    #[inline(always)]
    #[must_use]
    pub fn ip_checksum(&self) -> Checksum {
        verdict(self.mbuf().ol_flags, RX_IP_GOOD, RX_IP_BAD)
    }

    /// What the device says of the TCP or UDP checksum.
    #[inline(always)]
    #[must_use]
    pub fn l4_checksum(&self) -> Checksum {
        verdict(self.mbuf().ol_flags, RX_L4_GOOD, RX_L4_BAD)
    }

    /// The tag control information of a VLAN tag that the device took off the packet.
    #[inline(always)]
    #[must_use]
    pub fn stripped_vlan(&self) -> Option<u16> {
        let mbuf = self.mbuf();
        let stripped = RX_VLAN | RX_VLAN_STRIPPED;
        (mbuf.ol_flags & stripped == stripped).then_some(mbuf.vlan_tci)
    }
}

#[inline(always)]
fn verdict(flags: u64, good: u64, bad: u64) -> Checksum {
    match (flags & good != 0, flags & bad != 0) {
        (true, false) => Checksum::Good,
        (false, true) => Checksum::Bad,
        // Both bits mean `none` in DPDK: the packet has no valid checksum yet, its content is.
        _ => Checksum::Unknown,
    }
}
