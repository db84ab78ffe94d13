//! What people see: lines on standard output, and progress while they wait.
//!
//! A reader that goes away, as `head` does, is no failure: measurements go on for the JSON file.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _, stderr, stdout};

use indicatif::{ProgressBar, ProgressStyle};

/// Prints a line.
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::line(format_args!($($text)*)) };
}
pub(crate) use say;

/// Writes a line to standard output.
pub(crate) fn line(text: Arguments<'_>) {
    if let Err(error) = writeln!(stdout(), "{text}") {
        if error.kind() != ErrorKind::BrokenPipe {
            complain(format_args!("standard output cannot be written: {error}"));
        }
    }
}

/// Writes a line to standard error. When that cannot be written, nobody can be told.
pub(crate) fn complain(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "millrace-bench: {text}");
}

/// A bar of `steps` steps on standard error. It hides itself when that is no terminal.
pub(crate) fn progress(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed}, {eta} left: {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
