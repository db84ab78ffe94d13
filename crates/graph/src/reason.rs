//! The one vocabulary of drops: counters, trace, capture comments, API and docs use these words.

macro_rules! reasons {
    ($($variant:ident $name:literal $words:literal;)+) => {
        /// Why a packet was dropped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason { $(#[doc = $words] $variant),+ }

        impl Reason {
            /// Every reason, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The reason's name, e.g. `ip4-checksum`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Self::$variant => $words),+ }
            }
        }
    };
}

reasons! {
    Forgotten "forgotten" "A node did not say what to do with the packet: a defect of that node.";
    NoRoom "no-room" "All 256 slots of the vector, or the queue of originated packets, were in use.";
    Loop "loop" "The packet went round the graph too often.";
    HandoffFull "handoff-full" "The ring to another worker was full.";
    PuntFull "punt-full" "The ring to the control thread was full.";
    TransmitFull "transmit-full" "The port's transmit queue stayed full.";
    PortDown "port-down" "The egress port is down or gone.";
    NoPort "no-port" "The packet names a port or interface that does not exist (any more).";
    ClientFull "client-full" "The packet was a client's, whose ring was full: it reads too slowly, or not at all.";
    Function "function" "A packet function dropped it.";
    NoBuffer "no-buffer" "The buffer pool was empty.";
    EthernetTruncated "ethernet-truncated" "The frame is shorter than its Ethernet or VLAN header.";
    EthernetNotMine "ethernet-not-mine" "The destination MAC address is not this interface's.";
    EthernetSource "ethernet-source" "The source MAC address is a group address.";
    EtherTypeUnknown "ethertype-unknown" "Nothing here takes this EtherType.";
    VlanUnknown "vlan-unknown" "No sub-interface has this VLAN id.";
    Ip4Truncated "ip4-truncated" "Shorter than an IPv4 header.";
    Ip4Version "ip4-version" "The version field is not 4.";
    Ip4HeaderLength "ip4-header-length" "The header length is below 20 bytes or beyond the packet.";
    Ip4TotalLength "ip4-total-length" "The total length is below the header's or beyond the packet.";
    Ip4Checksum "ip4-checksum" "The header checksum is wrong.";
    Ip4Options "ip4-options" "A malformed IPv4 option.";
    Ip4SourceRoute "ip4-source-route" "A source-route option, which this router does not honour.";
    Ip4Ttl "ip4-ttl" "The time to live ran out here.";
    Ip4MartianSource "ip4-martian-source" "A source address that may not appear on a network.";
    Ip4MartianDestination "ip4-martian-destination" "A destination address that is not forwarded.";
    Ip4DirectedBroadcast "ip4-directed-broadcast" "A broadcast to a connected network, and `directed-broadcast` is off.";
    Ip4NotEnabled "ip4-not-enabled" "The interface has no IPv4 address and takes no IPv4.";
    Ip4NoRoute "ip4-no-route" "No route matches the destination.";
    Ip4DontFragment "ip4-dont-fragment" "Larger than the egress MTU, and must not be fragmented.";
    Ip4Fragments "ip4-fragments" "The packet could not be fragmented.";
    Ip4Multicast "ip4-multicast" "Multicast is not routed.";
    Ip6Truncated "ip6-truncated" "Shorter than an IPv6 header.";
    Ip6Version "ip6-version" "The version field is not 6.";
    Ip6PayloadLength "ip6-payload-length" "The payload length reaches beyond the packet.";
    Ip6Extension "ip6-extension" "A malformed or over-long chain of extension headers.";
    Ip6HopLimit "ip6-hop-limit" "The hop limit ran out here.";
    Ip6MartianSource "ip6-martian-source" "A source address that may not appear on a network.";
    Ip6MartianDestination "ip6-martian-destination" "A destination address that is not forwarded.";
    Ip6LinkLocal "ip6-link-local" "A link-local address does not leave its link.";
    Ip6NotEnabled "ip6-not-enabled" "The interface has no IPv6 address and takes no IPv6.";
    Ip6NoRoute "ip6-no-route" "No route matches the destination.";
    Ip6TooBig "ip6-too-big" "Larger than the egress MTU.";
    Ip6Multicast "ip6-multicast" "Multicast is not routed.";
    Blackhole "blackhole" "A blackhole route.";
    Unreachable "unreachable" "An unreachable route; the sender was told where the rate allowed.";
    NextHopInvalid "next-hop-invalid" "The route's next hop does not exist (any more).";
    ArpMalformed "arp-malformed" "Not a well-formed ARP packet for IPv4 over Ethernet.";
    ArpNotMine "arp-not-mine" "An ARP packet that is not about an address of this interface.";
    NdMalformed "nd-malformed" "A neighbour discovery message that RFC 4861 says to discard.";
    NeighborUnresolved "neighbor-unresolved" "The neighbour did not answer.";
    NeighborQueueFull "neighbor-queue-full" "Too many packets wait for this neighbour.";
    NeighborTableFull "neighbor-table-full" "Too many neighbours, or too many unresolved ones.";
    IcmpMalformed "icmp-malformed" "A truncated ICMP message or one with a wrong checksum.";
    IcmpRateLimited "icmp-rate-limited" "The rate of ICMP errors was used up; none was sent.";
    IcmpNotAllowed "icmp-not-allowed" "An ICMP error may not be sent about this packet.";
    IcmpUnhandled "icmp-unhandled" "An ICMP message to this router that asks for nothing.";
    LocalProtocol "local-protocol" "To this router itself, for a protocol that nothing here serves.";
    LocalFragment "local-fragment" "A fragment to this router itself that fits no datagram: it overlaps, or is too long.";
    ReassemblyTimeout "reassembly-timeout" "A fragment to this router itself whose others did not come in time.";
    ReassemblyFull "reassembly-full" "A fragment to this router itself that had to make room for others.";
    LocalPort "local-port" "To this router itself, for a port that nothing here serves.";
    BridgeFloodLimit "bridge-flood-limit" "The rate of flooded frames was used up.";
    BridgeVlan "bridge-vlan" "The VLAN is not allowed on this member of the bridge.";
    BridgeSamePort "bridge-same-port" "The destination is on the member that the frame came from.";
    BridgeLinkLocal "bridge-link-local" "A frame to a bridge's reserved group address (802.1D 7.12.6).";
    MtuExceeded "mtu-exceeded" "Larger than the egress interface's MTU, where nothing can be said back.";
    FlowEgress "flow-egress" "The flow's egress port or rewrite does not exist.";
}
