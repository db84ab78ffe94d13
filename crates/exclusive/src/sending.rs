//! Sending.

use crate::{Packet, Queue, SendError, Unsent};

impl Queue {
    /// Sends a packet by a port.
    ///
    /// # Errors
    /// [`Unsent`] gives the packet back: [`SendError::Full`], [`SendError::NoPort`].
    #[inline]
    pub fn send(&mut self, packet: Packet, port: u8) -> Result<(), Unsent> {
        let Some(transmit) = self.transmit.get_mut(usize::from(port)) else {
            return Err(Unsent { packet, error: SendError::NoPort(port) });
        };
        let mut slot = [Some(packet.buffer)];
        transmit.queue.burst(&mut slot);
        match slot {
            [None] => {
                self.counters.sent += 1;
                Ok(())
            }
            [Some(buffer)] => {
                self.counters.full += 1;
                Err(Unsent { packet: Packet::new(buffer, port), error: SendError::Full })
            }
        }
    }

    /// Sends packets, each by its [`port`](Packet::port): that by which it came in, unless it was changed. Takes out
    /// of `packets` what was sent, gives how many; the rest stays, each port's in order: it found no room, or names
    /// a port that is not there.
    #[inline]
    pub fn send_burst(&mut self, packets: &mut Vec<Packet>) -> usize {
        let before = packets.len();
        let mut kept = Vec::new();
        for packet in packets.drain(..) {
            match self.transmit.get_mut(usize::from(packet.port())) {
                Some(transmit) => transmit.burst.push(Some(packet.buffer)),
                None => kept.push(packet),
            }
        }
        let lost = kept.len();
        for (port, transmit) in (0..).zip(&mut self.transmit) {
            transmit.flush(port, &mut kept);
        }
        self.counters.full += (kept.len() - lost) as u64;
        packets.append(&mut kept);
        let sent = before - packets.len();
        self.counters.sent += sent as u64;
        sent
    }

    /// Sends a packet of the caller's own making by a port; the bytes are copied.
    ///
    /// # Errors
    /// [`SendError::Full`], [`SendError::NoPort`]; [`SendError::Length`] for none or too many bytes;
    /// [`SendError::NoBuffer`].
    pub fn send_bytes(&mut self, bytes: &[u8], port: u8) -> Result<(), SendError> {
        let most = usize::from(self.pool.data_room());
        if bytes.is_empty() || bytes.len() > most {
            return Err(SendError::Length { length: bytes.len(), most });
        }
        let mut buffer = self.pool.alloc().ok_or(SendError::NoBuffer)?;
        let room = buffer.append(bytes.len());
        room.ok_or(SendError::Length { length: bytes.len(), most })?.copy_from_slice(bytes);
        self.send(Packet::new(buffer, port), port).map_err(|unsent| unsent.error)
    }
}
