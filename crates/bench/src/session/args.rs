//! The command line of `session`.

use crate::command_line::Json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) json: Json,
    /// Rounds, in which the contestants take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(super) quick: bool,
}
