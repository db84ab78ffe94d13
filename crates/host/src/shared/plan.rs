//! What lies in the memory of a process on a shared stack, and where.

use std::sync::Arc;

use shm::fifo::Arena;
use shm::records::Records;
use shm::{Consumer, Layout, Producer, Region, Segment};
use transport::Stack;

use super::flow::Flow;
use crate::claims::Store;
use crate::session::Session;

/// Slots of the rings of commands and answers, and bytes of a slot.
pub(super) const COMMANDS: (u32, u32) = (4096, 60);
const ANSWERS: (u32, u32) = (256, 508);
/// Bytes of a slot in the ring of events, which has one for each session: none waits for room.
const EVENT: u32 = 60;
/// Sessions, and chunks of a direction, at least and at most.
const SESSIONS: std::ops::RangeInclusive<u32> = 64..=1 << 16;
const CHUNKS: std::ops::RangeInclusive<u32> = 16..=1 << 18;
/// Each part begins at a page, so that no two share one.
const PAGE: usize = 4096;

/// Where each part lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    sessions: u32,
    chunks: u32,
}

/// The parts of the segment, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Commands,
    Answers,
    Events,
    Records,
    Inward,
    Outward,
}

const PARTS: [Part; 6] =
    [Part::Commands, Part::Answers, Part::Events, Part::Records, Part::Inward, Part::Outward];

/// The worker's end of it.
#[derive(Debug)]
pub struct WorkerEnd {
    pub(super) plan: Plan,
    pub(super) commands: Consumer,
    pub(super) answers: Producer,
    pub(super) events: Producer,
    pub(super) records: Records,
    pub(super) inward: Arena,
    pub(super) outward: Arena,
}

/// The process's end.
#[derive(Debug)]
pub struct ProcessEnd {
    pub(super) answers: Consumer,
    pub(super) side: ProcessSide,
}

/// The same without the answers, for which threads wait beside all others.
#[derive(Debug)]
pub(super) struct ProcessSide {
    pub(super) plan: Plan,
    pub(super) commands: Producer,
    pub(super) events: Consumer,
    pub(super) records: Records,
    pub(super) inward: Arena,
    pub(super) outward: Arena,
}

impl WorkerEnd {
    /// What lies where.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.plan
    }
}

impl Plan {
    /// For so many sessions, and so many chunks of 4 KiB in each direction. `None`: too few or too many, or sessions that are
    /// no power of two.
    #[must_use]
    pub fn new(sessions: u32, chunks: u32) -> Option<Self> {
        let fits = SESSIONS.contains(&sessions) && CHUNKS.contains(&chunks);
        (fits && sessions.is_power_of_two()).then_some(Self { sessions, chunks })
    }

    /// Sessions at most: their numbers are below.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    pub(super) fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Connections of the worker's stack at most: more than there are sessions, since some wait to be accepted, and some end
    /// after their session.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sessions as usize * 3 / 2
    }

    /// Connections in TIME-WAIT at most.
    #[must_use]
    pub fn time_waits(&self) -> usize {
        self.sessions as usize * 4
    }

    /// Bytes of the worker's own memory at most, without the data that it holds: places of sessions, of UDP sockets, and of
    /// connections.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        let socket = Stack::<Store>::UDP_PLACE_BYTES;
        let session = size_of::<Option<Session>>() + size_of::<Flow>() + socket;
        self.sessions as usize * session
            + self.connections() * Stack::<Store>::PLACE_BYTES
            + self.time_waits() * Stack::<Store>::TIME_WAIT_BYTES
            + Stack::<Store>::UDP_SPARE_BYTES
    }

    fn layout(&self, part: Part) -> Option<Layout> {
        let (slots, capacity) = match part {
            Part::Commands => COMMANDS,
            Part::Answers => ANSWERS,
            _ => (self.sessions, EVENT),
        };
        Layout::new(slots, capacity).ok()
    }

    fn length(&self, part: Part) -> usize {
        match part {
            Part::Commands | Part::Answers | Part::Events => {
                self.layout(part).map_or(0, |layout| layout.bytes())
            }
            Part::Records => Records::bytes(self.sessions),
            Part::Inward | Part::Outward => Arena::bytes(self.chunks),
        }
    }

    /// Bytes of the segment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        PARTS.iter().map(|part| self.length(*part).next_multiple_of(PAGE)).sum()
    }

    fn region(&self, segment: &Arc<Segment>, wanted: Part) -> Option<Region> {
        let before = PARTS.iter().take_while(|part| **part != wanted);
        let offset = before.map(|part| self.length(*part).next_multiple_of(PAGE)).sum();
        segment.region(offset, self.length(wanted))
    }

    fn producer(&self, segment: &Arc<Segment>, part: Part) -> Option<Producer> {
        Producer::new(self.region(segment, part)?, self.layout(part)?).ok()
    }

    fn consumer(&self, segment: &Arc<Segment>, part: Part) -> Option<Consumer> {
        Consumer::new(self.region(segment, part)?, self.layout(part)?).ok()
    }

    fn arena(&self, segment: &Arc<Segment>, part: Part) -> Option<Arena> {
        Arena::new(self.region(segment, part)?, self.chunks)
    }

    /// The worker's end. `None`: the segment is too short.
    #[must_use]
    pub fn worker(&self, segment: &Arc<Segment>) -> Option<WorkerEnd> {
        Some(WorkerEnd {
            plan: *self,
            commands: self.consumer(segment, Part::Commands)?,
            answers: self.producer(segment, Part::Answers)?,
            events: self.producer(segment, Part::Events)?,
            records: Records::new(self.region(segment, Part::Records)?, self.sessions)?,
            inward: self.arena(segment, Part::Inward)?,
            outward: self.arena(segment, Part::Outward)?,
        })
    }

    /// The process's end. `None`: the segment is too short.
    #[must_use]
    pub fn process(&self, segment: &Arc<Segment>) -> Option<ProcessEnd> {
        let side = ProcessSide {
            plan: *self,
            commands: self.producer(segment, Part::Commands)?,
            events: self.consumer(segment, Part::Events)?,
            records: Records::new(self.region(segment, Part::Records)?, self.sessions)?,
            inward: self.arena(segment, Part::Inward)?,
            outward: self.arena(segment, Part::Outward)?,
        };
        Some(ProcessEnd { answers: self.consumer(segment, Part::Answers)?, side })
    }
}
