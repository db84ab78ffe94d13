//! The command line.

mod change;
mod doctor;
mod exec;
mod observe;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use change::{
    Flow, FlowWords, Function, Neighbor, OnOff, Port, Route, Scope, Setting, Standing,
};
pub(crate) use doctor::{Advice, Doctor};
pub(crate) use exec::Exec;
pub(crate) use observe::{Capture, Point, Trace};
pub(crate) use show::{Sessions, Show, Watch};

const EXAMPLES: &str = "Examples:
  millrace run --config /etc/millrace/millrace.toml
  millrace exec nginx
  millrace doctor
  millrace show summary
  millrace show ports --watch 1
  millrace route add 10.0.0.0/8 via 192.0.2.2,192.0.2.3
  millrace trace --host 192.0.2.9 --count 3
  millrace capture --write drops.pcapng --direction drop --timeout 10
  millrace --json show routes --family 6

Exit status: 0 success, 1 failure, 2 wrong command line.";

const SAVE: &str = "Writes the file 'state' in the folder that daemon.keep of the configuration names, or else in the service's
state directory (systemd: StateDirectory=); the next start reads it. With daemon.keep set, the daemon does this by itself.";

const RESTART: &str = "Keeps routes, neighbours, flows and functions that came by the API, and learned neighbours, whether daemon.keep is
set or not. A newly installed version takes over. If the configuration has errors, nothing is restarted.
Clients have to attach again. Programs started by millrace exec go on, with their connections unless they are in the placement
shared.";

/// Shows and changes what a running millraced does; also starts it, runs programs on its stack, and checks the host.
#[derive(Debug, Parser)]
#[command(name = "millrace", version, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Args {
    /// The daemon's socket [default: /run/millrace/millrace.sock]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,

    /// Print the API's JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Longest wait for an answer of the daemon: 1 to 3600 seconds
    #[arg(
        long = "answer-timeout",
        global = true,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=3_600),
        hide_short_help = true
    )]
    pub(crate) answer_timeout: u64,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// The socket, or where it is by default.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| control::DEFAULT_SOCKET.into())
    }

    /// How long an answer may take.
    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_secs(self.answer_timeout)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start millraced in the foreground
    Run(Run),
    /// Run a program with its sockets on Millrace's TCP/IP stack
    Exec(Exec),
    /// Check this host's settings: what is, what would be better, why, and how
    Doctor(Doctor),
    /// Show what the daemon knows
    Show {
        #[command(subcommand)]
        what: Show,
    },
    /// Add, remove, look up and load routes
    Route {
        #[command(subcommand)]
        change: Route,
    },
    /// Add and remove neighbours
    Neighbor {
        #[command(subcommand)]
        change: Neighbor,
    },
    /// Add, remove and load exact-match flows
    Flow {
        #[command(subcommand)]
        change: Flow,
    },
    /// Add packet functions from shared objects to the running daemon, and remove them
    Function {
        #[command(subcommand)]
        change: Function,
    },
    /// Show ports, and set them up or down
    Port {
        #[command(subcommand)]
        change: Port,
    },
    /// Follow single packets through the nodes, in words
    Trace(Trace),
    /// Write packets to a pcapng file
    Capture(Capture),
    /// Apply the changes of the configuration file
    Reload {
        /// Load this configuration file instead of the one in force
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Save what was added at run time, and learned neighbours, for the next start
    #[command(after_help = SAVE)]
    Save,
    /// Restart millraced with its run-time state, and say how long forwarding stood still
    #[command(after_help = RESTART)]
    Restart,
    /// Print the completion script of a shell
    #[command(
        after_help = "Example:\n  millrace completion bash > /etc/bash_completion.d/millrace"
    )]
    Completion {
        /// bash, zsh, fish, elvish or powershell
        shell: Shell,
    },
    /// Write the manual pages to a folder
    #[command(hide = true)]
    Man {
        /// The folder; it is made when missing
        folder: PathBuf,
    },
}

/// How to start the daemon.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Check the configuration, say what is wrong, and exit
    #[arg(long)]
    pub(crate) check: bool,
}
