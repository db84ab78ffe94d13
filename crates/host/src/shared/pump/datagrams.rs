//! Datagrams between a socket and its two FIFOs, on the worker's side.

use std::io::{IoSlice, IoSliceMut};

use shm::fifo::Broken;
use transport::moving::{Carried, Reader};

use super::has_room;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::{Incoming, Received};
use crate::session::Id;
use crate::shared::PIECE;
use crate::shared::call::{answer, malformed, take_outgoing};
use crate::shared::frame::{self, Frame, HEAD, put_report, put_shape};
use crate::shared::served::Served;

impl Served {
    /// Both directions, as far as there are datagrams and room. Gives what the process is to be woken for.
    pub(super) fn exchange(&mut self, id: Id) -> Result<Mask, Broken> {
        let read = self.hand_in(id)?;
        Ok(read | self.send_out(id)?)
    }

    /// What has come goes to the process.
    fn hand_in(&mut self, id: Id) -> Result<Mask, Broken> {
        let (mut announced, mut woken, mut is_starved) = (false, Mask::NONE, false);
        let Self { flows, chunks, end, sessions, bounce, .. } = self;
        let Some((flow, record)) = flows.get_mut(id.0 as usize).zip(end.records.get(id.0)) else {
            return Ok(Mask::NONE);
        };
        let place = record.inward();
        while let Some(length) = sessions.next_datagram(id) {
            flow.inward.look(&place, chunks)?;
            let wanted = HEAD + length;
            if flow.inward.takes(chunks) < wanted {
                is_starved = flow.inward.room() >= wanted;
                if is_starved || announced {
                    break;
                }
                // The process may have made room meanwhile.
                record.inward_waits().announce();
                announced = true;
                continue;
            }
            let target = bounce.get_mut(..length).unwrap_or_default();
            let taken = sessions.take_datagram(id, &mut [IoSliceMut::new(target)], false);
            let Ok(Received { bytes, shape: Some(shape) }) = taken else { break };
            let data = [IoSlice::new(bounce.get(..bytes).unwrap_or_default())];
            let memory = (&end.inward, &mut *chunks);
            frame::write(&mut flow.inward, &place, memory, &data, |to| put_shape(&shape, to));
            woken = Mask::READABLE;
        }
        if is_starved {
            self.starve(id);
        }
        self.list(id);
        Ok(woken)
    }

    /// What the process has written goes to its peers.
    fn send_out(&mut self, id: Id) -> Result<Mask, Broken> {
        let (mut woken, mut is_starved) = (Mask::NONE, false);
        let Self { flows, end, sessions, bounce, is_tight, .. } = self;
        let Some((flow, record)) = flows.get_mut(id.0 as usize).zip(end.records.get(id.0)) else {
            return Ok(Mask::NONE);
        };
        record.look();
        let place = record.outward();
        while let Some(frame) = Frame::first(&flow.outward, &place, &end.outward)? {
            if *is_tight {
                is_starved = true;
                break;
            }
            let data = bounce.get_mut(..frame.length()).unwrap_or_default();
            flow.outward.peek(&place, &end.outward, frame.offset(), data)?;
            let outgoing = take_outgoing(&mut frame.says()).map_err(|_| Broken)?;
            if sessions.send_taken(id, data, outgoing) == Err(Errno::AGAIN) {
                break;
            }
            flow.outward.consume(&place, frame.whole());
            woken |= has_room(flow, record)?;
        }
        if is_starved {
            self.starve(id);
        }
        Ok(woken)
    }

    /// What the error queue has.
    pub(in crate::shared) fn report(
        &mut self,
        id: Id,
        from: &mut Reader<'_>,
    ) -> Result<Vec<u8>, Errno> {
        let room = u32::take(from).map_err(malformed)? as usize;
        let Self { sessions, bounce, .. } = self;
        let target = bounce.get_mut(..room.min(PIECE)).unwrap_or_default();
        let incoming = Incoming { errors: true, ..Incoming::default() };
        let Received { bytes, shape } =
            sessions.recv(id, &mut [IoSliceMut::new(target)], incoming)?;
        let shape = shape.ok_or(Errno::AGAIN)?;
        Ok(answer(Ok(shape), |shape, to| {
            (shape.length as u32).put(to);
            put_shape(&shape, to);
            shape.report.iter().for_each(|report| put_report(report, to));
            to.bytes.extend_from_slice(target.get(..bytes).unwrap_or_default());
        }))
    }
}
