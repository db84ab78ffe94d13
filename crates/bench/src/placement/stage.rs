//! The process of a turn: DPDK starts once in each, with its memory as it is then. It says what came of the turn, or what went
//! wrong, in a line of JSON.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dpdk::{Buffer, BufferPool, EalOptions, Memory};
use serde::{Deserialize, Serialize};

use super::args::Stage;
use super::pipeline::Pipeline;
use crate::failure::Failure;
use crate::load::{Frames, Packets, Prefixes};
use crate::machine;
use crate::results::Samples;
use crate::terminal::say;
use crate::turns::Sampling;
use crate::worker::{Bed, Router, mac};

/// Flows: the usual case of `millrace-bench forward`.
const FLOWS: usize = 10_000;
/// Length of a sample, and what passes before the first one.
const SAMPLE: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_millis(40);
/// Longest time without a packet in a sample: nothing is forwarded any more.
const LONGEST: Duration = Duration::from_secs(4);
/// Buffers that are looked at to see how far apart they lie.
const LOOKED_AT: usize = 64;

/// What a turn has given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// Packets/s that left, the median of the samples.
    pub(super) rate: f64,
    /// Of those that arrived, the share that found no place in a ring to the next thread: 0 to 1.
    pub(super) lost: f64,
    /// Bytes from one buffer to the next.
    pub(super) apart: Option<usize>,
}

/// Takes a turn, and says what came of it.
pub(crate) fn run(args: &Stage) -> Result<(), Failure> {
    let taken = take(args).map_err(|failure| failure.to_string());
    say!("{}", serde_json::to_string(&taken)?);
    Ok(())
}

fn take(args: &Stage) -> Result<Taken, Failure> {
    let cores = [args.receive, args.worker, args.transmit];
    let options = EalOptions {
        megabytes: args.megabytes,
        memory: if args.huge.is_some() { Memory::Huge } else { Memory::Plain },
        preallocate: true,
        channels: args.channels,
        ..EalOptions::default()
    };
    // DPDK's memory, and ours, comes from the node of the thread that asks for it.
    let (pipeline, apart, _bed, _router) = machine::on(args.receive, || {
        let mut bed = Bed::with(&options, [args.receive, args.worker])?;
        if let Some(size) = args.huge {
            let smaps = std::fs::read_to_string("/proc/self/smaps")?;
            are_in(size, &hugepages(&smaps))?;
        }
        let apart = apart(&bed.pool);
        let routes = Prefixes::load(Some(&args.prefixes))?.v4;
        let mut source = bed.open()?;
        // Frames in memory lack the check sequence, and are no shorter than the source's templates.
        let size = args.frame.saturating_sub(measure::frame::CHECK_SEQUENCE).max(64);
        let packets = Packets::new(&routes, FLOWS, Frames::Fixed(size), mac(source.rx.port()))?;
        let (templates, lengths) = (packets.templates, packets.lengths);
        dpdk::yardstick::attach_source(&mut source.rx, &bed.pool, templates, lengths)?;
        let router = Router::new(&routes, bed.egress_ports())?;
        let pipeline = Pipeline::start(&mut bed, &router, source, cores)?;
        Ok((pipeline, apart, bed, router))
    })?;
    let sampling = Sampling { warm_up: WARM_UP, sample: SAMPLE, samples: args.samples };
    let rates = watch(sampling, &pipeline)?;
    let (lost, forwarded) = (pipeline.lost() as f64, pipeline.forwarded() as f64);
    pipeline.stop()?;
    if forwarded == 0.0 {
        return Err(Failure::Idle("the pipeline"));
    }
    Ok(Taken { rate: rates.median(), lost: lost / (lost + forwarded), apart })
}

/// Packets/s that leave.
fn watch(sampling: Sampling, pipeline: &Pipeline) -> Result<Samples, Failure> {
    let (mut then, mut before) = (Instant::now(), pipeline.forwarded());
    sampling.take(|| {
        // Somebody else may have had the cores.
        let since = Instant::now();
        while pipeline.forwarded() == before && since.elapsed() < LONGEST {
            std::thread::sleep(SAMPLE);
        }
        let (now, after) = (Instant::now(), pipeline.forwarded());
        let rate = (after - before) as f64 / (now - then).as_secs_f64();
        (then, before) = (now, after);
        Ok(rate)
    })
}

/// Bytes from one buffer of a fresh pool to the next.
fn apart(pool: &BufferPool) -> Option<usize> {
    let mut slots: [Option<Buffer>; LOOKED_AT] = [const { None }; LOOKED_AT];
    pool.alloc_bulk(&mut slots);
    let mut places: Vec<usize> =
        slots.iter().flatten().map(|buffer| buffer.data().as_ptr().addr()).collect();
    dpdk::free_bulk(&mut slots);
    places.sort_unstable();
    places.iter().zip(places.iter().skip(1)).map(|(one, next)| next - one).min()
}

/// Hugepages that a process uses, by their size: kB. `smaps`: `/proc/PID/smaps`.
fn hugepages(smaps: &str) -> BTreeMap<u64, u64> {
    let (mut pages, mut size) = (BTreeMap::new(), 0);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let Some(Ok(value)) = words.next().map(str::parse::<u64>) else { continue };
        match name {
            "KernelPageSize:" => size = value,
            "Shared_Hugetlb:" | "Private_Hugetlb:" if value > 0 => {
                *pages.entry(size).or_default() += value;
            }
            _ => {}
        }
    }
    pages
}

/// DPDK takes the largest hugepages first that fit, whatever one would like: says when these are others.
fn are_in(size: u64, used: &BTreeMap<u64, u64>) -> Result<(), Failure> {
    if used.keys().eq([&size]) {
        return Ok(());
    }
    let used = used.iter().map(|(size, all)| format!("{} MB in pages of {size} kB", all >> 10));
    let used: Vec<_> = used.collect();
    Err(Failure::Placement(format!(
        "DPDK has chosen its hugepages itself ({}): free those of other sizes",
        if used.is_empty() { "none".to_owned() } else { used.join(", ") }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f00-7f40 rw-s 00000000 00:10 5 /memfd:rtemap (deleted)
Size:               4096 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:    4096 kB
7f50-7f51 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
7f60-7f80 rw-s 00000000 00:10 6 /memfd:rtemap (deleted)
KernelPageSize:     2048 kB
Shared_Hugetlb:     2048 kB
Private_Hugetlb:       0 kB
VmFlags: rd wr sh
";

    #[test]
    fn hugepages_are_those_that_are_used() {
        let used = hugepages(SMAPS);
        assert_eq!(used, BTreeMap::from([(2048, 6144)]));
        assert!(are_in(2048, &used).is_ok());
        let other = are_in(1 << 20, &used).unwrap_err().to_string();
        assert!(other.contains("6 MB in pages of 2048 kB"), "{other}");
        let both = BTreeMap::from([(2048, 2048), (1 << 20, 1 << 20)]);
        assert!(are_in(2048, &both).is_err());
        assert!(are_in(2048, &hugepages("")).unwrap_err().to_string().contains("none"));
        assert!(hugepages("x\nKernelPageSize: many kB\n: :\n").is_empty());
    }
}
