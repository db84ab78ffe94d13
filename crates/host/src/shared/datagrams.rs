//! Sockets for datagrams in their process. What cannot be refused goes through the FIFO, without asking; the stack is asked
//! about everything else.

use std::io::{IoSlice, IoSliceMut};
use std::net::IpAddr;

use shm::fifo::Broken;
use transport::moving::Carried;

use super::PIECE;
use super::call::{Verb, command, malformed, put_options, put_outgoing};
use super::data::Here;
use super::frame::{self, Frame, HEAD, take_report, take_shape};
use super::own::{Datagrams, Own, Status};
use super::remote::Remote;
use crate::datagram::{LONGEST, spread};
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::{Incoming, Outgoing, Received};
use crate::options::{Setting, Wanted};
use crate::session::{Domain, Id};

/// Bytes of data that every path takes in one packet (RFC 8200 5: 1,280 with the headers).
const SHORT: usize = 1232;

impl Remote {
    /// Opens a socket for datagrams at a place that is free, with options; those that cannot be set are as they are.
    ///
    /// # Errors
    /// As [`Sessions::open`](crate::Sessions::open); [`Errno::NETDOWN`]: nobody answers any more.
    pub fn open_datagrams(
        &mut self,
        id: Id,
        domain: Domain,
        options: &[Setting],
    ) -> Result<(), Errno> {
        let kept = self.call(Verb::OpenDatagrams, id, |to| {
            domain.put(to);
            put_options(options, to);
        })?;
        self.begin(id);
        let own = self.own(id)?;
        (own.kept, own.datagrams) = (kept, Some(Datagrams::new(domain)));
        Ok(())
    }

    /// Whether a socket for datagrams has a port, as far as is known without asking.
    #[must_use]
    pub fn has_port(&self, id: Id) -> bool {
        let own = self.own.get(id.0 as usize).filter(|own| own.is_there);
        own.and_then(|own| own.datagrams).is_some_and(|known| known.name.is_some())
    }

    /// What it knows of a socket for datagrams. `None`: it is a stream, or not there.
    pub(super) fn datagrams(&mut self, id: Id) -> Option<&mut Datagrams> {
        self.own(id).ok()?.datagrams.as_mut()
    }

    /// What a datagram's receiver wants told.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn wanted(&self, id: Id) -> Result<Wanted, Errno> {
        let own = self.own.get(id.0 as usize).filter(|own| own.is_there);
        own.map(|own| own.kept.wanted).ok_or(Errno::BADF)
    }

    /// As [`Sessions::note_first_link`](crate::Sessions::note_first_link).
    pub fn note_first_link(&mut self, remote: IpAddr, mtu: u16) {
        self.say(command(Verb::FirstLink, Id(0), |to| (remote, mtu).put(to)));
    }

    pub(super) fn recv_datagram(
        &mut self,
        id: Id,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        if incoming.errors {
            return self.recv_report(id, targets);
        }
        let here = self.here(id).ok_or(Errno::BADF)?;
        let is_told = Status(here.record.status()).mask().has(Mask::ERR) && !*here.is_lost;
        if is_told || self.is_answered() {
            // An error is told before anything else.
            match self.tell(Verb::Receive, id, |_| {}) {
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        let mut here = self.here(id).ok_or(Errno::BADF)?;
        let (received, makes_room) = here.take_datagram(targets, incoming.peek)?;
        if makes_room && !self.is_lost {
            self.note(id);
            self.ring();
        }
        Ok(received)
    }

    fn recv_report(&mut self, id: Id, targets: &mut [IoSliceMut<'_>]) -> Result<Received, Errno> {
        if self.is_lost {
            return Err(Errno::AGAIN);
        }
        let room: usize = targets.iter().map(|target| target.len()).sum();
        let room = room.min(PIECE) as u32;
        let mut from = self.ask(Verb::Report, id, |to| room.put(to))?;
        let length = u32::take(&mut from).map_err(malformed)? as usize;
        let mut shape = take_shape(&mut from, length)?;
        shape.report = Some(take_report(&mut from)?);
        let bytes = spread(from.slice(from.left()).map_err(malformed)?, targets);
        Ok(Received { bytes, shape: Some(shape) })
    }

    pub(super) fn send_datagram(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        outgoing: Outgoing,
    ) -> Result<usize, Errno> {
        let length: usize = data.iter().map(|piece| piece.len()).sum();
        if length > LONGEST {
            return Err(Errno::MSGSIZE);
        }
        // Whoever would have sent it is gone: it is lost, as in any network.
        if self.is_lost {
            return Ok(length);
        }
        let asks = self.is_answered();
        let put = (!asks).then(|| self.put_datagram(id, data, (length, &outgoing)));
        if let Some(sent) = put.flatten() {
            return sent;
        }
        let sent: Result<u32, Errno> = self.call(Verb::Send, id, |to| {
            put_outgoing(&outgoing, to);
            data.iter().for_each(|piece| to.bytes.extend_from_slice(piece));
        });
        if let (Ok(_), Some(known)) = (sent, self.datagrams(id)) {
            known.is_begun = outgoing.more;
        }
        sent.map(|sent| sent as usize)
    }

    /// Sends one through the FIFO. `None`: the stack is to be asked, since it may refuse it.
    fn put_datagram(
        &mut self,
        id: Id,
        data: &[IoSlice<'_>],
        (length, outgoing): (usize, &Outgoing),
    ) -> Option<Result<usize, Errno>> {
        let here = self.here(id)?;
        let Own { shut, kept, datagrams, .. } = &*here.own;
        let known = (*datagrams)?;
        let status = Status(here.record.status()).mask();
        let is_plain = !(known.is_begun || kept.reshapes.0 || outgoing.more || outgoing.urgent)
            && outgoing.segment_size == 0;
        let may = status.has(Mask::OUT) && !status.has(Mask::ERR) && !shut.1;
        if !is_plain || !may || length > SHORT || !known.reaches(outgoing.to, kept.reshapes.1) {
            return None;
        }
        let mut has_room = false;
        for announced in [false, true] {
            let mut here = self.here(id)?;
            has_room = here.takes() >= HEAD + length;
            if has_room || announced {
                break;
            }
            here.record.outward_waits().announce();
            if self.chunks.free() == 0 {
                self.reclaim();
                self.starving = true;
            }
        }
        if !has_room {
            return Some(Err(Errno::AGAIN));
        }
        let Here { own, record, chunks, outward, .. } = self.here(id)?;
        let (place, memory) = (record.outward(), (outward, &mut *chunks));
        frame::write(&mut own.outward, &place, memory, data, |to| put_outgoing(outgoing, to));
        self.list(id);
        self.note(id);
        Some(Ok(length))
    }
}

impl Here<'_> {
    /// What `poll` says of it.
    pub(super) fn datagram_mask(&mut self) -> Mask {
        let status = Status(self.record.status()).mask();
        let shut = self.own.shut;
        let can_read = self.unread() > 0 || shut.0;
        // Without a stack, what is sent is lost, and nothing is said any more.
        let is_lost = *self.is_lost;
        let can_write = is_lost || status.has(Mask::OUT) && self.has_room();
        Mask::READ.when(can_read)
            | (Mask::WRITE | Mask::WRBAND).when(can_write)
            | Mask::RDHUP.when(shut.0)
            | Mask::HUP.when(shut.0 && shut.1)
            | Mask::ERR.when(status.has(Mask::ERR) && !is_lost)
    }

    /// Bytes that the FIFO takes at the moment.
    fn takes(&mut self) -> usize {
        let Self { own, record, chunks, is_lost, .. } = self;
        if own.outward.look(&record.outward(), chunks).is_err() {
            **is_lost = true;
            return 0;
        }
        own.outward.takes(chunks)
    }

    /// The first datagram, and whether the worker has waited for the room that this makes.
    fn take_datagram(
        &mut self,
        targets: &mut [IoSliceMut<'_>],
        peeks: bool,
    ) -> Result<(Received, bool), Errno> {
        let taken = self.try_take_datagram(targets, peeks);
        taken.unwrap_or_else(|Broken| {
            *self.is_lost = true;
            Err(Errno::AGAIN)
        })
    }

    fn try_take_datagram(
        &mut self,
        targets: &mut [IoSliceMut<'_>],
        peeks: bool,
    ) -> Result<Result<(Received, bool), Errno>, Broken> {
        let Self { own, record, inward, .. } = self;
        let place = record.inward();
        let Some(frame) = Frame::first(&own.inward, &place, inward)? else {
            return Ok(Err(Errno::AGAIN));
        };
        let mut bytes = 0;
        for target in targets.iter_mut() {
            let most = target.len().min(frame.length() - bytes);
            let Some(target) = target.get_mut(..most) else { break };
            bytes += own.inward.peek(&place, inward, frame.offset() + bytes, target)?;
        }
        let shape = take_shape(&mut frame.says(), frame.length()).map_err(|_| Broken)?;
        let received = Received { bytes, shape: Some(shape) };
        Ok(Ok((received, !peeks && self.consume(frame.whole())?)))
    }

    /// Bytes of the first datagram (`FIONREAD`).
    pub(super) fn first_length(&self) -> usize {
        let first = Frame::first(&self.own.inward, &self.record.inward(), self.inward);
        first.ok().flatten().map_or(0, |frame| frame.length())
    }
}
