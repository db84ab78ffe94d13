//! The command line of `tables`.

use crate::command_line::{Run, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// Entries of the flow tables: a number such as 4M.
    #[arg(long, value_parser = number)]
    pub(super) entries: Option<usize>,
    /// 2 x 16,777,216 entries: takes some 4 GB of memory.
    #[arg(long, conflicts_with = "entries")]
    pub(super) full: bool,
}
