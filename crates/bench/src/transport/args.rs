//! The command line of `transport`.

use std::path::PathBuf;

use crate::command_line::{Json, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) json: Json,
    /// Rounds, in which the contestants take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// Connections at once: numbers such as 1, 10k, 1M.
    #[arg(long, value_delimiter = ',', default_value = "1,10k,1M", value_parser = number)]
    pub(super) connections: Vec<usize>,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(super) quick: bool,
    /// Leave smoltcp and lwIP out.
    #[arg(long)]
    pub(super) no_yardstick: bool,
    /// Only simulate flows that share a path, and write plots of their rates into this folder (SVG).
    #[arg(long, value_name = "DIR")]
    pub(super) plots: Option<PathBuf>,
}
