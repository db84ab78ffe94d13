//! Where results go.

use std::path::{Path, PathBuf};

/// What every run takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Json {
    /// Write the results to this file as JSON [default: COMMAND-DATE-TIME.json in $MILLRACE_BENCH_RESULTS, or else in
    /// ~/.local/state/millrace/bench, where the newest 200 are kept].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Json {
    /// The file that was named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.json.as_deref()
    }
}
