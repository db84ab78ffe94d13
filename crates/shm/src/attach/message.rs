//! What is said. Every field is checked by who receives it: these types only say what can be said.

use serde::{Deserialize, Serialize};

use crate::queue::{Layout, LayoutError};

/// Version of these messages and of the queues' layout: both sides must have the same.
pub const PROTOCOL: u32 = 3;
/// Version of this library, for people.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bits of [`Meta::flags`](crate::Meta).
pub mod flag {
    /// From a client: the packet enters the graph as if it came from the port, instead of leaving by it.
    pub const GRAPH: u8 = 1;
    /// To a client: a copy; the packet itself went on.
    pub const COPY: u8 = 2;
    /// The slot holds a [`Reference`](crate::attach::Reference) to the packet, which lies in a device's buffer.
    pub const REFERENCE: u8 = 4;
    /// From a client: the slot holds numbers of buffers that come back ([`places`](crate::attach::places)).
    pub const RETURN: u8 = 8;
}

/// From a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// First of all.
    Hello(Hello),
    /// Which ports there are.
    Ports,
    /// Queues.
    Open(Open),
    /// The queues of that number begin: the client has mapped their segment, and maps it no more
    /// ([`Segment::close`](crate::Segment::close)).
    Start(u32),
    /// Gives queues back, by their number.
    Close(u32),
}

/// Who comes. Another version's may say more, and is to be told that it is another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    /// [`PROTOCOL`] of its library.
    pub protocol: u32,
    /// [`VERSION`] of its library.
    pub library: String,
    /// What it calls itself: 1 to 63 bytes, shown to people.
    pub name: String,
}

/// What becomes of a packet that a client is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The client gets it, and nobody else.
    Divert,
    /// The client gets a copy.
    Copy,
    /// The client gets nothing: it only sends.
    Nothing,
}

/// How packets are spread over channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// One after the other.
    RoundRobin,
    /// A port's packets all go to one channel: its number modulo the number of channels.
    Port,
    /// A flow's packets all go to one channel, by their hash.
    Flow,
}

/// Asks for queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Open {
    /// Names of ports; none: all.
    #[serde(default)]
    pub ports: Vec<String>,
    /// What it wants of them.
    pub take: Take,
    /// How that is spread.
    pub spread: Spread,
    /// Only packets that match.
    #[serde(default)]
    pub filter: FilterText,
    /// Channels: one for each of its threads, 1 to 64.
    pub channels: u16,
    /// Slots of each ring: a power of two.
    pub slots: u32,
    /// Bytes of packet that a slot holds.
    pub capacity: u32,
    /// A receive queue of a port for this client alone, without copies; then `take` is [`Take::Divert`], there
    /// is one channel, and neither ports nor a filter are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<PortQueue>,
}

/// A receive queue of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortQueue {
    /// The port's name.
    pub port: String,
    /// The queue's number, from 0.
    pub queue: u16,
}

/// Which packets: all that is given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FilterText {
    /// EtherType, behind VLAN tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<u16>,
    /// `tcp`, `udp`, `icmp`, `icmp6`, `arp`, or the number of an IP protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Address of either end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<std::net::IpAddr>,
    /// Source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<std::net::IpAddr>,
    /// Destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<std::net::IpAddr>,
    /// Source port of TCP or UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// Destination port of TCP or UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Welcome(Welcome),
    /// To [`Request::Ports`].
    Ports(Vec<PortInfo>),
    /// To [`Request::Open`]. File descriptors come with it: the segment, a doorbell for each channel, which the
    /// daemon rings, and one for each worker, which the client rings by sending a byte
    /// ([`Doorbell::from_file`](crate::Doorbell)). Nothing can be sent to the former.
    Opened(Opened),
    /// To [`Request::Start`].
    Started(u32),
    /// To [`Request::Close`].
    Closed(u32),
    /// To any.
    Refused(Refusal),
}

/// The daemon says who it is. As in [`Hello`], there may be more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Welcome {
    /// Its [`PROTOCOL`].
    pub protocol: u32,
    /// Its version.
    pub daemon: String,
    /// The client's number, as in `millrace show clients`.
    pub client: u32,
    /// Ports that the client may use.
    pub ports: Vec<PortInfo>,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortInfo {
    /// Its name.
    pub name: String,
    /// Its number in [`Meta::port`](crate::Meta).
    pub number: u8,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Bytes of an IP packet.
    pub mtu: u16,
}

/// Queues that were opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Opened {
    /// Their number.
    pub queues: u32,
    /// Workers that serve them: so many doorbells to ring.
    pub workers: u16,
    /// Its channels.
    pub channels: Vec<ChannelPlace>,
    /// The device's buffers, for a dedicated receive queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<BufferPlace>,
}

/// Where a device's buffers lie in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BufferPlace {
    /// Bytes from the segment's beginning.
    pub offset: u64,
    /// Buffers.
    pub count: u32,
    /// Bytes of each.
    pub size: u32,
}

/// A channel: the rings of one thread of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChannelPlace {
    /// A ring from each worker and one to each, in the workers' order.
    pub rings: Vec<[RingPlace; 2]>,
}

/// Which of a channel's two rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the daemon.
    Receive,
    /// To the daemon.
    Transmit,
}

/// Where a ring lies in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RingPlace {
    /// Bytes from the segment's beginning.
    pub offset: u64,
    /// Slots.
    pub slots: u32,
    /// Bytes of packet that a slot holds.
    pub capacity: u32,
}

impl RingPlace {
    /// Its size.
    ///
    /// # Errors
    /// [`LayoutError`] when no queue has such a size.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        Layout::new(self.slots, self.capacity)
    }
}

impl ChannelPlace {
    /// The ring from or to the worker of that place.
    #[must_use]
    pub fn ring(&self, worker: usize, direction: Direction) -> Option<RingPlace> {
        let [receive, transmit] = self.rings.get(worker)?;
        Some(match direction {
            Direction::Receive => *receive,
            Direction::Transmit => *transmit,
        })
    }
}

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of reason.
    pub kind: RefusalKind,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Kinds of refusals, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The other side has another [`PROTOCOL`].
    Version,
    /// The client may not do that.
    Permission,
    /// There is no such port or queue.
    Unknown,
    /// The request makes no sense.
    Invalid,
    /// There is no memory, or no descriptor, or no place for it.
    Resources,
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Refusal {
    /// A reason.
    #[must_use]
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
