//! What people see: lines on standard output, and progress while they wait.
//!
//! A reader that goes away, as `head` does, is no failure: measurements go on for the JSON file.

use std::fmt::{self, Arguments};
use std::io::{ErrorKind, Write as _, stderr, stdout};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

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

/// The same for work that takes so long at most. Its position: milliseconds of that.
pub(crate) fn timed(most: Duration) -> ProgressBar {
    let bar = ProgressBar::new(most.as_millis() as u64);
    let style = ProgressStyle::with_template("{bar:30} {elapsed}, up to {left} left: {msg}");
    let style = style.map(|style| style.with_key("left", left));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Writes how long the rest takes at most. Steps of minutes say nothing of how fast the next ones are.
fn left(state: &ProgressState, to: &mut dyn fmt::Write) {
    let rest = state.len().unwrap_or_default().saturating_sub(state.pos());
    // A line has room for everything.
    let _ = write!(to, "{:#}", HumanDuration(Duration::from_millis(rest)));
}
