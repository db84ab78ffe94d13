//! The command line of `session`.

use crate::command_line::Json;

const RESULTS: &str = "\
Results:
  session found by descriptor  look-ups/s of 1 to 8 workers, each in an array of its own, beside a table
                               behind a read/write lock
  control messages             messages/s of 1 to 8 threads to one, by the token queue and by a queue for
                               each pair, beside a queue behind one lock
  check for kernel events      a word in memory, beside epoll_wait without waiting
  CPU of a waiting worker      at 0 to 100,000 events/s: polling, sleeping at once, unified blocking
  from event to worker         the time until the worker looks, with each of these

docs/measure.md explains them.";

#[derive(Debug, clap::Args)]
#[command(after_help = RESULTS)]
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
