//! `millrace exec`

use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  millrace exec nginx                         start nginx as usual, on Millrace's stack
  millrace exec --require redis-server --port 6379
  millrace exec --library ./target/debug/libmillrace_preload.so curl http://192.0.2.9/

The program keeps its configuration and listens where it always did. The network reaches it through Millrace,
and this host through the kernel. docs/serve.md lists what differs from the kernel.";

/// Runs a program with its sockets on Millrace's TCP/IP stack.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Exec {
    /// The daemon's sessions socket [default: MILLRACE_SESSIONS, else sessions.sock beside --socket]
    #[arg(long, value_name = "PATH")]
    pub(crate) sessions: Option<PathBuf>,
    /// libmillrace_preload.so [default: beside millrace, else in ../lib/millrace, ../lib or /usr/lib/millrace]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Where its TCP/IP stack runs [default: MILLRACE_PLACEMENT, else as sessions.placement of the daemon says]
    #[arg(long, value_name = "PLACEMENT", value_parser = ["inline", "shared"])]
    pub(crate) placement: Option<String>,
    /// Fail instead of running the program on the kernel's stack
    #[arg(long)]
    pub(crate) require: bool,
    /// Send everything through the daemon, also to programs on this host, so that `trace` and `capture` see it
    #[arg(long)]
    pub(crate) no_links: bool,
    /// Do not print which stack the program runs on and where a server is reached
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        num_args = 1..,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM",
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}
