//! Datagrams in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tables::NO_FLOW;
use wire::{ipv4, ipv6, udp};

use crate::ends::Ends;
use crate::event::Event;
use crate::fifo::Buffers;
use crate::packet::{Packet, Sink};
use crate::reason::Reason;
use crate::segment::Upper;
use crate::stack::Stack;
use crate::udp::Received;

impl<B: Buffers> Stack<B> {
    /// `value`: what the table of flows says of a connected socket.
    pub(crate) fn take_datagram<S: Sink + ?Sized>(
        &mut self,
        packet: &Packet<'_>,
        upper: &Upper<'_>,
        value: u32,
        sink: &mut S,
    ) -> Result<(), Reason> {
        let (from, to, ttl, service) = addresses(packet.bytes).ok_or(Reason::IpHeader)?;
        let (header, data) = udp::Header::parse(upper.bytes).map_err(|_| Reason::UdpHeader)?;
        let ends = Ends {
            local: SocketAddr::new(to, header.destination_port()),
            remote: SocketAddr::new(from, header.source_port()),
        };
        if !packet.checksum_is_good {
            // RFC 768: none is allowed over IPv4; RFC 8200 8.1: not over IPv6.
            let length = udp::HEADER_LENGTH + data.len();
            let pseudo = ends.pseudo_of(wire::Protocol::UDP, length);
            header.verify(data, pseudo, to.is_ipv4()).map_err(|_| Reason::UdpChecksum)?;
        }
        if from.is_multicast() || from == IpAddr::V4(Ipv4Addr::BROADCAST) || ends.local.port() == 0
        {
            return Err(Reason::Source);
        }
        let (from, to) = (ends.remote, ends.local);
        let received = Received { from, to, length: data.len(), ttl, service, at: self.now };
        if to.ip().is_multicast() || to.ip() == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return self.deliver_to_all(received, data);
        }
        let connected = if value == NO_FLOW { None } else { self.udp.at(value) };
        let connected = connected.filter(|socket| socket.remote == Some(from));
        let found = match connected.map(|socket| socket.id.index()) {
            Some(index) => Some(index),
            None => self.udp.find(to, from, self.shared.secret.hash_ends(&ends, [7, 0])),
        };
        let Some(index) = found else {
            self.refuse_datagram(packet.bytes, &ends, sink);
            return Err(Reason::UdpNoSocket);
        };
        self.deliver(index, received, data)
    }

    /// To each socket that wants it: a queue that is full is counted, and keeps none of the others from it.
    ///
    /// # Errors
    /// [`Reason::UdpNoSocket`]: there is none.
    pub(super) fn deliver_to_all(&mut self, head: Received, data: &[u8]) -> Result<(), Reason> {
        let mut at = self.udp.find_next(None, head.to, head.from);
        if at.is_none() {
            return Err(Reason::UdpNoSocket);
        }
        while let Some(index) = at {
            if let Err(reason) = self.deliver(index, head, data) {
                self.shared.counters.drop(reason);
            }
            at = self.udp.find_next(at, head.to, head.from);
        }
        Ok(())
    }

    fn deliver(&mut self, index: u32, head: Received, data: &[u8]) -> Result<(), Reason> {
        let taken = self.udp.change(index, |socket, room| {
            let taken = socket.take(head, data, room);
            let is_news = taken && !std::mem::replace(&mut socket.told, true);
            taken.then_some(is_news.then_some(socket.id))
        });
        let news = taken.ok_or(Reason::UdpNoSocket)?.ok_or(Reason::UdpQueue)?;
        self.shared.counters.datagrams_in += 1;
        if let Some(id) = news {
            self.shared.events.push_back(Event::UdpReadable(id));
        }
        Ok(())
    }
}

/// Source, destination, TTL and service of a packet.
pub(super) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr, u8, u8)> {
    if packet.first()? >> 4 == 4 {
        let header = ipv4::Header::peek(packet)?;
        let service = header.dscp() << 2 | header.ecn();
        Some((header.source().into(), header.destination().into(), header.ttl(), service))
    } else {
        let header = ipv6::Header::peek(packet)?;
        let service = header.dscp() << 2 | header.ecn();
        Some((header.source().into(), header.destination().into(), header.hop_limit(), service))
    }
}
