//! A ring from a worker of the daemon and the ring to it.

use std::mem::MaybeUninit;
use std::sync::Arc;

use shm::attach::{REFERENCE, RETURNS, Reference, flag};
use shm::{Buffers, Doorbell, Meta, Producer, PushError, Taken, Trusting};

use crate::Packet;
use crate::error::{Error, Unsent};
use crate::packet::Place;

/// Both rings, and the worker's doorbell.
#[derive(Debug)]
pub(crate) struct Pair {
    receive: Trusting,
    pub(crate) transmit: Producer,
    /// The worker's; all channels ring the same.
    worker: Arc<Doorbell>,
    /// Something was pushed since the last ring.
    touched: bool,
    /// The device's buffers, for a dedicated receive queue.
    buffers: Option<Buffers>,
    /// Numbers of those that are to go back; never more than there are buffers.
    returning: Vec<u32>,
    /// References that made no sense.
    strange: u64,
}

impl Pair {
    pub(crate) fn new(
        receive: Trusting,
        transmit: Producer,
        worker: Arc<Doorbell>,
        buffers: Option<Buffers>,
    ) -> Self {
        let returning = Vec::new();
        Self { receive, transmit, worker, touched: false, buffers, returning, strange: 0 }
    }

    /// Wakes the worker if it sleeps and was given something.
    #[inline]
    pub(crate) fn ring(&mut self) {
        if self.touched {
            self.touched = false;
            self.worker.ring(self.transmit.consumer_sleeps());
        }
    }

    /// The next packet; `worker` is this pair's number.
    #[inline]
    pub(crate) fn next(&mut self, worker: usize) -> Option<Packet> {
        loop {
            let taken = self.receive.next()?;
            let Meta { port, flags } = taken.meta();
            if flags & flag::REFERENCE == 0 {
                return Some(Packet::new(Place::Slots(taken), worker, port));
            }
            if let Some(place) = self.accept(taken) {
                return Some(Packet::new(place, worker, port));
            }
        }
    }

    /// A packet in one of the device's buffers. The slot that referred to it goes back at once.
    fn accept(&mut self, taken: Taken) -> Option<Place> {
        let mut message = [0; REFERENCE];
        let whole = self.receive.copy(&taken, &mut message) == taken.length();
        self.receive.release(taken);
        let reference = Reference::decode(&message).filter(|_| whole);
        let lent = reference.and_then(|reference| self.buffers.as_ref()?.accept(reference));
        self.strange += u64::from(lent.is_none());
        lent.map(|lent| Place::Buffer(lent, message))
    }

    /// Whether a packet waits.
    pub(crate) fn has_next(&self) -> bool {
        self.receive.has_next()
    }

    /// Says to the daemon that this side sleeps, or that it does so no more.
    pub(crate) fn sleeps(&self) -> shm::SleepWord<'_> {
        self.receive.sleeps()
    }

    /// Packets that made no sense.
    pub(crate) fn malformed(&self) -> u64 {
        self.receive.malformed() + self.strange
    }

    #[inline]
    pub(crate) fn bytes(&self, packet: &Packet, piece: u32) -> Option<&[u8]> {
        match &packet.place {
            Place::Slots(taken) => self.receive.bytes(taken, piece),
            Place::Buffer(lent, _) => self.buffers.as_ref().filter(|_| piece == 0)?.bytes(lent),
        }
    }

    #[inline]
    pub(crate) fn bytes_mut<'a>(
        &'a mut self,
        packet: &'a mut Packet,
        piece: u32,
    ) -> Option<&'a mut [u8]> {
        match &mut packet.place {
            Place::Slots(taken) => self.receive.bytes_mut(taken, piece),
            Place::Buffer(lent, _) => self.buffers.as_mut().filter(|_| piece == 0)?.bytes_mut(lent),
        }
    }

    /// Copies a packet's bytes, as many as fit; gives how many.
    pub(crate) fn copy(&self, packet: &Packet, target: &mut [u8]) -> usize {
        if let Place::Slots(taken) = &packet.place {
            return self.receive.copy(taken, target);
        }
        let bytes = self.bytes(packet, 0).unwrap_or_default();
        let length = bytes.len().min(target.len());
        if let (Some(target), Some(bytes)) = (target.get_mut(..length), bytes.get(..length)) {
            target.copy_from_slice(bytes);
        }
        length
    }

    /// The same, to memory that need not be initialised.
    pub(crate) fn copy_into(&self, packet: &Packet, target: &mut [MaybeUninit<u8>]) -> usize {
        if let Place::Slots(taken) = &packet.place {
            return self.receive.copy_into(taken, target);
        }
        let bytes = self.bytes(packet, 0).unwrap_or_default();
        for (target, byte) in target.iter_mut().zip(bytes) {
            target.write(*byte);
        }
        bytes.len().min(target.len())
    }

    /// Gives a packet's memory back to the daemon.
    #[inline]
    pub(crate) fn release(&mut self, packet: Packet) {
        match packet.place {
            Place::Slots(taken) => self.receive.release(taken),
            Place::Buffer(lent, _) => {
                if owns(self.buffers.as_ref(), &lent) {
                    self.returning.push(lent.reference().place);
                }
                if self.returning.len() >= RETURNS {
                    self.give_back();
                }
            }
        }
    }

    /// Tells the daemon which buffers are its own again; what finds no room now is told later.
    pub(crate) fn give_back(&mut self) {
        while !self.returning.is_empty() {
            let rest = self.returning.len().saturating_sub(RETURNS);
            let places = self.returning.get(rest..).unwrap_or_default();
            let mut message = [0; 4 * RETURNS];
            for (target, place) in message.chunks_exact_mut(4).zip(places) {
                target.copy_from_slice(&place.to_le_bytes());
            }
            let message = message.get(..4 * places.len()).unwrap_or_default();
            if self.push(message, Meta { port: 0, flags: flag::RETURN }).is_err() {
                break;
            }
            self.returning.truncate(rest);
        }
        // A device that had no buffer left receives again only when the worker looks.
        self.ring();
    }

    /// Puts bytes into the ring to the worker.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8], meta: Meta) -> Result<(), PushError> {
        self.transmit.push(bytes, meta)?;
        self.touched = true;
        Ok(())
    }

    /// Puts packets, each for its port, into the ring to the worker: in a burst, up to the first that found no room or
    /// lies in pieces. Gives how many; they are still to be settled.
    #[inline]
    pub(crate) fn push_run(&mut self, run: &[Packet], flags: u8) -> usize {
        let Self { receive, transmit, touched, buffers, .. } = self;
        // A packet without bytes never goes.
        let none: (&[u8], Meta) = (&[], Meta::default());
        let pushed = transmit.push_burst(run.len(), |at| {
            let Some(packet) = run.get(at) else { return none };
            let port = packet.port();
            match &packet.place {
                Place::Slots(taken) if taken.slots() == 1 => {
                    (receive.bytes(taken, 0).unwrap_or_default(), Meta { port, flags })
                }
                Place::Buffer(lent, message) if owns(buffers.as_ref(), lent) => {
                    (message, Meta { port, flags: flags | flag::REFERENCE })
                }
                _ => none,
            }
        });
        *touched |= pushed > 0;
        pushed
    }

    /// Puts a copy of a packet into the ring to the worker, for its port. `scratch` is where one of several pieces is put
    /// together.
    pub(crate) fn push_copy(
        &mut self,
        packet: &Packet,
        flags: u8,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Self { receive, transmit, buffers, .. } = self;
        let bytes = match &packet.place {
            Place::Slots(taken) if taken.slots() > 1 => {
                scratch.resize(taken.length(), 0);
                let length = receive.copy(taken, scratch);
                scratch.get(..length).filter(|bytes| !bytes.is_empty())
            }
            Place::Slots(taken) => receive.bytes(taken, 0),
            Place::Buffer(lent, _) => buffers.as_ref().and_then(|buffers| buffers.bytes(lent)),
        };
        transmit.push(bytes.ok_or(Error::Foreign)?, Meta { port: packet.port(), flags })?;
        self.touched = true;
        Ok(())
    }

    /// After a packet was pushed: its slots go back; its buffer is the daemon's already.
    #[inline]
    pub(crate) fn settle(&mut self, packet: Packet) {
        if let Place::Slots(taken) = packet.place {
            self.receive.release(taken);
        }
    }

    /// Moves a packet from the one ring to the other. `scratch` is where one of several pieces is put together.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        packet: Packet,
        flags: u8,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unsent> {
        let Self { receive, transmit, buffers, .. } = self;
        let meta = Meta { port: packet.port(), flags };
        let pushed = match &packet.place {
            Place::Slots(taken) => match receive.bytes(taken, 0) {
                None => None,
                Some(bytes) if taken.slots() == 1 => Some(transmit.push(bytes, meta)),
                Some(_) => {
                    scratch.resize(taken.length(), 0);
                    receive.copy(taken, scratch);
                    Some(transmit.push(scratch, meta))
                }
            },
            Place::Buffer(lent, message) => owns(buffers.as_ref(), lent)
                .then(|| transmit.push(message, Meta { flags: flags | flag::REFERENCE, ..meta })),
        };
        match pushed {
            None => return Err(Unsent { packet, error: Error::Foreign }),
            Some(Err(error)) => return Err(Unsent { packet, error: error.into() }),
            Some(Ok(())) => self.touched = true,
        }
        self.settle(packet);
        Ok(())
    }
}

/// Whether a packet lies in these buffers.
#[inline]
fn owns(buffers: Option<&Buffers>, lent: &shm::Lent) -> bool {
    buffers.is_some_and(|buffers| buffers.bytes(lent).is_some())
}
