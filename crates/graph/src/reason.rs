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
    Forgotten "forgotten" "A node did not decide what becomes of the packet: a defect of that node.";
    NoRoom "no-room" "The vector's 256 slots, or the queue of packets that the router originates, were full.";
    Loop "loop" "The packet passed through the graph too many times.";
    HandoffFull "handoff-full" "The ring to another worker was full.";
    PuntFull "punt-full" "The ring to the control thread was full.";
    TransmitFull "transmit-full" "The port's transmit queue was full and stayed full.";
    PortDown "port-down" "The egress port is down or gone.";
    NoPort "no-port" "The packet refers to a port or interface that does not exist, or no longer exists.";
    ClientFull "client-full" "The packet was for a client whose ring was full: the client reads too slowly, or not at all.";
    StackFull "stack-full" "The packet was for a stack whose ring was full: the stack reads too slowly, or not at all.";
    StackGone "stack-gone" "The packet was for a stack that had just ended.";
    StackMalformed "stack-malformed" "A stack sent something other than one whole IP packet.";
    StackFragment "stack-fragment" "A stack sent a fragment of a packet, or a fragment header ahead of other than a datagram.";
    StackProtocol "stack-protocol" "A stack sent a protocol other than TCP and UDP.";
    StackSource "stack-source" "A stack sent a packet whose source address does not belong to this router.";
    StackDestination "stack-destination" "A stack sent to a destination that it may not use: a multicast, broadcast, loopback or link-local address.";
    StackPort "stack-port" "A stack sent from a local port that it neither leases nor serves, and not on a connection that has moved to it.";
    Function "function" "A packet function dropped it.";
    NoBuffer "no-buffer" "The buffer pool was empty.";
    EthernetTruncated "ethernet-truncated" "The frame is shorter than its Ethernet or VLAN header.";
    EthernetNotMine "ethernet-not-mine" "The destination MAC address is not this interface's.";
    EthernetSource "ethernet-source" "The source MAC address is a group address.";
    EtherTypeUnknown "ethertype-unknown" "No node handles this EtherType.";
    VlanUnknown "vlan-unknown" "No sub-interface has this VLAN ID.";
    Ip4Truncated "ip4-truncated" "The packet is shorter than an IPv4 header.";
    Ip4Version "ip4-version" "The version field is not 4.";
    Ip4HeaderLength "ip4-header-length" "The header length is below 20 bytes, or exceeds the packet.";
    Ip4TotalLength "ip4-total-length" "The total length is below the header length, or exceeds the packet.";
    Ip4Checksum "ip4-checksum" "The header checksum is wrong.";
    Ip4Options "ip4-options" "An IPv4 option is malformed; the sender is told, within the ICMP rate limit.";
    Ip4SourceRoute "ip4-source-route" "The packet has a source-route option, which this router does not honour.";
    Ip4Ttl "ip4-ttl" "The time to live expired here.";
    Ip4MartianSource "ip4-martian-source" "The source address must not appear on a network, or not beyond its link.";
    Ip4MartianDestination "ip4-martian-destination" "The destination address must not be forwarded.";
    Ip4DirectedBroadcast "ip4-directed-broadcast" "A broadcast to a connected network while `directed-broadcast` is off.";
    Ip4NotEnabled "ip4-not-enabled" "The ingress interface has no IPv4 address, so IPv4 is disabled on it.";
    Ip4NoRoute "ip4-no-route" "No route matches the destination.";
    Ip4DontFragment "ip4-dont-fragment" "The packet exceeds the egress MTU, and its DF bit forbids fragmentation.";
    Ip4Fragments "ip4-fragments" "Fragmentation failed.";
    Ip4Multicast "ip4-multicast" "Multicast is not routed.";
    Ip6Truncated "ip6-truncated" "The packet is shorter than an IPv6 header.";
    Ip6Version "ip6-version" "The version field is not 6.";
    Ip6PayloadLength "ip6-payload-length" "The payload length exceeds the packet.";
    Ip6Extension "ip6-extension" "The chain of extension headers is malformed or too long, or asks this router, its destination, for something it does not do.";
    Ip6HopLimit "ip6-hop-limit" "The hop limit expired here.";
    Ip6MartianSource "ip6-martian-source" "The source address must not appear on a network.";
    Ip6MartianDestination "ip6-martian-destination" "The destination address must not be forwarded.";
    Ip6LinkLocal "ip6-link-local" "A packet with a link-local address must not leave its link.";
    Ip6NotEnabled "ip6-not-enabled" "The ingress interface has no IPv6 address, so IPv6 is disabled on it.";
    Ip6NoRoute "ip6-no-route" "No route matches the destination.";
    Ip6TooBig "ip6-too-big" "The packet exceeds the egress MTU.";
    Ip6Fragments "ip6-fragments" "Fragmentation failed.";
    Ip6Multicast "ip6-multicast" "Multicast is not routed.";
    Blackhole "blackhole" "The route is a blackhole route.";
    Unreachable "unreachable" "The route is an unreachable route; the sender is told, within the ICMP rate limit.";
    NextHopInvalid "next-hop-invalid" "The route's next hop does not exist, or no longer exists.";
    VrfLoop "vrf-loop" "Routes led the packet from VRF to VRF too many times.";
    ArpMalformed "arp-malformed" "Not a well-formed ARP packet for IPv4 over Ethernet.";
    ArpNotMine "arp-not-mine" "An ARP packet that does not concern an address of this interface.";
    NdMalformed "nd-malformed" "A neighbour discovery message that RFC 4861 requires to be discarded.";
    NeighborUnresolved "neighbor-unresolved" "The neighbour did not answer address resolution.";
    NeighborQueueFull "neighbor-queue-full" "Too many packets were already waiting for this neighbour.";
    NeighborTableFull "neighbor-table-full" "The neighbour table, or its share for unresolved neighbours, was full.";
    IcmpMalformed "icmp-malformed" "The ICMP message is truncated, or its checksum is wrong.";
    IcmpNotAllowed "icmp-not-allowed" "An echo request that must not be answered: its sender is not a single host, or there is no own address to answer from.";
    IcmpUnhandled "icmp-unhandled" "An ICMP message to this router that calls for no action.";
    LocalProtocol "local-protocol" "Addressed to this router, for a protocol that it does not serve.";
    LocalFragment "local-fragment" "A fragment addressed to this router that fits no datagram: it overlaps another, is too long, or is not the last one and no multiple of 8 bytes long.";
    ReassemblyTimeout "reassembly-timeout" "A fragment addressed to this router whose datagram was not complete in time.";
    ReassemblyFull "reassembly-full" "A fragment addressed to this router that was evicted to make room for others.";
    LocalPort "local-port" "Addressed to this router, for a port that it does not serve.";
    TcpMalformed "tcp-malformed" "A TCP segment to this router that belongs to no stack is truncated or has a wrong checksum.";
    ResetRateLimited "reset-rate-limited" "The rate limit for TCP resets was reached; none was sent.";
    ResetNotAllowed "reset-not-allowed" "A TCP segment that belongs to no stack must not be answered: it is a reset, or its sender is not a single host.";
    BridgeFloodLimit "bridge-flood-limit" "The limit on flooded frames was exhausted.";
    BridgeVlan "bridge-vlan" "This bridge member does not carry the frame's VLAN.";
    BridgeSamePort "bridge-same-port" "The destination is behind the member that the frame came from.";
    BridgeLinkLocal "bridge-link-local" "A frame to a reserved group address, which bridges do not forward (802.1D 7.12.6).";
    MtuExceeded "mtu-exceeded" "The packet exceeds the egress interface's MTU, and there is no way to report it.";
    FlowEgress "flow-egress" "The flow's egress port or rewrite does not exist.";
}
