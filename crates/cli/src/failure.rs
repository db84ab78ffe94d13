//! What goes wrong, told with its remedy, and the exit status.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use control::ConfigError;
use control::client::ClientError;

/// Exit status of a command line that makes no sense, as clap has it.
const USAGE: u8 = 2;

/// Why a command failed: `what is wrong; what would be right`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A word of the command line.
    #[error("{0}")]
    Usage(String),
    /// The daemon.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Lines of a file.
    #[error("{}: lines that are wrong: {}; correct them, nothing was changed", .0.display(), .1.len())]
    Lines(PathBuf, Vec<ConfigError>),
    /// The daemon refused a part of a file.
    #[error("lines {first} to {last} of {} were refused, {done} entries before them were taken: {error}", .file.display())]
    Part {
        /// The file.
        file: PathBuf,
        /// First line of the part.
        first: u64,
        /// Last line of the part.
        last: u64,
        /// Entries that were taken before.
        done: u64,
        /// What the daemon says.
        error: ClientError,
    },
    /// A file or folder.
    #[error("{}: {error}; name one that can be used", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// No daemon to run.
    #[error(
        "there is no millraced beside this program or in PATH; install it, or run it by its path"
    )]
    NoDaemon,
    /// No program to run.
    #[error("there is no program {} to run; name one that is in PATH, or its path", .0.display())]
    NoProgram(PathBuf),
    /// No library for the program's sockets.
    #[error(
        "there is no libmillrace_preload.so in {}; install it, or name it with --library",
        .0.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoLibrary(Vec<PathBuf>),
    /// A program cannot be served, and was to be.
    #[error("{program} was not started: {why}")]
    NotServed {
        /// Its name.
        program: String,
        /// Why it would run on the kernel's stack.
        why: String,
    },
    /// Whoever was asked did not agree.
    #[error("nothing was changed")]
    NotAgreed,
    /// Nobody can be asked.
    #[error(
        "there is no terminal to ask at, and nothing was changed; say --yes to change it without asking"
    )]
    NobodyToAsk,
    /// An undo script of another run.
    #[error("{} exists, and nothing was changed; run it to undo what it is about, or name another with --undo-script", .0.display())]
    ScriptExists(PathBuf),
    /// It began to restart.
    #[error("millraced did not come back within {0} s; see its log")]
    NotBack(u64),
    /// Standard output.
    #[error("standard output cannot be written ({0}); see where it goes")]
    Output(std::io::Error),
    /// The runtime.
    #[error("cannot start ({0}); see the limits of this process")]
    Runtime(std::io::Error),
    /// A value cannot be printed.
    #[error("the answer cannot be printed ({0}); use --json")]
    Print(String),
}

impl Failure {
    /// A file that failed.
    pub(crate) fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// Tells it on standard error, and gives the exit status.
    pub(crate) fn report(self) -> ExitCode {
        if matches!(&self, Self::Output(error) if error.kind() == ErrorKind::BrokenPipe) {
            // The reader has seen enough, as in `millrace show routes | head`.
            return ExitCode::SUCCESS;
        }
        complain(format_args!("millrace: {self}"));
        match &self {
            Self::Client(ClientError::Refused { error, .. })
            | Self::Part { error: ClientError::Refused { error, .. }, .. } => {
                error.details.iter().for_each(|detail| complain(format_args!("  {detail}")));
            }
            Self::Lines(_, errors) => {
                errors.iter().for_each(|error| complain(format_args!("  {error}")));
            }
            _ => {}
        }
        if matches!(self, Self::Usage(_)) { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
    }
}

/// Writes a line to standard error. When that cannot be written, nobody can be told.
fn complain(line: Arguments<'_>) {
    let _ = writeln!(stderr(), "{line}");
}
