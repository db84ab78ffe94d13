//! The command line of `placement`, and that of the process of a turn.

use std::num::NonZeroU8;
use std::path::PathBuf;

use crate::command_line::Run;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// What is varied [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) vary: Vec<Vary>,
    /// Frame size: bytes from 64 to 1518, check sequence included.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(64..=1518))]
    pub(super) frame: u16,
    /// Say what would be measured, what this machine cannot run, and why.
    #[arg(long)]
    pub(super) check: bool,
}

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Vary {
    /// Cores of the threads that receive, work and transmit.
    Cores,
    /// Pages and amount of DPDK's memory.
    Pages,
    /// Memory channels that DPDK is told (-n).
    Channels,
}

impl Args {
    pub(super) fn varies(&self, what: Vary) -> bool {
        self.vary.is_empty() || self.vary.contains(&what)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stage {
    /// Cores of the threads that receive, work and transmit.
    pub(super) receive: usize,
    pub(super) worker: usize,
    pub(super) transmit: usize,
    /// Size of the hugepages that DPDK's memory is in: KiB; ordinary pages without.
    #[arg(long)]
    pub(super) huge: Option<u64>,
    /// DPDK's memory: MB.
    #[arg(long)]
    pub(super) megabytes: u32,
    /// Memory channels that DPDK is told.
    #[arg(long)]
    pub(super) channels: Option<NonZeroU8>,
    /// Frame size: bytes, check sequence included.
    #[arg(long)]
    pub(super) frame: u16,
    /// Samples that are taken.
    #[arg(long)]
    pub(super) samples: u32,
    /// The routes: a file of prefixes.
    #[arg(long)]
    pub(super) prefixes: PathBuf,
}
