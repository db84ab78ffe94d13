//! Data between a connection and its two FIFOs, on the worker's side.

use std::io::{IoSlice, IoSliceMut};

use shm::fifo::{Broken, CAPACITY, Chunks};
use shm::records::Record;

use super::flow::Flow;
use super::served::Served;
use super::{ENDED, FLOWS, MUTE, PIECE};
use crate::journal::Beside;
use crate::mask::Mask;
use crate::message::{Incoming, Outgoing};
use crate::session::{How, Id};

mod datagrams;

impl Served {
    /// As [`Sessions::look`](crate::Sessions::look), with what waits in the FIFOs.
    pub fn look(&mut self, now: u64) {
        let Self { sessions, flows, chunks, end, is_broken, .. } = self;
        sessions.look_beside(now, |id| {
            let there = flows.get_mut(id.0 as usize).zip(end.records.get(id.0));
            let Some((flow, record)) = there.filter(|(flow, _)| flow.moves()) else {
                return (0, 0);
            };
            waiting(flow, record, chunks).unwrap_or_else(|Broken| {
                *is_broken = true;
                (0, 0)
            })
        });
    }

    pub(super) fn flow(&mut self, id: Id) -> &mut Flow {
        let at = id.0 as usize;
        if at >= self.flows.len() {
            self.flows.resize_with(at + 1, Flow::default);
        }
        #[expect(clippy::indexing_slicing, reason = "just made long enough")]
        &mut self.flows[at]
    }

    /// A session begins at this number.
    pub(super) fn begin(&mut self, id: Id, flows: bool) {
        let old = self.flow(id).take();
        self.flow(id).flows = flows;
        self.free(old);
        if let Some(record) = self.end.records.get(id.0) {
            record.clear();
        }
        self.attend(id, Mask::NONE);
    }

    /// The same of one with which the process goes on without an answer, and which it knows by this number.
    pub(super) fn begin_ahead(&mut self, id: Id, epoch: u32) {
        self.begin(id, false);
        if let Some(record) = self.end.records.get(id.0) {
            record.enter(epoch);
        }
    }

    /// A session is no more. What is left in the process's FIFO goes nowhere: all of it counts as read, so that the process can use the
    /// memory again.
    pub(super) fn end_flow(&mut self, id: Id) {
        let mut flow = self.flow(id).take();
        if let Some(record) = self.end.records.get(id.0) {
            let place = record.outward();
            let left = flow.outward.len(&place).unwrap_or(0);
            flow.outward.consume(&place, left);
            record.say(0);
        }
        self.free(flow);
    }

    /// A session's FIFOs are used no more.
    pub(super) fn free(&mut self, mut flow: Flow) {
        flow.inward.end(&mut self.chunks);
    }

    /// Moves data, says how the session is, and tells the process what has woken it.
    pub(super) fn attend(&mut self, id: Id, woken: Mask) {
        let mut woken = woken;
        let (flowed, frames) = (self.flow(id).flows, self.flow(id).frames);
        if frames {
            match self.pump(id) {
                Ok(more) => woken |= more,
                Err(Broken) => self.is_broken = true,
            }
        } else if flowed || self.begins_to_flow(id) {
            match self.pump(id) {
                // Room is what the process waits for in its own FIFO.
                Ok(more) if flowed && woken != Mask::ALL => {
                    woken = woken & !Mask::WRITABLE | more;
                }
                Ok(more) => woken |= more,
                Err(Broken) => self.is_broken = true,
            }
        }
        let (mask, flows) = (self.sessions.mask(id), self.flow(id).flows);
        let has_ended = flows && mask.has(Mask::RDHUP) && self.sessions.has_ended(id);
        let is_mute = flows && self.sessions.is_mute(id);
        let status = mask.0 | u32::from(flows) * FLOWS | u32::from(has_ended) * ENDED;
        let status = status | u32::from(is_mute) * MUTE;
        let Some(record) = self.end.records.get(id.0) else { return };
        record.say(status);
        if !woken.is_empty() && record.wake(woken.0) {
            self.tell(id);
        }
    }

    /// Whether a connection that was opened from here has just been established.
    fn begins_to_flow(&mut self, id: Id) -> bool {
        let has_hung_up = self.sessions.mask(id).has(Mask::HUP) && !self.sessions.is_mute(id);
        let flows = self.sessions.peer(id).is_ok() && !has_hung_up;
        self.flow(id).flows = flows;
        flows
    }

    /// Both directions, as far as there is data and room. Gives what the process is to be woken for.
    fn pump(&mut self, id: Id) -> Result<Mask, Broken> {
        let woken = if self.flow(id).frames {
            self.exchange(id)?
        } else {
            let read = self.pump_inward(id)?;
            read | self.pump_outward(id)?
        };
        if self.flow(id).ending.is_some() && self.unsent(id) == 0 {
            self.flow(id).ending = None;
            let _ = self.sessions.shutdown(id, How::Write);
        }
        Ok(woken)
    }

    /// What has come goes to the process. Gives what the process is to be woken for.
    fn pump_inward(&mut self, id: Id) -> Result<Mask, Broken> {
        let (mut announced, mut woken, mut is_starved) = (false, Mask::NONE, false);
        let Self { flows, chunks, end, sessions, bounce, .. } = self;
        let Some((flow, record)) = flows.get_mut(id.0 as usize).zip(end.records.get(id.0)) else {
            return Ok(Mask::NONE);
        };
        let place = record.inward();
        loop {
            let waiting = sessions.pending(id).unwrap_or(0);
            if waiting == 0 {
                break;
            }
            flow.inward.look(&place, chunks)?;
            let count = waiting.min(flow.inward.takes(chunks)).min(PIECE);
            if count == 0 && flow.inward.room() > 0 {
                is_starved = true;
                break;
            }
            if count == 0 {
                if announced {
                    break;
                }
                // The process may have made room meanwhile.
                record.inward_waits().announce();
                announced = true;
                continue;
            }
            let target = bounce.get_mut(..count).unwrap_or_default();
            let mut targets = [IoSliceMut::new(target)];
            let Ok(got) = sessions.recv(id, &mut targets, Incoming::default()) else { break };
            let data = bounce.get(..got.bytes).unwrap_or_default();
            flow.inward.write(&place, (&end.inward, chunks), data);
            if got.bytes == 0 {
                break;
            }
            woken = Mask::READABLE;
        }
        if is_starved {
            self.starve(id);
        }
        self.list(id);
        Ok(woken)
    }

    /// What the process has written goes to the peer. Gives what the process is to be woken for.
    fn pump_outward(&mut self, id: Id) -> Result<Mask, Broken> {
        let (mut woken, mut is_starved) = (Mask::NONE, false);
        let Self { flows, end, sessions, bounce, is_tight, .. } = self;
        let Some((flow, record)) = flows.get_mut(id.0 as usize).zip(end.records.get(id.0)) else {
            return Ok(Mask::NONE);
        };
        record.look();
        let place = record.outward();
        loop {
            let waiting = flow.outward.len(&place)?;
            if waiting == 0 {
                break;
            }
            if *is_tight {
                is_starved = true;
                break;
            }
            // Nobody takes it any more; what is wrong is for the process to ask.
            let is_over = !(sessions.mask(id) & (Mask::ERR | Mask::HUP)).is_empty();
            if is_over {
                flow.outward.consume(&place, waiting);
                break;
            }
            let got = flow.outward.peek(&place, &end.outward, 0, bounce)?;
            let data = [IoSlice::new(bounce.get(..got).unwrap_or_default())];
            let Ok(sent) = sessions.send(id, &data, Outgoing::default()) else { break };
            flow.outward.consume(&place, sent);
            woken |= has_room(flow, record)?;
            if sent < got {
                break;
            }
        }
        if is_starved {
            self.starve(id);
        }
        Ok(woken)
    }

    /// Bytes that the process has written, and that the stack has not taken.
    pub(super) fn unsent(&mut self, id: Id) -> usize {
        let Self { flows, end, .. } = self;
        let found = flows.get(id.0 as usize).zip(end.records.get(id.0));
        found.map_or(0, |(flow, record)| flow.outward.len(&record.outward()).unwrap_or(0))
    }

    /// Bytes that have come and that the process has not read.
    pub(super) fn unread(&mut self, id: Id) -> usize {
        let Self { flows, chunks, end, .. } = self;
        let Some((flow, record)) = flows.get_mut(id.0 as usize).zip(end.records.get(id.0)) else {
            return 0;
        };
        match flow.inward.look(&record.inward(), chunks) {
            Ok(()) => flow.inward.len(),
            Err(Broken) => {
                self.is_broken = true;
                0
            }
        }
    }

    /// These bytes.
    pub(super) fn unread_bytes(&mut self, id: Id) -> Vec<u8> {
        self.unread(id);
        let Self { flows, end, .. } = self;
        flows.get(id.0 as usize).map_or(Vec::new(), |flow| flow.inward.unread(&end.inward))
    }

    /// It has chunks that the process may be through with before anything else happens to it.
    fn list(&mut self, id: Id) {
        let flow = self.flow(id);
        if flow.inward.holds() && !flow.listed {
            flow.listed = true;
            self.holding.push_back(id);
        }
    }

    fn starve(&mut self, id: Id) {
        let flow = self.flow(id);
        if !std::mem::replace(&mut flow.starved, true) {
            self.starved.push_back(id);
        }
    }

    /// Takes back the chunks that the process is through with.
    pub(super) fn reclaim(&mut self) {
        for _ in 0..self.holding.len() {
            let Some(id) = self.holding.pop_front() else { return };
            self.flow(id).listed = false;
            // One that has ended has given its chunks back, and its record still says how far its data was read.
            if self.flow(id).inward.holds() {
                let _ = self.unread(id);
                self.list(id);
            }
        }
    }

    /// Those that waited for chunks, or for memory, try again.
    pub(super) fn feed(&mut self) {
        if self.starved.is_empty() || self.is_tight {
            return;
        }
        if self.chunks.free() == 0 {
            self.reclaim();
        }
        for _ in 0..self.starved.len() {
            if self.chunks.free() == 0 {
                return;
            }
            let Some(id) = self.starved.pop_front() else { return };
            self.flow(id).starved = false;
            if self.flow(id).moves() {
                self.attend(id, Mask::READABLE);
            }
        }
    }
}

/// Wakes who waits for room in its own FIFO, when a third is free (sk_stream_write_space). Looked at anew each time: the process
/// may have written meanwhile.
fn has_room(flow: &Flow, record: &Record) -> Result<Mask, Broken> {
    let left = flow.outward.len(&record.outward())?;
    let wakes = left <= CAPACITY as usize / 3 * 2 && record.outward_waits().claim_wake();
    Ok(if wakes { Mask::WRITABLE } else { Mask::NONE })
}

/// Bytes that the process has not read, and that the stack has not taken.
fn waiting(flow: &mut Flow, record: &Record, chunks: &mut Chunks) -> Result<Beside, Broken> {
    flow.inward.look(&record.inward(), chunks)?;
    Ok((flow.inward.len(), flow.outward.len(&record.outward())?))
}
