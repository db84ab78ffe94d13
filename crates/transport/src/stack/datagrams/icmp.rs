//! ICMP about datagrams: said to whoever sends to nobody, and heard about what was sent from here.

use std::net::{IpAddr, Ipv4Addr};

use wire::build::{Network, Payload, packet};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use crate::ends::{Ends, to_v6};
use crate::event::Event;
use crate::fifo::Buffers;
use crate::packet::{Departure, Sink};
use crate::paths::Limit;
use crate::reason::Reason;
use crate::stack::Stack;
use crate::tcp::icmp::Trouble;
use crate::udp::{Fragmentation, UdpMessage, UdpReport, UdpTrouble};

/// What of a packet is quoted: bytes of the whole error (RFC 1812 4.3.2.3, RFC 4443 3.1).
const QUOTED: (usize, usize) = (576, 1280);

impl<B: Buffers> Stack<B> {
    /// Nobody has the port (RFC 1122 4.1.3.1). Not said to many, nor about what was sent to many
    /// (3.2.2): those never come here.
    pub(super) fn refuse_datagram<S: Sink + ?Sized>(
        &mut self,
        original: &[u8],
        ends: &Ends,
        sink: &mut S,
    ) {
        let from = ends.remote.ip();
        if from.is_unspecified() || from.is_loopback() != ends.local.ip().is_loopback() {
            return;
        }
        let limit = self.shared.config.unreachables;
        if !self.shared.unreachables.allow(from, self.now, limit) {
            self.shared.counters.drop(Reason::RateLimit);
            return;
        }
        let mut error = [0; QUOTED.1];
        let Some(length) = unreachable(original, ends, &mut error) else { return };
        let bytes = error.get(..length).unwrap_or(&[]);
        if !put(sink, bytes) {
            self.shared.counters.drop(Reason::SinkFull);
            return;
        }
        let header_length = length as u16;
        sink.send(Departure { length, segment_size: 0, header_length });
        self.shared.counters.unreachables_out += 1;
    }

    /// Something was said about a datagram that went between these ends: by `packet`, whose ICMP message is `message` and
    /// quotes `data`.
    pub(crate) fn on_datagram_trouble(
        &mut self,
        ends: &Ends,
        trouble: Trouble,
        (packet, message, data): (&[u8], &[u8], &[u8]),
    ) -> Result<(), Reason> {
        let hash = self.shared.secret.hash_ends(ends, [7, 0]);
        let index = self.udp.find(ends.local, ends.remote, hash).ok_or(Reason::IcmpUnmatched)?;
        let socket = self.udp.at_mut(index).ok_or(Reason::IcmpUnmatched)?;
        let wants_all = socket.options.wants_errors(ends.remote.ip());
        let mut info = 0;
        let trouble = match trouble {
            Trouble::TooBig(mtu) => {
                info = mtu.into();
                let limit = Limit::told(ends.remote.ip(), mtu);
                let mtu = limit.mtu;
                if mtu >= self.shared.config.mtu && !limit.narrow {
                    return Err(Reason::IcmpUnmatched);
                }
                self.shared.paths.learn(ends.remote.ip(), limit, self.now);
                // As Linux: over IPv6 who wants all is told all the same.
                let is_wanted = wants_all && ends.remote.is_ipv6();
                if socket.options.fragmentation == Fragmentation::Allowed && !is_wanted {
                    return Ok(());
                }
                UdpTrouble::TooBig(mtu)
            }
            Trouble::Hard(failure) => UdpTrouble::Failed(failure),
            // As Linux: what may pass is told only to who asked for errors.
            Trouble::Soft(_) if !wants_all => return Ok(()),
            Trouble::Soft(failure) => UdpTrouble::Failed(failure),
        };
        // RFC 1122 4.1.3.3: passed up; to a socket with many peers only when it asks.
        if socket.remote.is_some() || wants_all {
            socket.trouble = Some((trouble, ends.remote));
            self.shared.events.push_back(Event::UdpError(socket.id));
        }
        if let Some(message) = message_of(packet, message).filter(|_| wants_all) {
            let (to, message, at, data) = (ends.remote, Some(message), self.now, data.to_vec());
            let report = UdpReport { trouble, to, message, info, data, at };
            // Linux keeps no more either.
            let _ = self.udp.change(index, |socket, room| socket.report(report, room));
        }
        Ok(())
    }
}

/// What an ICMP message says about itself.
fn message_of(packet: &[u8], message: &[u8]) -> Option<UdpMessage> {
    let (from, to, ttl, service) = super::input::addresses(packet)?;
    let &[kind, code, ..] = message else { return None };
    Some(UdpMessage { kind, code, from, to, ttl, service })
}

/// Copies a packet into a buffer, or into a chain of them. Gives whether there was one.
fn put<S: Sink + ?Sized>(sink: &mut S, bytes: &[u8]) -> bool {
    let Some(buffer) = sink.buffer(bytes.len()) else { return false };
    let (now, mut rest) = bytes.split_at(buffer.len().min(bytes.len()));
    if let Some(place) = buffer.get_mut(..now.len()) {
        place.copy_from_slice(now);
    }
    while !rest.is_empty() {
        let Some(piece) = sink.extend(rest.len()).filter(|piece| !piece.is_empty()) else {
            return false;
        };
        let (now, later) = rest.split_at(piece.len().min(rest.len()));
        if let Some(place) = piece.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        rest = later;
    }
    true
}

/// Writes 'port unreachable' about a packet. Gives its bytes.
fn unreachable(original: &[u8], ends: &Ends, target: &mut [u8]) -> Option<usize> {
    match (ends.local.ip(), ends.remote.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            if destination == Ipv4Addr::BROADCAST {
                return None;
            }
            let room = QUOTED.0 - ipv4::HEADER_LENGTH - icmpv4::HEADER_LENGTH;
            let data = original.get(..original.len().min(room))?;
            let code = icmpv4::unreachable::PORT;
            let message = icmpv4::Message::Unreachable { code, mtu: 0 };
            let fields = ipv4::Fields {
                source,
                destination,
                protocol: Protocol::ICMPV4,
                ttl: 64,
                // RFC 1812 4.3.2.5: precedence 6 or 7; hosts send 0xc0.
                service: 0xc0,
                identification: 0,
                dont_fragment: false,
            };
            packet(target, &Network::V4(fields), &Payload::Icmpv4 { message, data }).ok()
        }
        (source, destination) => {
            let room = QUOTED.1 - ipv6::HEADER_LENGTH - icmpv6::HEADER_LENGTH;
            let data = original.get(..original.len().min(room))?;
            let code = icmpv6::unreachable::PORT;
            let message = icmpv6::Message::Unreachable { code };
            let fields = ipv6::Fields {
                source: to_v6(source),
                destination: to_v6(destination),
                next_header: Protocol::ICMPV6,
                hop_limit: 64,
                traffic_class: 0,
                flow_label: 0,
            };
            packet(target, &Network::V6(fields), &Payload::Icmpv6 { message, data }).ok()
        }
    }
}
