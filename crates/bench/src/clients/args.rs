//! The command line of `clients`.

use crate::command_line::Run;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// Channels of the client: 1 to 64.
    #[arg(long, value_delimiter = ',', default_value = "1,64", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) channels: Vec<u16>,
    /// Samples in each turn, of 20 ms each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) samples: u32,
}
