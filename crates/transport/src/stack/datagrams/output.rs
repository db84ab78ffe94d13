//! Datagrams out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wire::checksum::Sum;
use wire::ipv6::{self, Fragment};
use wire::udp::{HEADER_LENGTH, Header};
use wire::{Protocol, ipv4};
use zerocopy::IntoBytes;

use crate::ends::{Ends, to_v6};
use crate::fifo::Buffers;
use crate::handle::UdpId;
use crate::packet::{Departure, Offloads, Sink};
use crate::reason::Reason;
use crate::stack::Stack;
use crate::udp::{Fragmentation, Message, Received, Socket, UdpError};

impl<B: Buffers> Stack<B> {
    /// Sends a datagram, or several of one size. Gives how many left.
    ///
    /// # Errors
    /// [`UdpError`]; nothing has left then.
    pub fn udp_send<S: Sink + ?Sized>(
        &mut self,
        now: u64,
        id: UdpId,
        message: &Message<'_>,
        sink: &mut S,
    ) -> Result<usize, UdpError> {
        self.now = self.now.max(now);
        let socket = self.udp.get_mut(id).ok_or(UdpError::Gone)?;
        if let Some((trouble, _)) = socket.trouble.take_if(|_| socket.remote.is_some()) {
            return Err(UdpError::Trouble(trouble));
        }
        let ends = ends(socket, message)?;
        let size = match message.segment_size {
            0 => message.data.len(),
            size => message.data.len().min(size.into()),
        };
        let known = self.shared.paths.find(ends.remote.ip(), self.now);
        let (port, whole) = (self.shared.config.mtu, ends.ip_header() + HEADER_LENGTH);
        let (path, narrow) = known.map_or((port, false), |path| (path.mtu.min(port), path.narrow));
        let most = match socket.options.fragmentation {
            Fragmentation::Refused => usize::from(path).saturating_sub(whole),
            Fragmentation::Probing => usize::from(port).saturating_sub(whole),
            _ if ends.remote.is_ipv4() => usize::from(u16::MAX) - whole,
            _ => usize::from(u16::MAX) - whole - Fragment::HEADER_LENGTH,
        };
        if size > most {
            return Err(UdpError::TooLong { length: size, most });
        }
        let options = socket.options.clone();
        let dont_fragment = match options.fragmentation {
            Fragmentation::Allowed => false,
            Fragmentation::BeyondPath => whole + size <= usize::from(path) && !narrow,
            Fragmentation::Refused | Fragmentation::Probing => true,
        };
        // Stacks that share an address have counters of their own, which start alike.
        let numbers =
            if dont_fragment { 0 } else { self.shared.secret.hash_ends(&ends, [7, 1]) as u32 };
        let is_cut_here =
            ends.remote.is_ipv6() && whole + size > usize::from(path) && !dont_fragment;
        let offloads = sink.offloads();
        let multicast = ends.remote.ip().is_multicast();
        // What the port cuts goes as one packet, as far as a packet can hold it.
        let room = (usize::from(u16::MAX) - whole).min(offloads.datagram_segmentation as usize);
        let is_one = message.segment_size == 0 || is_cut_here;
        let together = if is_one { 1 } else { (room / size.max(1)).max(1) };
        let chunks = message.data.chunks(size.max(1) * together);
        let empty: [&[u8]; 1] = [&[]];
        let pieces = chunks.chain(empty.into_iter().take(usize::from(message.data.is_empty())));
        let mut sent = 0;
        for piece in pieces {
            let count = piece.len().div_ceil(size.max(1)).max(1);
            self.identification = self.identification.wrapping_add(count as u32);
            let out = Out {
                ends: &ends,
                ttl: if multicast { options.multicast_ttl } else { options.ttl },
                service: options.dscp << 2 | message.ecn.unwrap_or(options.ecn) & 3,
                dont_fragment,
                identification: numbers
                    .wrapping_add(self.identification)
                    .wrapping_sub(count as u32 - 1),
                is_cut_here,
                data: piece,
                segment_size: if count > 1 { message.segment_size } else { 0 },
            };
            if !emit(sink, offloads, &out) {
                self.shared.counters.drop(Reason::SinkFull);
                break;
            }
            sent += count;
            self.shared.counters.datagrams_out += count as u64;
            if options.multicast_loop && multicast {
                for datagram in piece.chunks(size.max(1)) {
                    self.loop_back(&ends, &options, out.service, datagram);
                }
            }
        }
        if sent == 0 { Err(UdpError::NoBuffer) } else { Ok(sent) }
    }

    /// Sends messages in their order, each a datagram or several of one size (`sendmmsg`). Gives how many
    /// messages left whole; the first that did not ends it.
    ///
    /// # Errors
    /// [`UdpError`] of the first message; that of a later one comes again with the next call.
    pub fn udp_send_all<S: Sink + ?Sized>(
        &mut self,
        now: u64,
        id: UdpId,
        messages: &[Message<'_>],
        sink: &mut S,
    ) -> Result<usize, UdpError> {
        for (place, message) in messages.iter().enumerate() {
            let size = usize::from(message.segment_size);
            let datagrams = if size == 0 { 1 } else { message.data.len().div_ceil(size).max(1) };
            match self.udp_send(now, id, message, sink) {
                Ok(sent) if sent == datagrams => {}
                Err(error) if place == 0 => return Err(error),
                Ok(_) | Err(_) => return Ok(place),
            }
        }
        Ok(messages.len())
    }

    /// What is sent to a group is received by its members here (RFC 1112 6.1).
    fn loop_back(
        &mut self,
        ends: &Ends,
        options: &crate::udp::UdpOptions,
        service: u8,
        data: &[u8],
    ) {
        let (from, to) = (ends.local, ends.remote);
        let ttl = options.multicast_ttl;
        let head = Received { from, to, length: data.len(), ttl, service, at: self.now };
        // It need not have members here.
        let _ = self.deliver_to_all(head, data);
    }
}

/// Where a message goes from and to.
fn ends(socket: &Socket, message: &Message<'_>) -> Result<Ends, UdpError> {
    let remote = message.to.or(socket.remote).ok_or(UdpError::NoDestination)?;
    let local = message.from.unwrap_or(socket.local.ip());
    let local = SocketAddr::new(local, socket.local.port());
    let ends = Ends::new(local, remote).ok_or(UdpError::Address)?;
    let source = local.ip();
    let single = !source.is_multicast()
        && !source.is_unspecified()
        && source != IpAddr::V4(Ipv4Addr::BROADCAST);
    if !single || remote.port() == 0 || remote.ip().is_unspecified() {
        return Err(UdpError::Address);
    }
    if remote.ip() == IpAddr::V4(Ipv4Addr::BROADCAST) && !socket.options.broadcast {
        return Err(UdpError::Broadcast);
    }
    Ok(ends)
}

/// A datagram to be written, or several of one size.
struct Out<'a> {
    ends: &'a Ends,
    ttl: u8,
    /// DSCP and ECN.
    service: u8,
    dont_fragment: bool,
    identification: u32,
    /// Over IPv6, by the caller.
    is_cut_here: bool,
    data: &'a [u8],
    /// Bytes of data of each datagram that the port cuts it into; 0: it is one.
    segment_size: u16,
}

impl Out<'_> {
    /// Bytes ahead of the UDP header.
    fn ip_headers(&self) -> usize {
        self.ends.ip_header() + if self.is_cut_here { Fragment::HEADER_LENGTH } else { 0 }
    }
}

/// Writes one packet. Gives whether there was a buffer.
fn emit<S: Sink + ?Sized>(sink: &mut S, offloads: Offloads, out: &Out<'_>) -> bool {
    let headers = out.ip_headers() + HEADER_LENGTH;
    let length = headers + out.data.len();
    let sums = !offloads.checksum && out.segment_size == 0;
    let Some((head, body)) =
        sink.buffer(length).and_then(|buffer| buffer.split_at_mut_checked(headers))
    else {
        return false;
    };
    let first = body.len().min(out.data.len());
    let (start, rest) = out.data.split_at(first);
    let mut sum = body.get_mut(..first).map_or(Sum::new(), |body| fill(start, body, sums));
    if rest.is_empty() {
        write_headers(head, out, sums.then_some(sum));
    } else {
        let (mut rest, mut at) = (rest, first);
        while !rest.is_empty() {
            let Some(piece) = sink.extend(rest.len()).filter(|piece| !piece.is_empty()) else {
                return false;
            };
            let (now, later) = rest.split_at(piece.len().min(rest.len()));
            let part =
                piece.get_mut(..now.len()).map_or(Sum::new(), |piece| fill(now, piece, sums));
            sum = sum.join(part, at);
            (rest, at) = (later, at + now.len());
        }
        let Some(head) = sink.head().and_then(|head| head.get_mut(..headers)) else { return false };
        write_headers(head, out, sums.then_some(sum));
    }
    let header_length = headers as u16;
    sink.send(Departure { length, segment_size: out.segment_size, header_length });
    true
}

/// Copies, and sums in the same pass if asked to.
fn fill(source: &[u8], target: &mut [u8], sums: bool) -> Sum {
    if sums {
        return Sum::new().copy(source, target);
    }
    target.copy_from_slice(source);
    Sum::new()
}

/// Writes both headers; `data`: sum of the data, `None` when the port does the rest.
fn write_headers(bytes: &mut [u8], out: &Out<'_>, data: Option<Sum>) {
    let (ends, ttl) = (out.ends, out.ttl);
    let length = HEADER_LENGTH + out.data.len();
    let Some((ip, udp)) = bytes.split_at_mut_checked(out.ip_headers()) else { return };
    match (ends.local.ip(), ends.remote.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let fields = ipv4::Fields {
                source,
                destination,
                protocol: Protocol::UDP,
                ttl,
                service: out.service,
                // RFC 6864 4.1: it tells apart only what may be fragmented.
                identification: if out.dont_fragment { 0 } else { out.identification as u16 },
                dont_fragment: out.dont_fragment,
            };
            let total = (ends.ip_header() + length) as u16;
            ip.copy_from_slice(fields.header(total).as_bytes());
        }
        (source, destination) => {
            let (fixed, extension) = ip.split_at_mut(ends.ip_header());
            let fields = ipv6::Fields {
                source: to_v6(source),
                destination: to_v6(destination),
                next_header: if out.is_cut_here { Protocol::FRAGMENT } else { Protocol::UDP },
                hop_limit: ttl,
                traffic_class: out.service,
                flow_label: 0,
            };
            let payload = extension.len() + length;
            fixed.copy_from_slice(fields.header(payload as u16).as_bytes());
            if out.is_cut_here {
                extension.copy_from_slice(&whole(out.identification).header());
            }
        }
    }
    let mut header = Header::new(ends.local.port(), ends.remote.port(), length as u16);
    let pseudo = ends.pseudo_of(Protocol::UDP, length);
    header.set_checksum(match data {
        Some(data) => pseudo.bytes(header.as_bytes()).join(data, 0).finish_udp(),
        // The port adds the rest to the pseudo header's sum.
        None => !pseudo.finish(),
    });
    if let Some(place) = udp.get_mut(..HEADER_LENGTH) {
        place.copy_from_slice(header.as_bytes());
    }
}

/// What a datagram has ahead of it that is whole, and is to be cut.
fn whole(identification: u32) -> Fragment {
    Fragment {
        offset: 0,
        more: false,
        identification,
        header_at: ipv6::HEADER_LENGTH,
        named_at: 6,
        next_header: Protocol::UDP,
    }
}
