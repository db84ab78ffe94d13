//! Sending.

use std::thread::sleep;
use std::time::{Duration, Instant};

use shm::attach::flag;
use shm::{Meta, PushError};

use crate::pair::Pair;
use crate::{Channel, Error, Packet, Unsent};

/// Between two looks at whether all is sent.
const PAUSE: Duration = Duration::from_micros(100);

impl Channel {
    /// Sends a packet by a port: it goes to the worker from which it came, so that a flow stays in order.
    ///
    /// # Errors
    /// [`Unsent`] gives the packet back: [`Error::Full`], [`Error::Foreign`], [`Error::DaemonGone`], [`Error::Forked`].
    #[inline]
    pub fn send(&mut self, mut packet: Packet, port: u8) -> Result<(), Unsent> {
        packet.set_port(port);
        self.forward_one(packet, 0)
    }

    /// Gives a packet back to the graph, as if it had just come in by its port: what a function does not want.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn return_to_graph(&mut self, packet: Packet) -> Result<(), Unsent> {
        self.forward_one(packet, flag::GRAPH)
    }

    /// Sends a copy of a packet by its [`port`](Packet::port), and leaves the packet to the caller, who still may look at
    /// it. It goes to the worker from which it came, like the packet itself.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Foreign`], [`Error::DaemonGone`], [`Error::Forked`].
    pub fn send_copy(&mut self, packet: &Packet) -> Result<(), Error> {
        self.forward_copy(packet, 0)
    }

    /// Gives a copy of a packet to the graph, like [`send_copy`](Self::send_copy).
    ///
    /// # Errors
    /// As [`send_copy`](Self::send_copy).
    pub fn return_copy(&mut self, packet: &Packet) -> Result<(), Error> {
        self.forward_copy(packet, flag::GRAPH)
    }

    /// Sends packets, each by its [`port`](Packet::port): that by which it came in, unless it was changed. Takes out
    /// of `packets` what was sent, gives how many; the rest found no room and stays, in order.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Forked`].
    pub fn send_burst(&mut self, packets: &mut Vec<Packet>) -> Result<usize, Error> {
        self.forward_burst(packets, 0)
    }

    /// Gives packets back to the graph, like [`send_burst`](Self::send_burst).
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Forked`].
    pub fn return_burst(&mut self, packets: &mut Vec<Packet>) -> Result<usize, Error> {
        self.forward_burst(packets, flag::GRAPH)
    }

    /// Sends a packet of the caller's own making by a port; the bytes are copied.
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Unsendable`] for none or too many bytes; [`Error::DaemonGone`], [`Error::Forked`].
    pub fn send_bytes(&mut self, bytes: &[u8], port: u8) -> Result<(), Error> {
        self.push(bytes, Meta { port, flags: 0 })
    }

    /// Gives a packet of the caller's own making to the graph, as if it had come in by the port.
    ///
    /// # Errors
    /// As [`send_bytes`](Self::send_bytes).
    pub fn return_bytes(&mut self, bytes: &[u8], port: u8) -> Result<(), Error> {
        self.push(bytes, Meta { port, flags: flag::GRAPH })
    }

    /// Waits until the daemon has taken all that was sent, at most `longest`; gives whether it has.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Forked`].
    pub fn flush(&mut self, longest: Duration) -> Result<bool, Error> {
        self.check_process()?;
        let start = Instant::now();
        loop {
            self.pairs.iter_mut().for_each(Pair::give_back);
            if self.pairs.iter().all(|pair| pair.transmit.is_drained()) {
                return Ok(true);
            }
            self.look_for_daemon()?;
            if start.elapsed() >= longest {
                return Ok(false);
            }
            sleep(PAUSE);
        }
    }

    fn forward_one(&mut self, packet: Packet, flags: u8) -> Result<(), Unsent> {
        if let Err(error) = self.look_for_daemon() {
            return Err(Unsent { packet, error });
        }
        let done = self.forward(packet, flags);
        self.ring();
        done
    }

    fn forward_copy(&mut self, packet: &Packet, flags: u8) -> Result<(), Error> {
        self.look_for_daemon()?;
        let pair = self.pairs.get_mut(packet.worker).ok_or(Error::Foreign)?;
        let done = pair.push_copy(packet, flags, &mut self.scratch);
        match &done {
            Ok(()) => self.counters.sent += 1,
            Err(Error::Full) => self.counters.full += 1,
            Err(_) => {}
        }
        self.ring();
        done
    }

    fn forward_burst(&mut self, packets: &mut Vec<Packet>, flags: u8) -> Result<usize, Error> {
        self.look_for_daemon()?;
        let before = packets.len();
        let mut list = std::mem::take(packets);
        while !list.is_empty() {
            let (run, pushed) = self.push_front(&list, flags);
            for (at, packet) in list.drain(..run).enumerate() {
                if at < pushed {
                    self.settle(packet);
                } else if let Err(unsent) = self.forward(packet, flags) {
                    packets.push(unsent.packet);
                }
            }
        }
        if packets.is_empty() {
            // Its memory serves the next burst.
            *packets = list;
        }
        self.ring();
        Ok(before - packets.len())
    }

    /// Forwards packets in order until one does not go; takes out of `packets` what went. Nothing is rung yet.
    pub(crate) fn forward_first(
        &mut self,
        packets: &mut Vec<Packet>,
        flags: u8,
    ) -> Result<(), Error> {
        while !packets.is_empty() {
            let (run, pushed) = self.push_front(packets, flags);
            packets.drain(..pushed).for_each(|packet| self.settle(packet));
            if pushed < run {
                // In pieces, or it does not go.
                if let Err(Unsent { packet, error }) = self.forward(packets.remove(0), flags) {
                    packets.insert(0, packet);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Puts the packets at the front that came from one worker into the ring to it in a burst, up to the first that found
    /// no room or lies in pieces. Gives how many came from it, and how many of them went.
    fn push_front(&mut self, packets: &[Packet], flags: u8) -> (usize, usize) {
        let Some(worker) = packets.first().map(|packet| packet.worker) else { return (0, 0) };
        let run = packets.iter().take_while(|packet| packet.worker == worker).count();
        let front = packets.get(..run).unwrap_or_default();
        let pushed = self.pairs.get_mut(worker).map_or(0, |pair| pair.push_run(front, flags));
        self.counters.sent += pushed as u64;
        (run, pushed)
    }

    fn settle(&mut self, packet: Packet) {
        if let Some(pair) = self.pairs.get_mut(packet.worker) {
            pair.settle(packet);
        }
    }

    /// Wakes the workers that were given something and sleep.
    #[inline]
    pub(crate) fn ring(&mut self) {
        self.pairs.iter_mut().for_each(Pair::ring);
    }

    /// To the worker from which it came, for its port. It is not rung yet.
    #[inline]
    fn forward(&mut self, packet: Packet, flags: u8) -> Result<(), Unsent> {
        let Some(pair) = self.pairs.get_mut(packet.worker) else {
            return Err(Unsent { packet, error: Error::Foreign });
        };
        let done = pair.forward(packet, flags, &mut self.scratch);
        match &done {
            Ok(()) => self.counters.sent += 1,
            Err(Unsent { error: Error::Full, .. }) => self.counters.full += 1,
            Err(_) => {}
        }
        done
    }

    /// To the home pair, else to the first that has room.
    fn push(&mut self, bytes: &[u8], meta: Meta) -> Result<(), Error> {
        self.look_for_daemon()?;
        for turn in 0..self.pairs.len() {
            let worker = (self.home + turn) % self.pairs.len();
            let Some(pair) = self.pairs.get_mut(worker) else { break };
            match pair.push(bytes, meta) {
                Ok(()) => {
                    pair.ring();
                    self.counters.sent += 1;
                    return Ok(());
                }
                Err(PushError::Full) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.counters.full += 1;
        Err(Error::Full)
    }
}
