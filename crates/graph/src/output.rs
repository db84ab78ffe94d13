//! Per-(core, port) transmit buffers with a drain time.

mod burst;
mod lanes;

use dpdk::{Buffer, SharedBuffer, TxQueue};

use crate::capture::Tap;
use crate::{Counters, HandoffSender, PortId, Reason};

use burst::{attempt, send};

/// Packets gathered per port before they go to the driver: the burst most drivers are tuned for.
const BURST: usize = 64;
/// As many do not wait for more where packets leave by several ports, as in DPDK's l3fwd. Each one that waits holds three lines of the
/// first-level cache; with two or three ports, hardly any of a vector do.
const ENOUGH: usize = BURST / 4;
/// Places in the transmit buffer of a port: all packets of a burst for several ports find one, whatever waits.
const PLACES: usize = 2 * BURST;

/// Ports whose packets are picked out of a burst together; those of more go one by one.
const FEW: usize = 4;

/// How this worker reaches a port.
#[derive(Debug)]
pub enum TransmitPath {
    /// Through a transmit queue of its own.
    Queue(TxQueue),
    /// Through another worker, because the device has fewer transmit queues than there are workers.
    Worker(HandoffSender<Buffer>),
}

struct PortBuffer {
    /// Whom the path leads to.
    id: PortId,
    path: Option<TransmitPath>,
    /// How many places of a burst ask for nothing but to be filled: all but the first and the last,
    /// or none while there is no path. One comparison finds out.
    plain: usize,
    len: usize,
    waiting: [Option<Buffer>; PLACES],
    since: u64,
    /// Packets that left the buffer, whatever became of them.
    left: u64,
}

/// A place in the transmit buffer of a port.
pub struct Room<'a>(&'a mut PortBuffer);

impl Room<'_> {
    /// Fills it.
    #[inline(always)]
    pub fn put(self, buffer: Buffer) {
        self.0.put(buffer);
    }
}

/// The transmit buffers of one worker, one per port.
pub struct Output {
    ports: Vec<PortBuffer>,
    /// Ports whose buffers are not empty.
    waiting: Vec<PortId>,
    drain: u64,
    pub(crate) tap: Option<Box<Tap>>,
}

impl Output {
    /// Buffers for `ports` ports, none with a path yet. `drain`: longest wait, TSC cycles.
    #[must_use]
    pub fn new(ports: usize, drain: u64) -> Self {
        let buffer = |_| PortBuffer {
            id: PortId::NONE,
            path: None,
            plain: 0,
            len: 0,
            waiting: [const { None }; PLACES],
            since: 0,
            left: 0,
        };
        Self {
            ports: (0..ports).map(buffer).collect(),
            waiting: Vec::with_capacity(ports),
            drain,
            tap: None,
        }
    }

    pub(crate) fn set_path(
        &mut self,
        port: PortId,
        path: Option<TransmitPath>,
        counters: &Counters,
    ) -> Option<TransmitPath> {
        let entry = self.ports.get_mut(port.number())?;
        if path.is_none() && entry.id != port {
            return None;
        }
        if entry.len > 0 {
            entry.flush(counters, &mut self.tap);
            self.waiting.retain(|waiting| waiting.number() != port.number());
        }
        entry.replace_path(port, path)
    }

    /// Takes every path away, after what waits was sent.
    pub(crate) fn take_paths(&mut self, counters: &Counters) -> Vec<(PortId, TransmitPath)> {
        self.flush(counters);
        let taken = |entry: &mut PortBuffer| {
            let id = entry.id;
            Some((id, entry.replace_path(id, None)?))
        };
        self.ports.iter_mut().filter_map(taken).collect()
    }

    /// Buffers a packet for `port`; gives it back when the port has no path.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        port: PortId,
        buffer: Buffer,
        now: u64,
        counters: &Counters,
    ) -> Result<(), Buffer> {
        match self.room(port) {
            Some(room) => {
                room.put(buffer);
                Ok(())
            }
            None => self.push_at_edge(port, buffer, now, counters),
        }
    }

    /// A place of a burst that asks for nothing but to be filled.
    #[inline(always)]
    pub(crate) fn room(&mut self, port: PortId) -> Option<Room<'_>> {
        let entry = self.ports.get_mut(port.number())?;
        (entry.len.wrapping_sub(1) < entry.plain && entry.id == port).then_some(Room(entry))
    }

    /// As [`Self::push`], of packets in a row: `false`, and all are left, when the port has no path.
    pub(crate) fn push_all(
        &mut self,
        port: PortId,
        burst: &mut [Option<Buffer>],
        now: u64,
        counters: &Counters,
    ) -> bool {
        let Self { ports, waiting, tap, .. } = self;
        let Some(entry) = leading_to(ports, port) else { return burst.is_empty() };
        let mut rest = burst;
        if entry.len == 0 {
            // Whole bursts leave from where they are.
            let (whole, after) = rest.split_at_mut(rest.len() - rest.len() % BURST);
            whole.chunks_mut(BURST).for_each(|burst| entry.pass(burst, counters, tap));
            rest = after;
        }
        while !rest.is_empty() {
            let Some(entry) = begin(ports, waiting, port, now) else { return false };
            let (part, after) = rest.split_at_mut(rest.len().min(BURST.saturating_sub(entry.len)));
            entry.put_all(part);
            rest = after;
            if entry.len >= BURST {
                entry.flush(counters, tap);
                waiting.retain(|waiting| *waiting != port);
            }
        }
        true
    }

    /// As [`Self::push`], of packets that leave by a port each: `false` when some ports have no path, whose packets are left.
    pub(crate) fn push_each(
        &mut self,
        ports: &[PortId],
        burst: &mut [Option<Buffer>],
        now: u64,
        counters: &Counters,
    ) -> bool {
        let mut all = true;
        // Fewer than a burst wait for each port, so that there is room for another one.
        for (ports, burst) in ports.chunks(BURST).zip(burst.chunks_mut(BURST)) {
            let Self { ports: buffers, waiting, .. } = self;
            // Where they are and how many, which no packet changes, stays in registers.
            let buffers = buffers.as_mut_slice();
            let mut left = lanes::first(ports);
            for _ in 0..FEW {
                let Some(&port) = ports.get(left.trailing_zeros() as usize) else { break };
                let its = lanes::of(ports, port);
                left &= !its;
                match begin(buffers, waiting, port, now) {
                    Some(entry) => entry.put_lanes(its, burst),
                    None => all = false,
                }
            }
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                left &= left - 1;
                let (Some(&port), Some(place)) = (ports.get(at), burst.get_mut(at)) else { break };
                // Packets wait only where there is a path.
                let entry = match buffers.get_mut(port.number()) {
                    Some(entry) if entry.len > 0 && entry.id == port => Some(entry),
                    _ => begin(buffers, waiting, port, now),
                };
                match entry {
                    Some(entry) => entry.put_from(place),
                    None => all = false,
                }
            }
            self.flush_enough(counters);
        }
        all
    }

    /// Sends what waits for each port that has enough.
    fn flush_enough(&mut self, counters: &Counters) {
        let Self { ports, waiting, tap, .. } = self;
        waiting.retain(|port| {
            let Some(entry) = ports.get_mut(port.number()) else { return false };
            let enough = entry.len >= ENOUGH;
            if enough {
                entry.flush(counters, tap);
            }
            !enough
        });
    }

    /// As [`Self::push`], for the first and the last packet of a burst, and without a path.
    #[inline(never)]
    fn push_at_edge(
        &mut self,
        port: PortId,
        buffer: Buffer,
        now: u64,
        counters: &Counters,
    ) -> Result<(), Buffer> {
        let Self { ports, waiting, .. } = self;
        let Some(entry) = begin(ports, waiting, port, now) else { return Err(buffer) };
        entry.put(buffer);
        if entry.len == BURST {
            entry.flush(counters, &mut self.tap);
            self.waiting.retain(|waiting| *waiting != port);
        }
        Ok(())
    }

    /// Whether packets that another process may change can go to `port` as they are: only a driver sees them, and can
    /// send them from there.
    pub(crate) fn sends_shared(&self, port: PortId, mapped: bool) -> bool {
        let entry = self.ports.get(port.number()).filter(|entry| entry.id == port);
        let path = entry.and_then(|entry| entry.path.as_ref());
        let Some(TransmitPath::Queue(queue)) = path else { return false };
        self.tap.is_none() && queue.sends_shared(mapped)
    }

    /// Sends packets at once, those that wait first. What the driver did not take is counted and left.
    pub(crate) fn push_shared(
        &mut self,
        port: PortId,
        packets: &mut [Option<SharedBuffer>],
        counters: &Counters,
    ) {
        let Some(entry) = leading_to(&mut self.ports, port) else { return };
        if entry.len > 0 {
            entry.flush(counters, &mut self.tap);
            self.waiting.retain(|waiting| *waiting != port);
        }
        let Some(TransmitPath::Queue(queue)) = &mut entry.path else { return };
        let Some(count) = counters.ports.get(port.number()) else { return };
        let sent = attempt(packets, |rest| queue.burst_shared(rest));
        count.sent(sent);
        let refused = packets.len() - sent.packets;
        count.tx_dropped.add(refused as u64);
        counters.drops[Reason::TransmitFull as usize].add(refused as u64);
    }

    /// Sends what has waited longer than the drain time.
    #[inline]
    pub fn flush_due(&mut self, now: u64, counters: &Counters) {
        if !self.waiting.is_empty() {
            self.flush_older(now, self.drain, counters);
        }
    }

    /// Sends everything that waits.
    #[inline]
    pub fn flush(&mut self, counters: &Counters) {
        if !self.waiting.is_empty() {
            self.flush_older(0, 0, counters);
        }
    }

    fn flush_older(&mut self, now: u64, age: u64, counters: &Counters) {
        let Self { ports, waiting, tap, .. } = self;
        waiting.retain(|port| {
            let Some(entry) = ports.get_mut(port.number()) else { return false };
            let due = now.wrapping_sub(entry.since) >= age;
            if due {
                entry.flush(counters, tap);
            }
            !due
        });
    }

    /// Packets that were put into the ports' buffers so far. Two calls tell the trace whether and where one
    /// was put in between.
    pub(crate) fn given(&self) -> impl Iterator<Item = (PortId, u64)> + '_ {
        self.ports.iter().map(|entry| (entry.id, entry.left + entry.len as u64))
    }
}

impl PortBuffer {
    fn replace_path(&mut self, id: PortId, path: Option<TransmitPath>) -> Option<TransmitPath> {
        self.id = id;
        self.plain = if path.is_some() { BURST - 2 } else { 0 };
        std::mem::replace(&mut self.path, path)
    }

    #[inline(always)]
    fn put(&mut self, buffer: Buffer) {
        // The place is empty. Forgetting the nothing in it spares a look whether to drop it.
        std::mem::forget(self.waiting[self.len % PLACES].replace(buffer));
        self.len += 1;
    }

    /// Puts the packet at a place, which is empty then.
    #[inline(always)]
    fn put_from(&mut self, place: &mut Option<Buffer>) {
        let len = self.len;
        std::mem::swap(&mut self.waiting[len % PLACES], place);
        self.len = len + 1;
    }

    /// Puts the packets of a burst at the places of these bits, which are empty then.
    #[inline]
    fn put_lanes(&mut self, lanes: u64, burst: &mut [Option<Buffer>]) {
        // In a register while it takes: to read what was just written takes longer than the rest.
        let (mut len, mut lanes) = (self.len, lanes);
        while lanes != 0 {
            if let Some(place) = burst.get_mut(lanes.trailing_zeros() as usize) {
                std::mem::forget(std::mem::replace(&mut self.waiting[len % PLACES], place.take()));
                len += 1;
            }
            lanes &= lanes - 1;
        }
        self.len = len;
    }

    /// Puts as many as there is room for; the places that they come from are empty then.
    fn put_all(&mut self, burst: &mut [Option<Buffer>]) {
        if let Some(places) = self.waiting.get_mut(self.len..self.len + burst.len()) {
            places.swap_with_slice(burst);
            self.len += burst.len();
        }
    }

    fn flush(&mut self, counters: &Counters, tap: &mut Option<Box<Tap>>) {
        let Self { id, path, waiting, len, left, .. } = self;
        let burst = &mut waiting[..std::mem::take(len).min(PLACES)];
        *left += burst.len() as u64;
        send(burst, *id, path, counters, tap);
    }

    /// Sends packets before which none wait.
    fn pass(
        &mut self,
        burst: &mut [Option<Buffer>],
        counters: &Counters,
        tap: &mut Option<Box<Tap>>,
    ) {
        self.left += burst.len() as u64;
        send(burst, self.id, &mut self.path, counters, tap);
    }
}

/// The buffer of a port that there is a path to.
#[inline(always)]
fn leading_to(ports: &mut [PortBuffer], port: PortId) -> Option<&mut PortBuffer> {
    let entry = ports.get_mut(port.number())?;
    (entry.id == port && entry.path.is_some()).then_some(entry)
}

/// The same for a packet that is to wait there: the first one starts the drain time.
#[inline(never)]
fn begin<'a>(
    ports: &'a mut [PortBuffer],
    waiting: &mut Vec<PortId>,
    port: PortId,
    now: u64,
) -> Option<&'a mut PortBuffer> {
    let entry = leading_to(ports, port)?;
    if entry.len == 0 {
        entry.since = now;
        waiting.push(port);
    }
    Some(entry)
}

#[cfg(test)]
mod tests;
