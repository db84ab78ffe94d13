//! A burst's packets on their way into the rings to a client.

use dpdk::Buffer;
use shm::Meta;

use super::{ClientChannel, ClientCounters, whole};
use crate::{Exits, Reason};

/// What becomes of packets that were delivered, or not.
pub(crate) struct Delivery<'a> {
    pub(crate) counters: &'a ClientCounters,
    /// What packets that find no room are dropped for.
    pub(crate) full: Reason,
    /// The client gets the packets themselves: those that it got, to be freed; `None`: it gets copies.
    pub(crate) taken: Option<&'a mut Vec<Option<Buffer>>>,
    pub(crate) exits: &'a mut Exits,
    /// A packet of several segments in one piece.
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Delivery<'_> {
    /// Gives a channel the packets at the places of `list`; `of`: bytes to leave off at the front of the packet at a place,
    /// and what is said of it.
    pub(crate) fn run(
        &mut self,
        channel: &mut ClientChannel,
        packets: &mut [Option<Buffer>],
        list: &[u16],
        of: impl Fn(u16) -> (usize, Meta),
    ) {
        let mut rest = list;
        while !rest.is_empty() && channel.has_room() {
            let went = channel.push_burst(rest.len(), |number| {
                let at = rest.get(number).copied().unwrap_or(u16::MAX);
                let place = packets.get(usize::from(at));
                let buffer = place.and_then(Option::as_ref).filter(|buffer| !buffer.is_chained());
                let (front, meta) = of(at);
                // A packet without bytes ends a burst.
                (buffer.and_then(|buffer| buffer.data().get(front..)).unwrap_or_default(), meta)
            });
            let (sent, after) = rest.split_at(went);
            for at in sent {
                self.settle(packets.get_mut(usize::from(*at)), Some(of(*at).0));
            }
            rest = after;
            // The next one lies in pieces, finds no room or never goes.
            let Some((next, after)) = after.split_first() else { break };
            rest = after;
            let place = packets.get_mut(usize::from(*next));
            let chained =
                place.as_ref().and_then(|place| place.as_ref()).filter(|b| b.is_chained());
            let (front, meta) = of(*next);
            let went = chained.is_some_and(|buffer| {
                let bytes = whole(buffer, self.scratch).get(front..).unwrap_or_default();
                channel.push(bytes, meta)
            });
            self.settle(place, went.then_some(front));
        }
        if self.taken.is_none() {
            self.counters.full.add(rest.len() as u64);
            return;
        }
        for at in rest {
            self.settle(packets.get_mut(usize::from(*at)), None);
        }
    }

    /// After a packet was delivered but for its first bytes, or (`None`) found no room.
    fn settle(&mut self, place: Option<&mut Option<Buffer>>, went: Option<usize>) {
        let Some(place) = place else { return };
        if let Some(front) = went {
            let length = place.as_ref().map_or(0, Buffer::len).saturating_sub(front);
            self.counters.delivered.add(1);
            self.counters.delivered_bytes.add(length as u64);
        } else {
            self.counters.full.add(1);
        }
        let Some(taken) = &mut self.taken else { return };
        match place.take() {
            Some(buffer) if went.is_none() => self.exits.drop(buffer, self.full),
            buffer => taken.push(buffer),
        }
    }
}
