//! ICMP errors: which connection's segment they quote, and what they say.

use std::net::{IpAddr, SocketAddr};

use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use super::Stack;
use crate::ends::Ends;
use crate::failure::Failure;
use crate::fifo::Buffers;
use crate::packet::Sink;
use crate::reason::Reason;
use crate::segment::Upper;
use crate::sequence::Seq;
use crate::tcp::icmp::Trouble;
use crate::time_wait::TIME_WAIT;

impl<B: Buffers> Stack<B> {
    pub(super) fn take_icmp<S: Sink + ?Sized>(
        &mut self,
        upper: &Upper<'_>,
        packet: &[u8],
        sink: &mut S,
    ) -> Result<(), Reason> {
        let (trouble, quoted) = if upper.protocol == Protocol::ICMPV4 {
            trouble_v4(upper.bytes)?
        } else {
            trouble_v6(upper.bytes, packet)?
        };
        let (ends, seq) = match quoted_flow(quoted).ok_or(Reason::IcmpOther)? {
            (ends, Quoted::Segment(seq)) => (ends, seq),
            (ends, Quoted::Datagram(data)) => {
                return self.on_datagram_trouble(&ends, trouble, (packet, upper.bytes, data));
            }
        };
        let index = self.find(&ends).filter(|value| value & TIME_WAIT == 0);
        let index = index.ok_or(Reason::IcmpUnmatched)?;
        self.step(index, sink, |tcb| tcb.on_icmp(seq, trouble));
        Ok(())
    }
}

fn trouble_v4(bytes: &[u8]) -> Result<(Trouble, &[u8]), Reason> {
    let (header, quoted) = icmpv4::Header::parse(bytes).map_err(|_| Reason::IcmpOther)?;
    let trouble = match header.message() {
        icmpv4::Message::Unreachable { code: icmpv4::unreachable::FRAGMENTATION_NEEDED, mtu } => {
            Trouble::TooBig(mtu)
        }
        icmpv4::Message::Unreachable { code, .. } => {
            Trouble::of(Failure::of_unreachable_v4(code).ok_or(Reason::IcmpOther)?)
        }
        icmpv4::Message::TimeExceeded { .. } => Trouble::Soft(Failure::HostUnreachable),
        icmpv4::Message::ParameterProblem { .. } => Trouble::Hard(Failure::Parameter),
        _ => return Err(Reason::IcmpOther),
    };
    Ok((trouble, quoted))
}

fn trouble_v6<'a>(bytes: &'a [u8], packet: &[u8]) -> Result<(Trouble, &'a [u8]), Reason> {
    let outer = ipv6::Header::peek(packet).ok_or(Reason::IpHeader)?;
    let (header, quoted) = icmpv6::Header::parse(bytes, outer.source(), outer.destination())
        .map_err(|_| Reason::IcmpOther)?;
    let trouble = match header.message() {
        // RFC 8201 4: what claims that the path takes less than any may is discarded.
        icmpv6::Message::PacketTooBig { mtu } if mtu < ipv6::MINIMUM_MTU as u32 => {
            return Err(Reason::IcmpOther);
        }
        icmpv6::Message::PacketTooBig { mtu } => {
            Trouble::TooBig(mtu.min(u32::from(u16::MAX)) as u16)
        }
        icmpv6::Message::Unreachable { code } => {
            Trouble::of(Failure::of_unreachable_v6(code).ok_or(Reason::IcmpOther)?)
        }
        icmpv6::Message::TimeExceeded { .. } => Trouble::Soft(Failure::HostUnreachable),
        icmpv6::Message::ParameterProblem { .. } => Trouble::Hard(Failure::Parameter),
        _ => return Err(Reason::IcmpOther),
    };
    Ok((trouble, quoted))
}

/// What an ICMP error quotes.
enum Quoted<'a> {
    /// A segment with this sequence number.
    Segment(Seq),
    /// A datagram, or the first of its fragments, with this of its data.
    Datagram(&'a [u8]),
}

/// The ends of the quoted packet, which went from here to the peer, and what is told of it.
fn quoted_flow(quoted: &[u8]) -> Option<(Ends, Quoted<'_>)> {
    let (source, destination, protocol, offset): (IpAddr, IpAddr, _, _) = match quoted.first()? >> 4
    {
        4 => {
            let header = ipv4::Header::peek(quoted)?;
            (header.fragment_offset() == 0).then_some(())?;
            let (source, destination) = (header.source().into(), header.destination().into());
            (source, destination, header.protocol(), header.header_length())
        }
        6 => {
            let header = ipv6::Header::peek(quoted)?;
            let upper = ipv6::upper_layer(quoted).ok()?;
            (!upper.is_later_fragment()).then_some(())?;
            let (source, destination) = (header.source().into(), header.destination().into());
            (source, destination, upper.protocol, upper.offset)
        }
        _ => return None,
    };
    let (start, data) = quoted.get(offset..)?.split_first_chunk::<8>()?;
    let &[p, q, r, s, a, b, c, d] = start;
    let local = SocketAddr::new(source, u16::from_be_bytes([p, q]));
    let remote = SocketAddr::new(destination, u16::from_be_bytes([r, s]));
    let ends = Ends { local, remote };
    match protocol {
        Protocol::TCP => Some((ends, Quoted::Segment(Seq(u32::from_be_bytes([a, b, c, d]))))),
        Protocol::UDP => Some((ends, Quoted::Datagram(data))),
        _ => None,
    }
}
