//! The command lines of `queue` and of its other process.

use std::path::PathBuf;

use crate::command_line::Json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) json: Json,
    /// Rounds, in which the contestants take turns; up to as many again if the machine changes its phase.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// Frame sizes: bytes from 64 to 9216, check sequence included. With this or --bursts, every
    /// combination is measured; without them a selection.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(64..=9216))]
    pub(super) sizes: Vec<u16>,
    /// Packets sent and taken at once: 1 to 256.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) bursts: Vec<u16>,
    /// Do without hugepages, even if there are some.
    #[arg(long)]
    pub(super) no_huge: bool,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(super) quick: bool,
    /// Leave dpdk-testpmd out.
    #[arg(long)]
    pub(super) no_yardstick: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Peer {
    /// The core that it keeps to.
    pub(super) core: usize,
    /// The socket where it attaches.
    pub(super) attach: PathBuf,
}
