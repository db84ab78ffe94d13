//! The command line of `tables`.

use crate::command_line::{Run, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// Entries of the flow tables: a number such as 10k or 4M [default: 4,194,304].
    #[arg(long, value_parser = number)]
    pub(super) entries: Option<usize>,
    /// 2 x 16,777,216 entries, which take some 4 GB of memory.
    #[arg(long, conflicts_with = "entries")]
    pub(super) full: bool,
}
