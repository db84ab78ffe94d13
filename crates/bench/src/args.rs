//! The command line.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand};

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
    /// Look-ups, changes and memory of the tables, beside rte_fib, rte_lpm and rte_hash.
    Tables(Tables),
    /// Cycles per TCP segment, request and connection in memory, and memory per connection, beside
    /// smoltcp and lwIP.
    Transport(Transport),
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
