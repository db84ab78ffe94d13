//! `millrace doctor`

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Subcommand;

const EXAMPLES: &str = "Examples:
  millrace doctor                                    beside a running daemon: its cores and ports
  millrace doctor --config /etc/millrace/millrace.toml
  millrace --json doctor | jq '.findings[] | select(.state == \"bad\")'
  millrace doctor --apply                            change what can be undone, after asking
  millrace doctor plan --config millrace.toml        which core polls which queue

Without --apply, nothing is changed. Without root, some settings cannot be read. docs/doctor.md lists the checks.

Exit status: 0 nothing to change, 1 failure, 2 wrong command line, 3 something is bad or could be better;
with --apply: 0 every change was made, 1 not every one.";

const PLAN: &str = "Prints sections for millrace.toml, with the reasons as comments. A worker gets a physical core of its own on the node of
the port's card, isolated ones first; core 0 and its sibling stay with the kernel. Without --config and without a
running daemon, every network card but that of the default route becomes a port.

Examples:
  millrace doctor plan
  millrace doctor plan --config millrace.toml --workers 4";

/// Checks this host's settings: what is, what would be better, why, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    #[command(subcommand)]
    pub(crate) what: Option<Advice>,
    /// Judge for this configuration [default: that of the running daemon, else the daemon's defaults]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Look at a copy of another machine's /proc and /sys below this folder
    #[arg(long, value_name = "DIR", global = true, default_value = "/", hide_default_value = true)]
    pub(crate) root: PathBuf,
    /// Explain good settings, too
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Change what can be undone, after asking; kernel parameters and BIOS are never touched
    #[arg(long)]
    pub(crate) apply: bool,
    /// Do not ask
    #[arg(long, requires = "apply")]
    pub(crate) yes: bool,
    /// The script that undoes the changes; a file that exists is not overwritten [default: millrace-undo.sh]
    #[arg(long, value_name = "FILE", requires = "apply")]
    pub(crate) undo_script: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Advice {
    /// Propose worker cores, and the core that polls each queue, from the machine's topology
    #[command(after_help = PLAN)]
    Plan {
        /// How many workers [default: one for 10 Gbit/s of each port]
        #[arg(long, value_name = "N")]
        workers: Option<NonZeroUsize>,
    },
}
