//! Standard output. A reader that goes away, as `head` does, is no failure: measurements go on for the JSON file.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _, stderr, stdout};

/// Prints a line.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::line(format_args!($($text)*)) };
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
