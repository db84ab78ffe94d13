//! What both processes do with packets: this one as a worker of the daemon, the other as a client.

use std::thread::yield_now;
use std::time::{Duration, Instant};

use client::{Channel, Packet};
use shm::{Consumer, Meta, Producer};

use super::memory::Ends;
use crate::failure::Failure;

/// The port of the packet that ends a turn.
const END: Meta = Meta { port: 255, flags: 0 };
/// How long a side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// Looks between two looks at the clock.
const LOOKS: u32 = 4096;

/// Waiting for the other side: without the kernel at first, and not for ever.
#[derive(Default)]
pub(super) struct Wait {
    looks: u32,
    since: Option<Instant>,
}

impl Wait {
    /// Something came.
    #[inline(always)]
    pub(super) fn over(&mut self) {
        self.looks = 0;
    }

    /// Nothing came.
    #[inline(always)]
    pub(super) fn go_on(&mut self) -> Result<(), Failure> {
        std::hint::spin_loop();
        self.looks += 1;
        if self.looks % LOOKS == 0 { self.look_at_the_clock() } else { Ok(()) }
    }

    #[cold]
    fn look_at_the_clock(&mut self) -> Result<(), Failure> {
        // Both may have to share a core.
        yield_now();
        let since = self.since.filter(|_| self.looks > LOOKS);
        let since = *self.since.insert(since.unwrap_or_else(Instant::now));
        let late = since.elapsed() > PATIENCE;
        if late { Err(Failure::OtherProcess("it does nothing any more")) } else { Ok(()) }
    }
}

/// Packets of one size in memory of the process's own.
pub(super) struct Packets {
    bytes: Vec<u8>,
    each: usize,
}

impl Packets {
    /// As many as a burst has, all different.
    pub(super) fn new(bytes: u16, burst: u16) -> Self {
        let each = usize::from(bytes).max(1);
        let all = (0..each * usize::from(burst)).map(|at| (at / each + at * 7) as u8);
        Self { bytes: all.collect(), each }
    }

    fn count(&self) -> usize {
        self.bytes.len() / self.each
    }

    /// Each of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.each)
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(self.each)
    }

    #[inline(always)]
    fn get(&self, number: usize) -> &[u8] {
        self.bytes.get(number * self.each..(number + 1) * self.each).unwrap_or_default()
    }
}

/// Takes samples of TSC cycles per packet.
pub(super) struct Meter {
    /// Cycles of a sample.
    length: u64,
    since: Option<u64>,
    packets: u32,
    total: u64,
    samples: Vec<f64>,
}

impl Meter {
    /// Packets between two looks at the counter, at least.
    const FEW: u32 = 64;

    pub(super) fn new(length: u64) -> Self {
        Self { length, since: None, packets: 0, total: 0, samples: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, packets: usize) {
        self.packets += packets as u32;
        if self.packets >= Self::FEW {
            self.look();
        }
    }

    fn look(&mut self) {
        let now = dpdk::tsc();
        let since = *self.since.get_or_insert(now);
        // Packets before the first look were not timed.
        if now == since {
            self.total += u64::from(std::mem::take(&mut self.packets));
            return;
        }
        let passed = now.wrapping_sub(since);
        if passed >= self.length {
            self.samples.push(passed as f64 / f64::from(self.packets));
            self.total += u64::from(std::mem::take(&mut self.packets));
            self.since = Some(now);
        }
    }

    /// All packets, and the samples. The first one is of cold caches and is left out.
    pub(super) fn finish(mut self) -> (u64, Vec<f64>) {
        self.samples.drain(..self.samples.len().min(1));
        (self.total + u64::from(self.packets), self.samples)
    }

    pub(super) fn samples(&self) -> usize {
        self.samples.len()
    }
}

/// Pushes bursts until the counter says `until`. Returns packets pushed.
pub(super) fn fill(out: &mut Producer, packets: &Packets, until: u64) -> Result<u64, Failure> {
    let (mut wait, mut count) = (Wait::default(), 0);
    while dpdk::tsc() < until {
        push_burst(out, packets, packets.count(), &mut wait)?;
        count += packets.count() as u64;
    }
    Ok(count)
}

/// Tells the other side that the turn is over.
pub(super) fn end(out: &mut Producer) -> Result<(), Failure> {
    push(out, &[0; 60], END, &mut Wait::default())
}

#[inline(always)]
fn push(out: &mut Producer, packet: &[u8], meta: Meta, wait: &mut Wait) -> Result<(), Failure> {
    while out.push(packet, meta).is_err() {
        wait.go_on()?;
    }
    wait.over();
    Ok(())
}

#[inline(always)]
fn push_burst(
    out: &mut Producer,
    packets: &Packets,
    count: usize,
    wait: &mut Wait,
) -> Result<(), Failure> {
    let mut sent = 0;
    if count == 1 {
        return push(out, packets.get(0), Meta::default(), wait);
    }
    loop {
        sent +=
            out.push_burst(count - sent, |number| (packets.get(sent + number), Meta::default()));
        if sent == count {
            wait.over();
            return Ok(());
        }
        wait.go_on()?;
    }
}

/// Whether the packet ends the turn. It is the last that comes.
#[inline(always)]
pub(super) fn is_end(packet: &Packet) -> bool {
    packet.port() == END.port
}

/// The client: takes bursts until the other side ends the turn, and copies each packet to memory of its own.
pub(super) fn drain(
    channel: &mut Channel,
    into: &mut Packets,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let (mut wait, mut packets) = (Wait::default(), Vec::new());
    loop {
        if channel.receive(&mut packets, into.count())? == 0 {
            wait.go_on()?;
            continue;
        }
        wait.over();
        let ends = packets.last().is_some_and(is_end);
        let count = packets.len() - usize::from(ends);
        for (packet, target) in packets.iter().take(count).zip(into.each_mut()) {
            channel.copy(packet, target);
        }
        channel.release_burst(&mut packets);
        meter.add(count);
        if ends {
            return Ok(());
        }
    }
}

/// The client: sends back what comes, a burst at most at once, until the other side ends the turn.
pub(super) fn reflect(channel: &mut Channel, burst: u16) -> Result<(), Failure> {
    let (mut wait, mut packets) = (Wait::default(), Vec::new());
    loop {
        if channel.receive(&mut packets, burst.into())? == 0 {
            wait.go_on()?;
            continue;
        }
        wait.over();
        let ends = packets.last().is_some_and(is_end);
        let end = if ends { packets.pop() } else { None };
        while !packets.is_empty() {
            channel.send_burst(&mut packets)?;
            if !packets.is_empty() {
                wait.go_on()?;
            }
        }
        if let Some(end) = end {
            channel.release(end);
            return Ok(());
        }
    }
}

/// This side, which the client's memory is nothing to: copies out what comes, a burst at most, and sends it anew. Returns
/// packets.
#[inline(always)]
pub(super) fn carry(
    ends: &mut Ends,
    scratch: &mut Packets,
    wait: &mut Wait,
) -> Result<usize, Failure> {
    let mut count = 0;
    for target in scratch.each_mut() {
        let Some(taken) = ends.back.next() else { break };
        ends.back.copy(&taken, target);
        ends.back.release(taken);
        count += 1;
    }
    if count == 0 {
        wait.go_on()?;
    } else {
        push_burst(&mut ends.out, scratch, count, wait)?;
    }
    Ok(count)
}

/// Takes so many packets and throws them away.
pub(super) fn collect(back: &mut Consumer, packets: usize) -> Result<(), Failure> {
    let (mut wait, mut count) = (Wait::default(), 0);
    while count < packets {
        if let Some(taken) = back.next() {
            back.release(taken);
            count += 1;
        } else {
            wait.go_on()?;
        }
    }
    Ok(())
}

/// Sends one burst.
pub(super) fn burst(out: &mut Producer, packets: &Packets) -> Result<(), Failure> {
    let mut wait = Wait::default();
    push_burst(out, packets, packets.count(), &mut wait)
}
