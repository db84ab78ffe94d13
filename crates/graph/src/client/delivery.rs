//! A burst's packets on their way into the rings to a client.

use dpdk::Buffer;
use shm::Meta;

use super::{ClientChannel, ClientCounters, whole};
use crate::{Exits, Reason};

/// What becomes of packets that were delivered, or not.
pub(super) struct Delivery<'a> {
    pub(super) counters: &'a ClientCounters,
    /// The client gets the packets themselves: those that it got, to be freed; `None`: it gets copies.
    pub(super) taken: Option<&'a mut Vec<Option<Buffer>>>,
    pub(super) exits: &'a mut Exits,
    /// A packet of several segments in one piece.
    pub(super) scratch: &'a mut Vec<u8>,
}

impl Delivery<'_> {
    /// Gives a channel the packets at the places of `list`.
    pub(super) fn run(
        &mut self,
        channel: &mut ClientChannel,
        packets: &mut [Option<Buffer>],
        list: &[u16],
        meta: Meta,
    ) {
        let mut rest = list;
        while !rest.is_empty() && channel.has_room() {
            let went = channel.push_burst(rest.len(), |number| {
                let place = rest.get(number).and_then(|at| packets.get(usize::from(*at)));
                let buffer = place.and_then(Option::as_ref).filter(|buffer| !buffer.is_chained());
                // A packet without bytes ends a burst.
                (buffer.map(Buffer::data).unwrap_or_default(), meta)
            });
            let (sent, after) = rest.split_at(went);
            for at in sent {
                self.settle(packets.get_mut(usize::from(*at)), true);
            }
            rest = after;
            // The next one lies in pieces, finds no room or never goes.
            let Some((next, after)) = after.split_first() else { break };
            rest = after;
            let place = packets.get_mut(usize::from(*next));
            let chained =
                place.as_ref().and_then(|place| place.as_ref()).filter(|b| b.is_chained());
            let went =
                chained.is_some_and(|buffer| channel.push(whole(buffer, self.scratch), meta));
            self.settle(place, went);
        }
        for at in rest {
            self.settle(packets.get_mut(usize::from(*at)), false);
        }
    }

    /// After a packet was delivered, or found no room.
    fn settle(&mut self, place: Option<&mut Option<Buffer>>, went: bool) {
        let Some(place) = place else { return };
        if went {
            self.counters.delivered.add(1);
            self.counters.delivered_bytes.add(place.as_ref().map_or(0, Buffer::len) as u64);
        } else {
            self.counters.full.add(1);
        }
        let Some(taken) = &mut self.taken else { return };
        match place.take() {
            Some(buffer) if !went => self.exits.drop(buffer, Reason::ClientFull),
            buffer => taken.push(buffer),
        }
    }
}
