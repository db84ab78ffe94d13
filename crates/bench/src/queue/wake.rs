//! Waking a process that sleeps: from the push of a packet to its consumer's look.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use client::Channel;
use rustix::event::{PollFd, PollFlags, poll};
use shm::Meta;

use super::memory::Ends;
use crate::failure::Failure;
use crate::machine;

/// Time between two packets: so long that the core of a sleeper is halted, and so short that it is not.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(3), Duration::from_micros(50)];

/// Longest sleep: one that is never woken ends all the same.
pub(super) const LONGEST: Duration = Duration::from_secs(5);

/// Sends packets with the time of their push in front, rarely, and rings for each.
pub(super) fn send(ends: &mut Ends, packets: u32, pause: Duration) -> Result<(), Failure> {
    for _ in 0..packets {
        thread::sleep(pause);
        let mut packet = [0; 60];
        if let Some(front) = packet.first_chunk_mut() {
            *front = dpdk::tsc().to_ne_bytes();
        }
        let pushed = ends.out.push(&packet, Meta::default());
        pushed.map_err(|_| Failure::OtherProcess("it takes no packet"))?;
        ends.bell.ring(ends.out.consumer_sleeps());
    }
    Ok(())
}

/// The client: sleeps for each packet. Returns TSC cycles from push to look, and how often it slept.
pub(super) fn sleep(
    channel: &mut Channel,
    packets: u32,
    longest: Duration,
) -> Result<(Vec<u64>, u32), Failure> {
    let longest = longest.try_into().map_err(|_| Failure::OtherProcess("it sleeps for ever"))?;
    let (mut cycles, mut sleeps, mut came) = (Vec::new(), 0, Vec::new());
    while cycles.len() < packets as usize {
        let slept = channel.arm();
        if slept {
            let mut polled = [PollFd::new(&*channel, PollFlags::IN)];
            if poll(&mut polled, Some(&longest)).map_err(std::io::Error::from)? == 0 {
                return Err(Failure::OtherProcess("it rings no more"));
            }
        }
        let before = cycles.len();
        while channel.receive(&mut came, 1)? > 0 {
            let now = dpdk::tsc();
            for packet in came.drain(..) {
                let mut stamp = [0; 8];
                channel.copy(&packet, &mut stamp);
                channel.release(packet);
                cycles.push(now.saturating_sub(u64::from_ne_bytes(stamp)));
            }
        }
        // One that was rung late, for what it has seen before, has slept for nothing.
        sleeps += u32::from(slept && cycles.len() > before);
    }
    Ok((cycles, sleeps))
}

/// What the kernel alone takes to wake a thread on the other core, without queue or doorbell: TSC cycles.
pub(super) fn bare(cores: [usize; 2], times: u32, pause: Duration) -> Result<Vec<u64>, Failure> {
    let [here, there] = cores;
    let stamp = Arc::new(AtomicU64::new(0));
    let theirs = Arc::clone(&stamp);
    let sleeper = thread::spawn(move || {
        machine::pin(there)?;
        let mut cycles = Vec::new();
        while cycles.len() < times as usize {
            thread::park_timeout(LONGEST);
            let now = dpdk::tsc();
            let then = theirs.swap(0, Ordering::AcqRel);
            if then != 0 {
                cycles.push(now.saturating_sub(then));
            }
        }
        Ok::<_, std::io::Error>(cycles)
    });
    machine::on(here, || {
        for _ in 0..times {
            thread::sleep(pause);
            // It may not have come round to the one before.
            while stamp.load(Ordering::Acquire) != 0 && !sleeper.is_finished() {
                thread::sleep(pause);
            }
            stamp.store(dpdk::tsc(), Ordering::Release);
            sleeper.thread().unpark();
        }
        Ok(())
    })?;
    Ok(sleeper.join().map_err(|_| Failure::Thread)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_thread_wakes_as_often_as_it_is_woken() {
        let core = machine::cores()[0];
        let pause = Duration::from_micros(10);
        let cycles = bare([core, core], 20, pause).unwrap();
        assert_eq!(cycles.len(), 20);
    }
}
