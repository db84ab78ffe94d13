//! What is said. Every field is checked by who receives it: these types only say what can be said.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::attach::{ChannelPlace, Refusal};

use super::link::{Introduce, Introduced};
use super::moving::{Abandon, CarrierId, Deposit, Event, Hand, WaitOut, Withdraw, Withdrawn};

/// Version of these messages and of what lies in a stack's segment: both sides must have the same.
pub const PROTOCOL: u32 = 11;
/// Version of this library, for people.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// From a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// First of all.
    Hello(Hello),
    /// A stack's queues.
    OpenStack(OpenStack),
    /// Sessions on a stack that one of the daemon's stack workers runs.
    OpenShared(OpenShared),
    /// The stack of that number begins: the process has mapped its segment, and maps it no more.
    StartStack(u32),
    /// Gives a stack back, by its number.
    CloseStack(u32),
    /// A stack serves what a socket is bound to. One descriptor comes along: the socket.
    Listen(Listen),
    /// The listener of that number does not take new connections for that stack any more: stack, listener.
    Unlisten(u32, u32),
    /// A range of local ports for a stack's outgoing connections.
    Lease(Lease),
    /// Which way packets to an end go.
    Route(Route),
    /// Instead of a hello: this connection is to be the carrier of a connection that the stack of that number has, one of the
    /// same user's. Nothing is said on it any more after the reply.
    Carrier(u32),
    /// The daemon takes a connection that has a carrier. One descriptor comes along: its file.
    Deposit(Deposit),
    /// Asks for a connection that the daemon or another process has.
    Withdraw(Withdraw),
    /// The process does not have a connection that it was asked for ([`Event::Recall`]), or does not give it.
    Decline(CarrierId),
    /// The daemon ends connections that nobody holds any more. One descriptor comes along: their file.
    Abandon(Abandon),
    /// The daemon waits out the TIME-WAITs of a stack that is about to end. One descriptor comes along: their file.
    WaitOut(WaitOut),
    /// Connections that wait to be accepted are for the listener's other members. One descriptor comes along: their file.
    Hand(Hand),
    /// A stack is about to connect: which stacks serve there, and links to them.
    Introduce(Introduce),
    /// The process has closed the link of that number, or does not want it.
    Unlink(u32),
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

/// Asks for a stack's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OpenStack {
    /// Slots of each ring: a power of two.
    pub slots: u32,
    /// Bytes of packet that a slot holds.
    pub capacity: u32,
    /// Places in the table of claims: a power of two; as many flows of listeners as it expects, and half as many again.
    pub claims: u32,
    /// Places in the table of connections: those beyond are neither shown nor reset when the process dies. It has a
    /// [quarter as many](crate::connections::sockets) for UDP sockets.
    pub connections: u32,
}

/// Asks for sessions on a stack of the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OpenShared {
    /// Sessions at most: a power of two from 64 to 65,536. Their numbers are below.
    pub sessions: u32,
    /// Chunks of 4 KiB in each direction, for data that one side has written and the other has not read.
    pub chunks: u32,
}

/// Where a process's TCP/IP stack runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In the process, on its own threads.
    #[default]
    Inline,
    /// On a stack worker of the daemon.
    Shared,
}

impl Placement {
    /// The one that people call so, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "inline" => Some(Self::Inline),
            "shared" => Some(Self::Shared),
            _ => None,
        }
    }
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Asks for new flows to what a socket is bound to. Asking again, with the same socket or another that is bound alike,
/// changes the weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Listen {
    /// The stack that serves.
    pub stack: u32,
    /// Its share of new flows among the listener's members. 0: only while all others have 0 too.
    pub weight: u8,
    /// The process does something else while connections wait there: new flows are for members that do not.
    #[serde(default)]
    pub busy: bool,
}

/// Asks for local ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lease {
    /// The stack that opens connections from them.
    pub stack: u32,
    /// The range that begins there and no other: one that the process had of a daemon before, and has connections from.
    pub first: Option<u16>,
}

/// Asks which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Route {
    /// Their protocol.
    pub protocol: TransportProtocol,
    /// Where they go. Port 0 stands for none: to one of the router's addresses the way is through Millrace, from that address.
    pub destination: SocketAddr,
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Welcome(Welcome),
    /// To [`Request::OpenStack`]. File descriptors come with it: the segment, a doorbell that the daemon rings, and one
    /// for each worker, which the process rings.
    StackOpened(StackOpened),
    /// To [`Request::OpenShared`]. File descriptors come with it: the segment, two doorbells that the daemon rings, for answers and
    /// for events, and one that the process rings.
    SharedOpened(SharedOpened),
    /// To [`Request::StartStack`].
    StackStarted(u32),
    /// To [`Request::CloseStack`].
    StackClosed(u32),
    /// To [`Request::Listen`].
    Listening(Listening),
    /// To [`Request::Unlisten`].
    Unlistened(u32, u32),
    /// To [`Request::Lease`].
    Leased(PortRange),
    /// To [`Request::Route`].
    Routed(Routed),
    /// To [`Request::Carrier`]. It is to stay unread.
    Carried(CarrierId),
    /// To [`Request::Deposit`].
    Deposited(CarrierId),
    /// To [`Request::Withdraw`]. One file descriptor comes with it.
    Withdrawn(Withdrawn),
    /// To [`Request::Withdraw`]: another process has it and is asked for it. [`Event::Parked`] or [`Event::Lost`] follows within
    /// a second or so.
    Recalling(CarrierId),
    /// To [`Request::Decline`].
    Declined(CarrierId),
    /// To [`Request::Abandon`]: so many were taken. The others are reset.
    Abandoned(u32),
    /// To [`Request::WaitOut`]: so many were taken. What comes again for the others is reset.
    WaitingOut(u32),
    /// To [`Request::Hand`]: so many were taken. The others are reset.
    Handed(u32),
    /// To [`Request::Introduce`]. File descriptors come with it if a link was made: its memory, this end's bell, and the
    /// [book](crate::book) of leased ports.
    Introduced(Introduced),
    /// To [`Request::Unlink`].
    Unlinked(u32),
    /// To nothing.
    Event(Event),
    /// To any.
    Refused(Refusal),
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The daemon says who it is. As in [`Hello`], there may be more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Welcome {
    /// Its [`PROTOCOL`].
    pub protocol: u32,
    /// Its version.
    pub daemon: String,
    /// The process's number, as in `millrace show stacks`.
    pub client: u32,
    /// Addresses of the router, on which listeners can be reached.
    pub addresses: Vec<IpAddr>,
    /// Where stacks are to run, unless the process knows better.
    #[serde(default)]
    pub placement: Placement,
}

/// Queues of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StackOpened {
    /// Its number.
    pub stack: u32,
    /// A ring from each worker and one to each, in the workers' order.
    pub rings: ChannelPlace,
    /// The table of claims.
    pub claims: ClaimsPlace,
    /// The table of connections.
    pub connections: ConnectionsPlace,
    /// What all stacks of the machine share, so that sequence numbers and time stamps between the same ends go on when a
    /// connection moves.
    pub seed: [u64; 2],
}

/// Sessions on a stack of the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SharedOpened {
    /// Its number.
    pub stack: u32,
    /// As was asked: what lies where in the segment follows from both.
    pub sessions: u32,
    /// As was asked.
    pub chunks: u32,
}

/// Where the table of claims lies in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClaimsPlace {
    /// Bytes from the segment's beginning.
    pub offset: u64,
    /// Places for tags of eight bytes: a power of two.
    pub places: u32,
    /// The key of the tags.
    pub key: [u64; 2],
}

/// Where the table of [connections](crate::connections) lies in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConnectionsPlace {
    /// Bytes from the segment's beginning.
    pub offset: u64,
    /// Places for connections.
    pub places: u32,
}

/// A listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Listening {
    /// Its number.
    pub listener: u32,
    /// Its protocol, as the socket says.
    pub protocol: TransportProtocol,
    /// Its address, as the socket says. The unspecified IPv6 address stands for both versions unless `only_v6`.
    pub address: SocketAddr,
    /// IPv6 only.
    pub only_v6: bool,
    /// Some stack takes new flows there that is not busy.
    pub taken: bool,
}

/// Ports from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// How many.
    pub count: u16,
}

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routed {
    /// Through Millrace.
    Millrace {
        /// The local address that they come from.
        source: IpAddr,
        /// Bytes of an IP packet on the way out.
        mtu: u16,
    },
    /// Millrace does not know the way: the kernel may.
    Kernel,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_went() {
        let listening = Reply::Listening(Listening {
            listener: 7,
            protocol: TransportProtocol::Tcp,
            address: "[::]:80".parse().unwrap(),
            only_v6: false,
            taken: true,
        });
        let bytes = serde_json::to_vec(&listening).unwrap();
        assert_eq!(crate::attach::parse::<Reply>(&bytes).unwrap(), listening);
        let routed = r#"{"routed":{"millrace":{"source":"192.0.2.1","mtu":1500}}}"#;
        let wanted = Routed::Millrace { source: "192.0.2.1".parse().unwrap(), mtu: 1500 };
        let parsed: Reply = crate::attach::parse(routed.as_bytes()).unwrap();
        assert_eq!(parsed, Reply::Routed(wanted));
        let strange = br#"{"listen":{"stack":1,"weight":300}}"#;
        assert!(crate::attach::parse::<Request>(strange).is_err());
    }
}
