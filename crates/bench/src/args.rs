//! The command line.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand};

use crate::dma::pcie::Generation;
use crate::dma::{LONGEST, MOST_AT_ONCE, SHORTEST, power};
use crate::forward::cases::{Family, Frames, Routes};

/// Measures Millrace beside DPDK's own programs and tables, in one run.
#[derive(Debug, Parser)]
#[command(name = "millrace-bench", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Packets/s and cycles/packet of the whole forwarder on one core, beside dpdk-testpmd.
    Forward(Forward),
    /// Cycles/packet of the whole forwarder while a client process reads, does not read, writes garbage,
    /// floods: what everybody else pays for it.
    Clients(Clients),
    /// Look-ups, changes and memory of the tables, beside rte_fib, rte_lpm and rte_hash.
    Tables(Tables),
    /// Cycles per TCP segment, request and connection in memory, and memory per connection, beside
    /// smoltcp and lwIP.
    Transport(Transport),
    /// Bytes that a packet costs between a device and its driver, over PCIe as a model and as a soft
    /// device, and cycles that it takes between two cores: descriptors written back, beside packets that
    /// describe themselves.
    Dma(Dma),
    /// Packets/s and latency of packet queues between two processes, and how fast a sleeper wakes, beside
    /// dpdk-testpmd over memif and over vhost-user.
    Queue(Queue),
    /// What it costs to find sessions, to pass control messages and to wait, beside what Millrace replaces: locks and
    /// polling.
    Session(Session),
    /// NGINX, iperf3 and redis on Millrace, beside the same programs on the kernel: requests/s, latency, CPU time and
    /// memory. Needs root.
    Serve(Serve),
    /// The process of `serve` that holds connections.
    #[command(hide = true)]
    ServeHold {
        /// Where the server listens.
        address: std::net::SocketAddr,
    },
    /// The other process of `queue`: orders come by standard input.
    #[command(hide = true)]
    QueuePeer {
        /// The core that it keeps to.
        core: usize,
        /// The socket where it attaches.
        attach: PathBuf,
    },
}

impl Common {
    /// Which memory DPDK gets.
    pub(crate) fn memory(&self) -> dpdk::Memory {
        if self.no_huge { dpdk::Memory::Plain } else { dpdk::Memory::Auto }
    }
}

/// What both have in common.
#[derive(Debug, Group)]
pub(crate) struct Common {
    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Prefixes of a full table, one per line, perhaps compressed (.gz).
    #[arg(long, value_name = "FILE")]
    pub(crate) prefixes: Option<PathBuf>,
    /// Rounds, in which the contestants take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Do without hugepages, also where there are some.
    #[arg(long)]
    pub(crate) no_huge: bool,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Forward {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Flows: numbers such as 1, 10k, 1M. With this, --routes, --frames or --family, every
    /// combination is measured; without them a choice of six.
    #[arg(long, value_delimiter = ',', value_parser = crate::forward::cases::number)]
    pub(crate) flows: Vec<usize>,
    /// Routes: numbers, or `full`.
    #[arg(long, value_delimiter = ',')]
    pub(crate) routes: Vec<Routes>,
    /// Frame sizes: bytes from 64 to 1500, or `mix`.
    #[arg(long, value_delimiter = ',')]
    pub(crate) frames: Vec<Frames>,
    /// 4 or 6.
    #[arg(long, value_delimiter = ',')]
    pub(crate) family: Vec<Family>,
    /// Length of each contestant's turn: seconds.
    #[arg(long, default_value_t = 0.4)]
    pub(crate) seconds: f64,
    /// Packets that a receive queue is asked for at once: 1 to 256.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) vector: u16,
    /// The same for dpdk-testpmd; its own default is 32.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) testpmd_burst: u16,
    /// Print each node's cycles.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Leave dpdk-testpmd out.
    #[arg(long)]
    pub(crate) no_yardstick: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Clients {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Channels that the client has: 1 to 64.
    #[arg(long, value_delimiter = ',', default_value = "1,64", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) channels: Vec<u16>,
    /// Samples of each turn, 20 ms each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) samples: u32,
}

#[derive(Debug, Group)]
pub(crate) struct Tables {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Entries of the flow tables: a number such as 4M.
    #[arg(long, value_parser = crate::forward::cases::number)]
    pub(crate) entries: Option<usize>,
    /// 2 x 16,777,216 entries: takes some 4 GB of memory.
    #[arg(long, conflicts_with = "entries")]
    pub(crate) full: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Transport {
    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Rounds, in which the contestants take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Connections at once: numbers such as 1, 10k, 1M.
    #[arg(long, value_delimiter = ',', default_value = "1,10k,1M", value_parser = crate::forward::cases::number)]
    pub(crate) connections: Vec<usize>,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leave smoltcp and lwIP out.
    #[arg(long)]
    pub(crate) no_yardstick: bool,
    /// Simulate flows that share a path, and write plots of their rates into this folder (SVG); nothing
    /// else is measured then.
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub(crate) struct Dma {
    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// PCIe generations.
    #[arg(long, value_delimiter = ',', default_value = "2,3,4,5")]
    pub(crate) generations: Vec<Generation>,
    /// Widths of the link: lanes, 1 to 16.
    #[arg(long, value_delimiter = ',', default_value = "8", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) lanes: Vec<u32>,
    /// Packet sizes: bytes, 64 to 1518.
    #[arg(long, value_delimiter = ',', default_value = "64,128,256,512,1024,1518", value_parser = clap::value_parser!(u64).range(SHORTEST..=LONGEST))]
    pub(crate) sizes: Vec<u64>,
    /// Maximum payload size: bytes, a power of two.
    #[arg(long, default_value = "256", value_parser = power::<128, 4096>)]
    pub(crate) payload: u64,
    /// Maximum read request size: bytes, a power of two.
    #[arg(long, default_value = "512", value_parser = power::<128, 4096>)]
    pub(crate) read_request: u64,
    /// Pieces in which the host answers reads: bytes, a power of two, from the read completion
    /// boundary of 64 to the maximum payload.
    #[arg(long, default_value = "256", value_parser = power::<64, 4096>)]
    pub(crate) completion: u64,
    /// Addresses of 32 bits: the headers of requests are a word shorter.
    #[arg(long)]
    pub(crate) narrow: bool,
    /// Descriptors that the device fetches at once: a power of two.
    #[arg(long, default_value = "32", value_parser = power::<1, MOST_AT_ONCE>)]
    pub(crate) fetch: u64,
    /// Packets after which descriptors are written back: a power of two.
    #[arg(long, default_value = "1", value_parser = power::<1, MOST_AT_ONCE>)]
    pub(crate) write_back: u64,
    /// Packets of each stream through the soft device: a number such as 10k.
    #[arg(long, default_value = "10k", value_parser = crate::forward::cases::number)]
    pub(crate) packets: usize,
    /// Rounds between two cores, in which the layouts take turns.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Write plots into this folder (SVG).
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Queue {
    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Rounds, in which the contestants take turns; up to as many again where the machine changed its phase.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Frame sizes: bytes from 64 to 9216, check sequence included. With this or --bursts, every
    /// combination is measured; without them a choice.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(64..=9216))]
    pub(crate) sizes: Vec<u16>,
    /// Packets sent and taken at once: 1 to 256.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) bursts: Vec<u16>,
    /// Do without hugepages, also where there are some.
    #[arg(long)]
    pub(crate) no_huge: bool,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leave dpdk-testpmd out.
    #[arg(long)]
    pub(crate) no_yardstick: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Serve {
    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Rounds, in which the paths take turns of a second each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Sizes of the bodies: bytes. With this, --connections or --workers, every combination is measured; without them
    /// a choice.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) bodies: Vec<u32>,
    /// Connections at once.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) connections: Vec<u32>,
    /// Workers of NGINX.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) workers: Vec<u32>,
    /// A connection for each request, with --bodies, --connections or --workers.
    #[arg(long)]
    pub(crate) close: bool,
    /// Paths between client and server; all without this.
    #[arg(long, value_delimiter = ',')]
    pub(crate) paths: Vec<Path>,
    /// Folder with millraced, millrace and libmillrace_preload.so; that of this program without this.
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
    /// Connections that are held to measure what idle ones cost.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) idle_connections: u32,
    /// Leave idle connections out.
    #[arg(long)]
    pub(crate) no_idle: bool,
    /// Leave iperf3 and redis-benchmark out.
    #[arg(long)]
    pub(crate) no_others: bool,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// A path between client and server of `serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Path {
    /// The kernel's loopback, programs on whatever cores the kernel chooses.
    Loopback,
    /// The kernel's loopback, client and server pinned.
    Pinned,
    /// The kernel's stacks of two namespaces, joined by a veth pair.
    Veth,
    /// NGINX on Millrace; the client on the kernel, behind a tap.
    Tap,
    /// The same, NGINX on a stack worker of the daemon (placement `shared`).
    TapShared,
    /// Both on Millrace, each with a stack of its own, joined by the daemon.
    Inline,
    /// Both on Millrace, on a stack worker of the daemon (placement `shared`), joined by the daemon.
    Shared,
    /// Both on Millrace, each with a stack of its own, joined by a link.
    Link,
}

#[derive(Debug, Group)]
pub(crate) struct Session {
    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Rounds, in which the contestants take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
}
