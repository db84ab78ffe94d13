//! Packets/s between two pinned threads.

use super::words::Packet;
use super::{CHECK, Empty, Fill, LAYOUTS, Layout, SLOTS, descriptors, marks, queue};
use crate::dma::Broken;
use crate::failure::Failure;
use crate::results::Samples;
use crate::turns::{Calm, Rounds};
use crate::{interrupt, machine};

/// Packets that do not count yet: four laps.
const WARM: u32 = 4 * SLOTS as u32;
/// Looks after which a thread lets others have the core.
const PATIENCE: u32 = 10_000;

/// What one size takes.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Bytes, check sequence included.
    pub(crate) size: u64,
    /// TSC cycles for a packet in each round, by layout.
    pub(crate) layouts: Vec<(Layout, Samples)>,
}

/// Measures every layout for each size, taking turns. Gives also the TSC cycles that a line took from core
/// to core and back, before and after each round.
pub(crate) fn measure(
    cores: [usize; 2],
    sizes: &[u64],
    rounds: u32,
    count: u32,
    done: impl Fn(),
) -> Result<(Vec<Measured>, Samples), Failure> {
    let (mut all, mut probes) = (Vec::new(), Samples::default());
    for size in sizes {
        let mut turns = Rounds::new(&LAYOUTS);
        let mut calm = Calm::new(rounds);
        while calm.goes_on() {
            probes.0.push(machine::round_trip(cores)?);
            // Another one is first in each round.
            turns.round(calm.taken(), |layout| turn(layout, cores, *size, count))?;
            probes.0.push(machine::round_trip(cores)?);
            calm.over();
            done();
        }
        turns.keep(&calm);
        let layouts = LAYOUTS.map(|layout| (layout, turns.samples(layout, |cycles| *cycles)));
        all.push(Measured { size: *size, layouts: layouts.into() });
        if interrupt::came() {
            break;
        }
    }
    Ok((all, probes))
}

/// TSC cycles for a packet.
fn turn(layout: Layout, cores: [usize; 2], size: u64, count: u32) -> Result<f64, Failure> {
    let length = usize::try_from(size.saturating_sub(CHECK)).unwrap_or(0);
    match layout {
        Layout::Descriptors { batch } => run(descriptors::ring(batch), cores, length, count),
        Layout::Marks => run(marks::ring(), cores, length, count),
        Layout::Queue => run(queue::ring()?, cores, length, count),
    }
}

/// Tries until something comes of it.
#[inline(always)]
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut looks = 0_u32;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        std::hint::spin_loop();
        looks = looks.wrapping_add(1);
        if looks % PATIENCE == 0 {
            std::thread::yield_now();
        }
    }
}

fn run(
    (mut filler, mut emptier): (impl Fill, impl Empty),
    [here, there]: [usize; 2],
    length: usize,
    count: u32,
) -> Result<f64, Failure> {
    std::thread::scope(|scope| {
        let filling = scope.spawn(move || {
            let pinned = machine::pin(here);
            let mut packet = Packet::new(length);
            for number in 0..WARM + count {
                if let Some(first) = packet.words.first_mut() {
                    *first = number;
                }
                until(|| filler.push(&packet).then_some(()));
            }
            filler.flush();
            pinned
        });
        let emptying = scope.spawn(move || {
            let pinned = machine::pin(there);
            let mut packet = Packet::new(0);
            let (mut begin, mut wrong) = (0, None);
            for number in 0..WARM + count {
                if number == WARM {
                    begin = dpdk::tsc();
                }
                let first = until(|| emptier.take(&mut packet));
                if first != number || packet.length != length {
                    wrong = wrong.or(Some(Broken::Packet(u64::from(number))));
                }
            }
            let cycles = dpdk::tsc().wrapping_sub(begin);
            pinned.map(|()| wrong.map_or(Ok(cycles), Err))
        });
        filling.join().map_err(|_| Failure::Thread)??;
        let cycles = emptying.join().map_err(|_| Failure::Thread)???;
        Ok(cycles as f64 / f64::from(count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_arrives_in_every_layout() {
        // The last packets are no full batch.
        let (measured, probes) =
            measure(machine::outermost(), &[64, 1518], 2, 5003, || ()).unwrap();
        // A machine that others use makes it take more rounds.
        assert!(measured.len() == 2 && (8..=16).contains(&probes.0.len()));
        for (_, cycles) in measured.iter().flat_map(|measured| &measured.layouts) {
            assert!((1..=4).contains(&cycles.0.len()));
            assert!(cycles.min() > 0.0);
        }
    }
}
