//! Waking a process that sleeps: from the push of a packet to its consumer's look.

use std::time::Duration;

use shm::Meta;

use super::memory::Ends;
use crate::failure::Failure;

/// Time between two packets: so long that the other side sleeps deeply.
const PAUSE: Duration = Duration::from_millis(3);

/// Sends packets with the time of their push in front, rarely, and rings for each.
pub(super) fn send(ends: &mut Ends, packets: u32) -> Result<(), Failure> {
    for _ in 0..packets {
        std::thread::sleep(PAUSE);
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

/// Sleeps for each packet. Returns TSC cycles from push to look, and how often it slept.
pub(super) fn sleep(
    ends: &mut Ends,
    packets: u32,
    longest: Duration,
) -> Result<(Vec<u64>, u32), Failure> {
    let (mut cycles, mut sleeps) = (Vec::new(), 0);
    while cycles.len() < packets as usize {
        ends.back.sleeps().announce();
        let slept = !ends.back.has_next();
        if slept {
            ends.bell.wait(&[], longest);
        }
        ends.back.sleeps().withdraw();
        let mut stamp = [0; 8];
        let mut came = false;
        while let Some(taken) = ends.back.next() {
            let now = dpdk::tsc();
            ends.back.copy(&taken, &mut stamp);
            ends.back.release(taken);
            cycles.push(now.saturating_sub(u64::from_ne_bytes(stamp)));
            came = true;
        }
        sleeps += u32::from(slept && came);
        if slept && !came {
            return Err(Failure::OtherProcess("it rings no more"));
        }
    }
    Ok((cycles, sleeps))
}
