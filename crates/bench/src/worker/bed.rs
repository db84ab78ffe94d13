//! Ports, buffers and cores of a worker that forwards in memory.

use dpdk::{BufferPool, Eal, EalOptions, Memory, Port, RxQueue, TxQueue};

use super::router::{Router, Running};
use crate::command_line::Run;
use crate::failure::Failure;
use crate::load::Prefixes;
use crate::machine::{self, Environment};
use crate::terminal::say;
use crate::{interrupt, port};

/// DPDK's memory: MB. Half of what dpdk-testpmd and the bench can have of 64 hugepages of 2 MB.
const MEGABYTES: u32 = 64;
/// Buffers, as many as dpdk-testpmd gets, and those in a worker's cache, as in the daemon.
pub(crate) const BUFFERS: u32 = 8192;
const CACHE: u32 = 256;
/// Ports that packets leave by.
pub(crate) const EGRESS: usize = 2;

/// The ports' queues that are not in use at the moment.
pub(crate) struct Bed {
    pub(crate) pool: BufferPool,
    pub(crate) hugepages: bool,
    /// Cores of the thread that watches and of the one that works.
    pub(crate) cores: [usize; 2],
    pub(crate) egress: Vec<TxQueue>,
    egress_ports: Vec<u16>,
    /// Open ports: DPDK would give a closed port's number, and the source with it, to the next one.
    ports: Vec<Port>,
}

/// A port with a packet source.
pub(crate) struct Source {
    pub(crate) rx: RxQueue,
    pub(crate) tx: TxQueue,
}

/// Begins a run: reads its prefixes, makes its bed, and says what is measured on.
pub(crate) fn begin(run: &Run) -> Result<(Prefixes, Bed, Environment), Failure> {
    interrupt::keep_results();
    let prefixes = Prefixes::load(run.prefixes.as_deref())?;
    let bed = Bed::new(run.memory())?;
    let eal = Eal::get().ok_or(dpdk::EalError::NotRunning)?;
    let environment = Environment::of(eal, &prefixes.origin);
    say!("{}", environment.lines());
    Ok((prefixes, bed, environment))
}

impl Bed {
    fn new(memory: Memory) -> Result<Self, Failure> {
        let options = EalOptions { megabytes: MEGABYTES, memory, ..EalOptions::default() };
        Self::with(&options, machine::outermost())
    }

    /// The same with other options for DPDK, and other cores.
    pub(crate) fn with(options: &EalOptions, cores: [usize; 2]) -> Result<Self, Failure> {
        let hugepages = Eal::init(options)?.hugepages();
        let pool = BufferPool::new("bench", BUFFERS, 2048, CACHE, None)?;
        let mut bed = Self {
            pool,
            hugepages,
            cores,
            egress: Vec::new(),
            egress_ports: Vec::new(),
            ports: Vec::new(),
        };
        for _ in 0..EGRESS {
            let Source { tx, .. } = bed.open()?;
            bed.egress_ports.push(tx.port());
            bed.egress.push(tx);
        }
        Ok(bed)
    }

    pub(crate) fn open(&mut self) -> Result<Source, Failure> {
        let (port, rx, tx) = port::open(&"null,no-rx=1".parse()?, self.pool, None)?;
        self.ports.push(port);
        Ok(Source { rx, tx })
    }

    /// The ports that packets leave by.
    pub(crate) fn egress_ports(&self) -> &[u16] {
        &self.egress_ports
    }

    /// Starts the worker on its core, with the queues of these ports.
    pub(crate) fn start(&mut self, router: &Router, burst: u16) -> Result<Running, Failure> {
        let egress = std::mem::take(&mut self.egress);
        router.start(self.pool, self.cores[1], burst, egress)
    }
}
