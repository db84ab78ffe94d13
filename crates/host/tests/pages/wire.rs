//! A wire that allocates nothing while packets are written to it.

use millrace_host::Sessions;
use transport::{Buffers, Departure, Packet, Sink, Stack};

use crate::allocator::watch;

/// Packets of one direction, up to a limit.
pub(crate) struct Wire {
    packets: Vec<Vec<u8>>,
    used: usize,
}

impl Wire {
    pub(crate) fn new(packets: usize, bytes: usize) -> Self {
        Self { packets: vec![vec![0; bytes]; packets], used: 0 }
    }

    /// Gives all packets that are not lost to a host, 64 at a time. Gives whether there were any.
    pub(crate) fn carry(
        &mut self,
        loses: impl Fn(usize) -> bool,
        mut to: impl FnMut(&[Packet<'_>]),
    ) -> bool {
        let all = self.packets.iter().take(self.used).enumerate();
        let left: Vec<_> = all.filter(|(at, _)| !loses(*at)).map(|(_, packet)| packet).collect();
        for batch in left.chunks(64) {
            let packets = batch.iter().map(|packet| Packet::new(&packet[..length(packet)]));
            let batch: Vec<_> = packets.collect();
            watch(|| to(&batch));
        }
        std::mem::take(&mut self.used) > 0
    }
}

/// Bytes of an IPv4 packet.
fn length(packet: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([packet[2], packet[3]]))
}

impl Sink for Wire {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.packets.get_mut(self.used)?.get_mut(..length)
    }

    fn send(&mut self, _: Departure) {
        self.used += 1;
    }
}

/// Whoever takes packets and time.
pub(crate) trait Host {
    fn take(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut Wire);
    fn turn(&mut self, now: u64, sink: &mut Wire);
}

impl Host for Sessions {
    fn take(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut Wire) {
        self.input(now, packets, sink);
    }

    fn turn(&mut self, now: u64, sink: &mut Wire) {
        Sessions::turn(self, now, sink);
    }
}

impl<B: Buffers> Host for Stack<B> {
    fn take(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut Wire) {
        self.input(now, packets, sink);
        while self.poll_event().is_some() {}
    }

    fn turn(&mut self, now: u64, sink: &mut Wire) {
        self.expire(now, sink);
        self.flush(now, sink);
        while self.poll_event().is_some() {}
    }
}

/// Two hosts and what is between them.
pub(crate) struct Link<H> {
    pub(crate) now: u64,
    pub(crate) hosts: [H; 2],
    /// What each host sends, and what is on its way.
    sent: [Wire; 2],
    flying: [Wire; 2],
    /// Every second packet of the first host is lost.
    pub(crate) loses: bool,
}

impl<H: Host> Link<H> {
    pub(crate) fn new(hosts: [H; 2], packets: usize, bytes: usize) -> Self {
        let wires = || [(); 2].map(|()| Wire::new(packets, bytes));
        Self { now: 1_000_000_000, hosts, sent: wires(), flying: wires(), loses: false }
    }

    /// A turn of both hosts; what they have sent comes a millisecond later. Gives whether anything moved.
    pub(crate) fn step(&mut self) -> bool {
        let Self { now, hosts: [one, other], sent, flying, loses } = self;
        watch(|| one.turn(*now, &mut sent[0]));
        watch(|| other.turn(*now, &mut sent[1]));
        *now += 1_000_000;
        std::mem::swap(sent, flying);
        let [to_other, to_one] = sent;
        let lost = |at: usize| *loses && at % 2 == 0;
        let forth = flying[0].carry(lost, |packets| other.take(*now, packets, to_one));
        let back = flying[1].carry(|_| false, |packets| one.take(*now, packets, to_other));
        forth || back
    }

    /// Steps until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        while self.step() {}
    }
}
