//! `tcp-mss-input`, `tcp-mss-output`: the largest segment that two hosts agree on in their SYNs is made to fit a path that
//! drops what is longer without a word, such as one through a tunnel (RFC 2923 2.1).

use graph::{Context, NoEdge, Onward, Picked, Slot};
use wire::{Protocol, ipv4, ipv6, tcp};

use super::arc::{Arc, Feature};
use crate::state::Interfaces;

/// So much longer is IPv6's header than IPv4's: bytes.
const LONGER: u16 = (ipv6::HEADER_LENGTH - ipv4::HEADER_LENGTH) as u16;

/// The feature.
pub(crate) struct TcpMss;

impl Feature for TcpMss {
    type Next = NoEdge;

    fn process(
        &mut self,
        (arc, interfaces): (Arc, &Interfaces),
        slots: &[Slot],
        cx: &mut Context<'_, Onward<NoEdge>>,
        on: &mut Picked,
    ) {
        for &slot in slots {
            let interface = arc.interface(interfaces, cx.vector, slot);
            if let Some(most) = interface.and_then(|interface| interface.features.tcp_mss) {
                limit(cx.vector.network_mut(slot), most);
            }
            on.push(slot);
        }
    }
}

/// Does it to one packet, from its IP header on; leaves alone what carries no TCP header.
fn limit(packet: &mut [u8], most: u16) {
    let (offset, most) = if let Some(header) = ipv4::Header::peek(packet) {
        let begins = header.protocol() == Protocol::TCP && header.fragment_offset() == 0;
        (begins.then(|| header.header_length()), most)
    } else {
        let upper = ipv6::upper_layer(packet).ok();
        let begins = upper.filter(|it| it.protocol == Protocol::TCP && !it.is_later_fragment());
        (begins.map(|it| it.offset), most.saturating_sub(LONGER))
    };
    if let Some(segment) = offset.and_then(|offset| packet.get_mut(offset..)) {
        tcp::limit_segment_size(segment, most);
    }
}
