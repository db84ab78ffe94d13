//! Receive and transmit queues: each belongs to one thread at a time.

use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use super::PortError;
use super::bursts::Bursts;
use super::handle::Handle;
use crate::{Buffer, DeviceKind, SharedBuffer, SharedPool, ffi};

/// One receive queue. It can move to another thread but not be shared.
#[derive(Debug)]
pub struct RxQueue {
    port: u16,
    queue: u16,
    handle: Arc<Handle>,
    /// Where its buffers come from, when their memory can be lent.
    shared: Option<Box<SharedPool>>,
    /// Where the driver needs to know of them.
    bursts: Option<Bursts>,
    one_thread: PhantomData<Cell<()>>,
}

impl RxQueue {
    pub(super) fn new(handle: &Arc<Handle>, queue: u16, shared: Option<Box<SharedPool>>) -> Self {
        let handle = Arc::clone(handle);
        let bursts = handle.bursts();
        Self { port: handle.id, queue, handle, shared, bursts, one_thread: PhantomData }
    }

    /// The pool that feeds it, when it was opened with one whose memory can be lent.
    #[inline]
    pub fn shared(&mut self) -> Option<&mut SharedPool> {
        self.shared.as_deref_mut()
    }

    /// Ends the queue; gives that pool back, to open the device anew with it.
    #[must_use]
    pub fn into_shared(self) -> Option<Box<SharedPool>> {
        self.shared
    }

    /// Takes what has arrived, at most `slots.len()` packets, into the first slots; returns how
    /// many. The slots must be empty: a buffer in one of them is lost to its pool.
    ///
    /// Packets that lie in lent memory are not among them, but in [`SharedPool::received`].
    #[inline(always)]
    pub fn burst(&mut self, slots: &mut [Option<Buffer>]) -> usize {
        debug_assert!(slots.iter().all(Option::is_none));
        let n = slots.len().min(usize::from(u16::MAX)) as u16;
        let (port, queue) = (self.port, self.queue);
        // SAFETY: the queue was set up and its port is open and started while `handle` lives; only
        // this thread has the queue; `Option<Buffer>` is a nullable mbuf pointer, and what the
        // driver writes, `n` at most, are mbufs that it gives away.
        let mut take =
            || unsafe { ffi::millrace_rx_burst(port, queue, slots.as_mut_ptr().cast(), n) };
        let got = usize::from(match &mut self.bursts {
            None => take(),
            Some(bursts) => bursts.run(take),
        });
        match &mut self.shared {
            None => got,
            Some(pool) => slots.get_mut(..got).map_or(0, |burst| pool.sort(burst)),
        }
    }

    /// The queue's number.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.queue
    }

    /// The DPDK port number.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The descriptor that becomes readable when a packet arrives while the interrupt is enabled.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] when the driver has none, or the port was opened without.
    pub fn interrupt(&self) -> Result<BorrowedFd<'_>, PortError> {
        let none = || PortError::Unsupported {
            port: self.handle.device.to_string(),
            operation: "wait for packets",
        };
        if !self.handle.device.has_interrupts() {
            return Err(none());
        }
        // SAFETY: the port is open while `handle` lives.
        let fd: RawFd = unsafe { ffi::rte_eth_dev_rx_intr_ctl_q_get_fd(self.port, self.queue) };
        if fd < 0 {
            return Err(none());
        }
        // SAFETY: the driver keeps the descriptor open as long as the port is. Only net_vhost does not: it has the descriptor
        // from its peer, and closes it when that goes, whoever waits for it then. Nothing here can tell.
        Ok(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Lets the next packet make the descriptor readable.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn enable_interrupt(&mut self) -> Result<(), PortError> {
        // SAFETY: the port is open while `handle` lives.
        let rc = unsafe { ffi::rte_eth_dev_rx_intr_enable(self.port, self.queue) };
        self.handle.result(rc, "enable the receive interrupt")
    }

    /// Back to polling.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn disable_interrupt(&mut self) -> Result<(), PortError> {
        // SAFETY: the port is open while `handle` lives.
        let rc = unsafe { ffi::rte_eth_dev_rx_intr_disable(self.port, self.queue) };
        self.handle.result(rc, "disable the receive interrupt")
    }
}

/// What a driver can send without reading or writing beyond a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Longest chain: segments.
    pub(super) segments: u16,
    /// Longest packet: bytes.
    pub(super) length: usize,
}

impl Limits {
    /// Of a driver that can send every packet.
    pub(super) const NONE: Self = Self { segments: u16::MAX, length: usize::MAX };

    /// The packets at the front, up to an empty slot or one that the driver cannot send: how many, and their bytes together.
    #[inline(always)]
    fn front(self, slots: &mut [Option<Buffer>]) -> (u16, u64) {
        // Most drivers have none: a loop of its own spares two comparisons a packet, and calls nothing.
        if self == Self::NONE { front(slots, |_| true) } else { front(slots, |b| self.allow(b)) }
    }

    /// Whether the driver can send the packet, which is made one segment first if it has to be.
    #[inline(always)]
    fn allow(self, buffer: &mut Buffer) -> bool {
        let fits = buffer.len() <= self.length && buffer.segment_count() <= self.segments;
        fits || self.allow_in_one_piece(buffer)
    }

    /// A driver without multi-segment support would read beyond the first segment.
    #[cold]
    fn allow_in_one_piece(self, buffer: &mut Buffer) -> bool {
        buffer.len() <= self.length && buffer.linearize()
    }
}

/// The packets at the front, up to an empty slot or one that is not allowed: how many, and their bytes together.
#[inline(always)]
fn front(slots: &mut [Option<Buffer>], mut allow: impl FnMut(&mut Buffer) -> bool) -> (u16, u64) {
    let (mut ready, mut bytes) = (0, 0);
    // By place, so that the loop counts once.
    while let Some(Some(buffer)) = slots.get_mut(ready) {
        if !allow(buffer) {
            break;
        }
        bytes += buffer.len() as u64;
        ready += 1;
    }
    (ready as u16, bytes)
}

/// What a driver took of a burst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Packets.
    pub packets: usize,
    /// Their length together.
    pub bytes: u64,
}

/// One transmit queue. It can move to another thread but not be shared.
#[derive(Debug)]
pub struct TxQueue {
    port: u16,
    queue: u16,
    limits: Limits,
    handle: Arc<Handle>,
    /// Where the driver needs to know of them.
    bursts: Option<Bursts>,
    one_thread: PhantomData<Cell<()>>,
}

impl TxQueue {
    pub(super) fn new(handle: &Arc<Handle>, queue: u16, limits: Limits) -> Self {
        let handle = Arc::clone(handle);
        let bursts = handle.bursts();
        Self { port: handle.id, queue, limits, handle, bursts, one_thread: PhantomData }
    }

    /// Hands the packets at the front of `slots`, up to the first empty slot, to the driver, which
    /// sends and frees them. Says what it took: those slots are empty now, the others still hold the
    /// caller's packets.
    ///
    /// Where the driver cannot send chained packets they are made one segment first; one that does
    /// not fit, or is longer than the driver can take, ends the burst: a caller whose packets are not
    /// taken for a long time should drop the first one.
    #[inline(always)]
    pub fn burst(&mut self, slots: &mut [Option<Buffer>]) -> Taken {
        let most = slots.len().min(usize::from(u16::MAX));
        let (ready, bytes) = self.limits.front(&mut slots[..most]);
        // SAFETY: `Option<Buffer>` is a nullable mbuf pointer, and the first `ready` slots hold mbufs that are ours to give.
        let packets = unsafe { self.give(slots, ready) };
        let left = slots.get(packets..usize::from(ready)).unwrap_or_default();
        let left: u64 = left.iter().flatten().map(|buffer| buffer.len() as u64).sum();
        Taken { packets, bytes: bytes - left }
    }

    /// Whether the driver can send packets that lie in lent memory; `mapped`: that memory was mapped for devices that
    /// reach it by themselves.
    #[must_use]
    pub fn sends_shared(&self, mapped: bool) -> bool {
        match self.handle.device.kind() {
            DeviceKind::Pci => mapped,
            // Its peer has maps of DPDK's memory.
            DeviceKind::VirtioUser => false,
            // They copy, AF_XDP what is of another pool.
            DeviceKind::AfPacket
            | DeviceKind::AfXdp
            | DeviceKind::Tap
            | DeviceKind::Memif
            | DeviceKind::VhostUser
            | DeviceKind::Pcap
            | DeviceKind::Null => true,
        }
    }

    /// As [`burst`](Self::burst), for packets that lie in memory that is not ours alone. A chained one ends the burst
    /// where the driver cannot send it. Only where [`sends_shared`](Self::sends_shared) says so.
    pub fn burst_shared(&mut self, slots: &mut [Option<SharedBuffer>]) -> Taken {
        let Limits { segments, length } = self.limits;
        let fits = |slot: &&Option<SharedBuffer>| {
            let fits = |buffer: &SharedBuffer| {
                buffer.len() <= length && buffer.segment_count() <= segments
            };
            slot.as_ref().is_some_and(fits)
        };
        let bytes = |slots: &[Option<SharedBuffer>]| -> u64 {
            slots.iter().flatten().map(|buffer| buffer.len() as u64).sum()
        };
        let ready = slots.iter().take(usize::from(u16::MAX)).take_while(fits).count();
        let offered = bytes(slots.get(..ready).unwrap_or_default());
        // SAFETY: `SharedBuffer` is a `Buffer`, with the same layout; else as above.
        let packets = unsafe { self.give(slots, ready as u16) };
        let left = bytes(slots.get(packets..ready).unwrap_or_default());
        Taken { packets, bytes: offered - left }
    }

    /// Gives packets to the driver.
    ///
    /// # Safety
    /// `Option<T>` is a nullable mbuf pointer; the first `ready` of `slots` are not null, and what they point to is the
    /// caller's.
    #[inline(always)]
    unsafe fn give<T>(&mut self, slots: &mut [Option<T>], ready: u16) -> usize {
        let (port, queue) = (self.port, self.queue);
        // SAFETY: the queue was set up and its port is open and started while `handle` lives; only
        // this thread has the queue; the rest is what the caller says.
        let mut give =
            || unsafe { ffi::millrace_tx_burst(port, queue, slots.as_mut_ptr().cast(), ready) };
        let sent = match &mut self.bursts {
            None => give(),
            Some(bursts) => bursts.run(give),
        };
        for slot in slots.iter_mut().take(usize::from(sent)) {
            // SAFETY: the driver owns the packet now, so the slot is overwritten without a drop.
            unsafe { std::ptr::write(slot, None) };
        }
        usize::from(sent)
    }

    /// The queue's number.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.queue
    }

    /// The DPDK port number.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The device string of the port.
    #[must_use]
    pub fn device(&self) -> String {
        self.handle.device.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::ptr::NonNull;

    use super::*;
    use crate::ffi::Mbuf;

    /// A packet without a pool, which is never freed. `segments`: those that it tells of.
    fn packet(length: u32, segments: u16) -> Option<Buffer> {
        // SAFETY: integers and pointers, for which zero is valid.
        let mut mbuf: Mbuf = unsafe { std::mem::zeroed() };
        (mbuf.pkt_len, mbuf.nb_segs) = (length, segments);
        // SAFETY: nobody else has it.
        Some(unsafe { Buffer::from_raw(NonNull::from(Box::leak(Box::new(mbuf)))) })
    }

    #[test]
    fn a_burst_ends_at_an_empty_slot_and_at_what_the_driver_cannot_send() {
        let front = |limits: Limits| {
            let all = [packet(60, 1), packet(1500, 1), packet(70, 2), packet(1501, 1), None];
            let mut slots = ManuallyDrop::new(all);
            limits.front(&mut slots[..])
        };
        assert_eq!(front(Limits::NONE), (4, 60 + 1500 + 70 + 1501));
        assert_eq!(front(Limits { length: 1500, ..Limits::NONE }), (3, 60 + 1500 + 70));
        // What does not fit in one segment is not made one.
        assert_eq!(front(Limits { segments: 1, ..Limits::NONE }), (2, 60 + 1500));
        assert_eq!(front(Limits { segments: 1, length: 1499 }), (1, 60));
    }
}
