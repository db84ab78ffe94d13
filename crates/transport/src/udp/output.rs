//! Datagrams out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wire::udp::{HEADER_LENGTH, Header};
use wire::{Protocol, ipv4, ipv6};
use zerocopy::IntoBytes;

use super::{Message, Received, Socket, UdpError};
use crate::ends::{Ends, to_v6};
use crate::fifo::Buffers;
use crate::handle::UdpId;
use crate::packet::{Departure, Sink};
use crate::reason::Reason;
use crate::stack::Stack;

/// Longest datagram: bytes of data.
const LONGEST: usize = u16::MAX as usize - HEADER_LENGTH;

impl<B: Buffers> Stack<B> {
    /// Sends a datagram, or several of one size. Gives how many left.
    ///
    /// # Errors
    /// [`UdpError`]; nothing has left then.
    pub fn udp_send(
        &mut self,
        now: u64,
        id: UdpId,
        message: &Message<'_>,
        sink: &mut dyn Sink,
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
        let path = self.shared.paths.mtu(ends.remote.ip(), self.now);
        let whole = ends.ip_header() + HEADER_LENGTH;
        let most = if socket.options.dont_fragment {
            usize::from(path.unwrap_or(self.shared.config.mtu)).saturating_sub(whole)
        } else if ends.remote.is_ipv4() {
            usize::from(u16::MAX) - whole
        } else {
            LONGEST
        };
        if size > most {
            return Err(UdpError::TooLong { length: size, most });
        }
        let options = socket.options.clone();
        let chunks = message.data.chunks(size.max(1));
        let empty: [&[u8]; 1] = [&[]];
        let pieces = chunks.chain(empty.into_iter().take(usize::from(message.data.is_empty())));
        let mut sent = 0;
        for piece in pieces {
            self.identification = self.identification.wrapping_add(1);
            if !emit(sink, &ends, &options, self.identification, piece) {
                self.shared.counters.drop(Reason::SinkFull);
                break;
            }
            sent += 1;
            self.shared.counters.datagrams_out += 1;
            if options.multicast_loop && ends.remote.ip().is_multicast() {
                self.loop_back(&ends, &options, piece);
            }
        }
        if sent == 0 { Err(UdpError::NoBuffer) } else { Ok(sent) }
    }

    /// What is sent to a group is received by its members here (RFC 1112 6.1).
    fn loop_back(&mut self, ends: &Ends, options: &super::UdpOptions, data: &[u8]) {
        let (from, to) = (ends.local, ends.remote);
        let (ttl, service) = (options.multicast_ttl, options.dscp << 2);
        let head = Received { from, to, length: data.len(), ttl, service };
        for index in self.udp.find_all(to, from) {
            if let Err(reason) = self.deliver(index, head, data) {
                self.shared.counters.drop(reason);
            }
        }
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

/// Writes one. Gives whether there was a buffer.
fn emit(
    sink: &mut dyn Sink,
    ends: &Ends,
    options: &super::UdpOptions,
    identification: u16,
    data: &[u8],
) -> bool {
    let offload = sink.offloads().checksum;
    let length = HEADER_LENGTH + data.len();
    let total = ends.ip_header() + length;
    let Some(buffer) = sink.buffer(total) else { return false };
    let multicast = ends.remote.ip().is_multicast();
    let ttl = if multicast { options.multicast_ttl } else { options.ttl };
    let service = options.dscp << 2;
    let Some((ip, rest)) = buffer.split_at_mut_checked(ends.ip_header()) else { return false };
    match (ends.local.ip(), ends.remote.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let dont_fragment = options.dont_fragment;
            let fields = ipv4::Fields {
                source,
                destination,
                protocol: Protocol::UDP,
                ttl,
                service,
                // RFC 6864 4.1: it tells apart only what may be fragmented.
                identification: if dont_fragment { 0 } else { identification },
                dont_fragment,
            };
            ip.copy_from_slice(fields.header(total as u16).as_bytes());
        }
        (source, destination) => {
            let fields = ipv6::Fields {
                source: to_v6(source),
                destination: to_v6(destination),
                next_header: Protocol::UDP,
                hop_limit: ttl,
                traffic_class: service,
                flow_label: 0,
            };
            ip.copy_from_slice(fields.header(length as u16).as_bytes());
        }
    }
    let mut header = Header::new(ends.local.port(), ends.remote.port(), length as u16);
    let pseudo = ends.pseudo_of(Protocol::UDP, length);
    header.set_checksum(if offload {
        // The port adds the rest to the pseudo header's sum.
        !pseudo.finish()
    } else {
        pseudo.bytes(header.as_bytes()).bytes(data).finish_udp()
    });
    let Some((head, body)) = rest.split_at_mut_checked(HEADER_LENGTH) else { return false };
    head.copy_from_slice(header.as_bytes());
    body.copy_from_slice(data);
    let header_length = (ends.ip_header() + HEADER_LENGTH) as u16;
    sink.send(Departure { length: total, segment_size: 0, header_length });
    true
}
