//! Which packets of a link are taken: those whose source the daemon would let the other end send from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use shm::book::BookReader;
use transport::Ends;
use wire::tcp::{self, Flags};
use wire::{Protocol, ipv4, ipv6};

/// Ends that the other one serves at, at most.
const MOST: usize = 64;

/// An end that a process serves at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// The unspecified address stands for all of the router's.
    pub address: SocketAddr,
    /// If it is that of IPv6: for those of IPv6 only.
    pub only_v6: bool,
}

impl Served {
    fn covers(&self, end: SocketAddr) -> bool {
        let all = match self.address.ip() {
            IpAddr::V4(own) => own.is_unspecified() && end.is_ipv4(),
            IpAddr::V6(own) => own.is_unspecified() && (end.is_ipv6() || !self.only_v6),
        };
        self.address.port() == end.port() && (all || self.address.ip() == end.ip())
    }
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is taken in.
    Take,
    /// Who sent it is told to ask the daemon, which may let it pass.
    TurnAway(Ends),
    /// It is no packet for a link.
    Drop,
}

/// What is known of the other end of a link.
#[derive(Debug)]
pub(super) struct Guard {
    /// Its stack.
    peer: u32,
    book: Arc<BookReader>,
    serves: Vec<Served>,
    /// It is of an earlier daemon's: what that has written down may not be so any more.
    pub(super) is_stale: bool,
}

impl Guard {
    pub(super) fn new(peer: u32, book: Arc<BookReader>) -> Self {
        Self { peer, book, serves: Vec::new(), is_stale: false }
    }

    pub(super) fn learn(&mut self, served: Served) {
        if !self.serves.contains(&served) && self.serves.len() < MOST {
            self.serves.push(served);
        }
    }

    /// Judges a packet, which is the receiver's own copy. `own`: the router's addresses.
    pub(super) fn judge(&self, bytes: &[u8], own: &[IpAddr]) -> Verdict {
        let Some((ends, flags)) = read(bytes) else { return Verdict::Drop };
        let Ends { local, remote } = ends;
        let is_the_peers = self.book.lessee(remote.port()) == self.peer
            || self.serves.iter().any(|served| served.covers(remote));
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        let is_own = own.contains(&remote.ip()) && own.contains(&local.ip());
        if is_the_peers && is_own && !(opens && self.is_stale) {
            Verdict::Take
        } else {
            Verdict::TurnAway(ends)
        }
    }
}

/// The ends of a TCP segment, as its receiver sees them, and its flags. `None`: it is none, or in fragments, or has IP options
/// or extension headers, which no stack of ours sends.
fn read(bytes: &[u8]) -> Option<(Ends, Flags)> {
    let (source, target, protocol, offset): (IpAddr, IpAddr, _, _) =
        if let Some(ip) = ipv4::Header::peek(bytes) {
            if ip.header_length() != ipv4::HEADER_LENGTH || ip.is_fragment() {
                return None;
            }
            (ip.source().into(), ip.destination().into(), ip.protocol(), ipv4::HEADER_LENGTH)
        } else {
            let ip = ipv6::Header::peek(bytes)?;
            (ip.source().into(), ip.destination().into(), ip.next_header(), ipv6::HEADER_LENGTH)
        };
    if protocol != Protocol::TCP {
        return None;
    }
    let tcp = tcp::Segment::parse(bytes.get(offset..)?).ok()?.header;
    let remote = SocketAddr::new(source, tcp.source_port());
    Some((Ends { local: SocketAddr::new(target, tcp.destination_port()), remote }, tcp.flags()))
}

/// How it is said that a segment was turned away: where it came from, where it went to, and both ports.
pub(super) fn turning(ends: &Ends) -> ([u8; 36], usize) {
    let mut bytes = [0; 36];
    let (from, to) = (ends.remote, ends.local);
    let mut length = 0;
    let mut put = |part: &[u8]| {
        if let Some(place) = bytes.get_mut(length..length + part.len()) {
            place.copy_from_slice(part);
            length += part.len();
        }
    };
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            put(&from.octets());
            put(&to.octets());
        }
        (from, to) => {
            let six = |ip: IpAddr| match ip {
                IpAddr::V4(four) => four.to_ipv6_mapped(),
                IpAddr::V6(six) => six,
            };
            put(&six(from).octets());
            put(&six(to).octets());
        }
    }
    put(&from.port().to_be_bytes());
    put(&to.port().to_be_bytes());
    (bytes, length)
}

/// The ends that were meant, as who sent the segment sees them. `None`: nonsense.
pub(super) fn turned(bytes: &[u8]) -> Option<Ends> {
    let (from, to, ports): (IpAddr, IpAddr, &[u8]) = match bytes.len() {
        12 => {
            let (from, rest) = bytes.split_first_chunk::<4>()?;
            let (to, ports) = rest.split_first_chunk::<4>()?;
            (Ipv4Addr::from(*from).into(), Ipv4Addr::from(*to).into(), ports)
        }
        36 => {
            let (from, rest) = bytes.split_first_chunk::<16>()?;
            let (to, ports) = rest.split_first_chunk::<16>()?;
            (Ipv6Addr::from(*from).into(), Ipv6Addr::from(*to).into(), ports)
        }
        _ => return None,
    };
    let [a, b, c, d] = *ports.first_chunk()?;
    let local = SocketAddr::new(from, u16::from_be_bytes([a, b]));
    let remote = SocketAddr::new(to, u16::from_be_bytes([c, d]));
    Some(Ends { local, remote })
}
