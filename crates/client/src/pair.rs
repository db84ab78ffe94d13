//! A ring from a worker of the daemon and the ring to it.

use std::sync::Arc;

use shm::{Doorbell, Meta, Producer, PushError, Trusting};

use crate::Packet;
use crate::error::{Error, Unsent};

/// Both rings, and the worker's doorbell.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) receive: Trusting,
    pub(crate) transmit: Producer,
    /// The worker's; all channels ring the same.
    pub(crate) worker: Arc<Doorbell>,
    /// Something was pushed since the last ring.
    pub(crate) touched: bool,
}

impl Pair {
    /// Wakes the worker if it sleeps and was given something.
    #[inline]
    pub(crate) fn ring(&mut self) {
        if self.touched {
            self.touched = false;
            self.worker.ring(self.transmit.consumer_sleeps());
        }
    }

    /// Puts bytes into the ring to the worker.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8], meta: Meta) -> Result<(), PushError> {
        self.transmit.push(bytes, meta)?;
        self.touched = true;
        Ok(())
    }

    /// Copies packets, each for its port, into the ring to the worker: in a burst, up to the first that found no room
    /// or lies in pieces. Gives how many; they are still to be released.
    #[inline]
    pub(crate) fn copy_run(&mut self, run: &[Packet], flags: u8) -> usize {
        let Self { receive, transmit, touched, .. } = self;
        let copied = transmit.push_burst(run.len(), |at| {
            let Some(packet) = run.get(at).filter(|packet| packet.pieces() == 1) else {
                // A packet without bytes never goes.
                return (&[], Meta::default());
            };
            let bytes = receive.bytes(&packet.taken, 0).unwrap_or_default();
            (bytes, Meta { port: packet.port(), flags })
        });
        *touched |= copied > 0;
        copied
    }

    /// Moves a packet from the one ring to the other. `scratch` is where one of several pieces is put together.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        packet: Packet,
        meta: Meta,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unsent> {
        let pushed = match self.receive.bytes(&packet.taken, 0) {
            None => return Err(Unsent { packet, error: Error::Foreign }),
            Some(bytes) if packet.pieces() == 1 => self.transmit.push(bytes, meta),
            Some(_) => {
                scratch.resize(packet.length(), 0);
                self.receive.copy(&packet.taken, scratch);
                self.transmit.push(scratch, meta)
            }
        };
        if let Err(error) = pushed {
            return Err(Unsent { packet, error: error.into() });
        }
        self.touched = true;
        self.receive.release(packet.taken);
        Ok(())
    }
}
