//! `millrace-bench forward`: the whole forwarder on one core.

pub(crate) mod cases;
mod io;
mod measure;
mod packets;
mod router;
mod show;

use dpdk::{
    BufferPool, Device, Eal, EalOptions, Memory, Opened, Port, PortConfig, RxQueue, TxQueue,
};
use indicatif::ProgressBar;
use tables::Prefix;

use crate::args;
use crate::environment::{self, Environment};
use crate::failure::Failure;
use crate::prefixes::{Prefixes, sample};
use crate::progress;
use crate::report::Report;
use crate::testpmd::{self, Testpmd};
use cases::{Case, Family, Routes};
use measure::{Contest, Turns};
use packets::{Destination, Packets};
use router::{PORTS, Router, mac};

/// DPDK's memory: MB. Half of what dpdk-testpmd and the bench can have of 64 hugepages of 2 MB.
const MEGABYTES: u32 = 64;
/// Buffers, as many as dpdk-testpmd gets, and those in a worker's cache, as in the daemon.
const BUFFERS: u32 = 8192;
const CACHE: u32 = 256;
/// Ports that packets leave by.
const EGRESS: usize = 2;

/// The ports' queues that are not in use at the moment.
struct Bench {
    pool: BufferPool,
    hugepages: bool,
    /// Cores of the thread that watches and of the one that works.
    cores: [usize; 2],
    egress: Vec<TxQueue>,
    egress_ports: Vec<u16>,
    /// Open ports: DPDK would give a closed port's number, and the source with it, to the next one.
    ports: Vec<Port>,
}

/// A port with a packet source.
struct Source {
    rx: RxQueue,
    tx: TxQueue,
}

/// Measures all cases.
pub(crate) fn run(args: &args::Forward) -> Result<(), Failure> {
    let cases = cases::of(args);
    let most = PORTS - EGRESS;
    if cases.len() > most {
        return Err(Failure::TooManyCases { count: cases.len(), most });
    }
    let prefixes = Prefixes::load(args.common.prefixes.as_deref())?;
    let mut bench = Bench::new(args.common.memory())?;
    let eal = Eal::get().ok_or(dpdk::EalError::NotRunning)?;
    let environment = Environment::of(eal, &prefixes.origin);
    println!("{}", environment.line());
    let turns = Turns::of(args);
    let bar = progress::bar(cases.len() * turns.rounds as usize);
    let mut contests = Vec::new();
    for case in cases {
        contests.push(match case.family {
            Family::V4 => bench.measure(case, &prefixes.v4, &turns, args, &bar)?,
            Family::V6 => bench.measure(case, &prefixes.v6, &turns, args, &bar)?,
        });
    }
    bar.finish_and_clear();
    show::print(&contests, args.profile);
    let report =
        Report { environment, results: contests.iter().flat_map(Contest::outcomes).collect() };
    args.common.json.as_ref().map_or(Ok(()), |path| report.write(path))
}

impl Bench {
    fn new(memory: Memory) -> Result<Self, Failure> {
        let cores = environment::cores();
        let main = cores.first().copied().unwrap_or(0);
        let work = cores.last().copied().unwrap_or(main);
        let options = EalOptions { megabytes: MEGABYTES, memory, ..EalOptions::default() };
        let hugepages = Eal::init(&options)?.hugepages();
        let pool = BufferPool::new("bench", BUFFERS, 2048, CACHE, None)?;
        let mut bench = Self {
            pool,
            hugepages,
            cores: [main, work],
            egress: Vec::new(),
            egress_ports: Vec::new(),
            ports: Vec::new(),
        };
        for _ in 0..EGRESS {
            let Source { tx, .. } = bench.open()?;
            bench.egress_ports.push(tx.port());
            bench.egress.push(tx);
        }
        Ok(bench)
    }

    fn open(&mut self) -> Result<Source, Failure> {
        let device: Device = "null,no-rx=1".parse()?;
        let Opened { port, mut rx, mut tx, .. } = Port::open(&device, &PortConfig::new(self.pool))?;
        self.ports.push(port);
        let (Some(rx), Some(tx)) = (rx.pop(), tx.pop()) else { return Err(Failure::NoQueue) };
        Ok(Source { rx, tx })
    }

    /// One case: our worker, our binding alone, and dpdk-testpmd take turns.
    fn measure<A: Destination>(
        &mut self,
        case: Case,
        full: &[Prefix<A>],
        turns: &Turns,
        args: &args::Forward,
        bar: &ProgressBar,
    ) -> Result<Contest, Failure> {
        if full.is_empty() {
            let family = if case.family == Family::V4 { "IPv4" } else { "IPv6" };
            return Err(Failure::NoPrefixes(family));
        }
        bar.set_message(format!("{case}: tables"));
        let routes = match case.routes {
            Routes::Some(count) => sample(full, count, 2),
            Routes::Full => full.to_vec(),
        };
        let Source { mut rx, tx } = self.open()?;
        let router = Router::new(&routes, &self.egress_ports)?;
        let packets = Packets::new(&routes, case.flows, case.frames, mac(rx.port()))?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("templates");
        dpdk::yardstick::write_templates(&file, &packets.templates, &packets.lengths)?;
        dpdk::yardstick::attach_source(&mut rx, &self.pool, packets.templates, packets.lengths)?;
        let mut testpmd = None;
        if !args.no_yardstick {
            let mut started = Testpmd::spawn(&testpmd::Setup {
                name: "forward",
                device: "net_null0,no-rx=1",
                templates: Some(&file),
                cores: self.cores,
                hugepages: self.hugepages,
                burst: args.testpmd_burst,
                buffers: BUFFERS,
                buffer_size: 2048 + dpdk::HEADROOM as u32,
            })?;
            started.warm_up()?;
            testpmd = Some(started);
        }
        let egress = std::mem::take(&mut self.egress);
        let worker = router.start(self.pool, self.cores[1], args.vector, egress)?;
        bar.set_message(case.to_string());
        let source = Source { rx, tx };
        let mut contest = Contest::new(case, routes.len());
        contest.run(turns, self.cores[1], &worker, source, testpmd.as_mut(), bar)?;
        contest.profile = worker.profile();
        self.egress = worker.stop()?;
        Ok(contest)
    }
}
