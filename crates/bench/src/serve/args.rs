//! The command lines of `serve` and of its other process.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::path::Path;
use crate::command_line::Json;

const EXAMPLES: &str = "\
Examples:
  millrace-bench serve --quick                                 a few loads: does it work here?
  millrace-bench serve --bodies 64,10240 --connections 1,100   every combination, on all paths
  millrace-bench serve --paths pinned,inline,link --workers 1,2 --no-idle --no-others

For each load and path: requests/s; their ratio to the faster kernel loopback in the same round, as
median [range]; latency (p50, p99); CPU seconds per million requests of server, client and daemon. Then,
on the kernel and in both placements of Millrace, what idle connections cost in CPU time and memory, and
iperf3 and redis-benchmark. docs/measure.md explains paths and figures.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) json: Json,
    /// Rounds, in which the paths take turns of a second each.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// Sizes of the bodies: bytes. With this, --connections or --workers, every combination is measured; without them
    /// a selection.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(super) bodies: Vec<u32>,
    /// Connections at once.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(super) connections: Vec<u32>,
    /// Workers of NGINX.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) workers: Vec<u32>,
    /// A connection for each request; takes effect with --bodies, --connections or --workers.
    #[arg(long)]
    pub(super) close: bool,
    /// Paths between client and server [default: all].
    #[arg(long, value_delimiter = ',')]
    pub(super) paths: Vec<Path>,
    /// Folder of millraced, millrace and libmillrace_preload.so [default: that of this program].
    #[arg(long, value_name = "DIR")]
    pub(super) programs: Option<PathBuf>,
    /// Idle connections that are held open to measure what they cost.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(super) idle_connections: u32,
    /// Leave idle connections out.
    #[arg(long)]
    pub(super) no_idle: bool,
    /// Leave iperf3 and redis-benchmark out.
    #[arg(long)]
    pub(super) no_others: bool,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(super) quick: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Hold {
    /// Where the server listens.
    pub(super) address: SocketAddr,
}
