//! Arguments of a run.

use std::path::PathBuf;

use super::json::Json;

/// What a run takes whose contestants forward packets or look addresses up.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) json: Json,
    /// Prefixes of a full table, one per line, plain or compressed (.gz).
    #[arg(long, value_name = "FILE")]
    pub(crate) prefixes: Option<PathBuf>,
    /// Rounds, in which the contestants take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Do without hugepages, even if there are some.
    #[arg(long)]
    pub(crate) no_huge: bool,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(crate) quick: bool,
}

impl Run {
    /// Which memory DPDK gets.
    pub(crate) fn memory(&self) -> dpdk::Memory {
        if self.no_huge { dpdk::Memory::Plain } else { dpdk::Memory::Auto }
    }
}
