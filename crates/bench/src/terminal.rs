//! What people see: lines on standard output, and progress while they wait.
//!
//! A reader that goes away, as `head` does, is no failure: measurements go on for the JSON file.

use std::borrow::Cow;
use std::cell::Cell;
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
    if let Err(error) = writeln!(stdout(), "{}", harmless(text)) {
        if error.kind() != ErrorKind::BrokenPipe {
            complain(format_args!("standard output cannot be written: {error}"));
        }
    }
}

/// Writes a line to standard error. When that cannot be written, nobody can be told.
pub(crate) fn complain(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "millrace-bench: {}", harmless(text));
}

/// A text without characters that move a cursor or change colours: names of files, titles of scenarios and what programs say are
/// of others.
fn harmless(text: Arguments<'_>) -> String {
    let is_harmful = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    text.to_string().replace(is_harmful, "?")
}

/// A bar of `steps` steps on standard error. It hides itself when that is no terminal.
pub(crate) fn progress(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed}, {eta} left: {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A bar over parts of some work, each of which is to take a number of steps. Steps beyond these, such as those of rounds that are
/// repeated, do not move it.
#[derive(Debug)]
pub(crate) struct Parts {
    bar: ProgressBar,
    /// Where it stands when the part that is going on is over.
    planned: Cell<u64>,
}

impl Parts {
    /// All parts together are to take so many steps.
    pub(crate) fn new(steps: usize) -> Self {
        Self { bar: progress(steps), planned: Cell::new(0) }
    }

    /// The next part begins, which is to take so many steps.
    pub(crate) fn begin(&self, what: impl Into<Cow<'static, str>>, steps: usize) {
        let before = self.planned.get();
        self.planned.set(before + steps as u64);
        self.bar.set_position(before);
        self.bar.set_message(what);
    }

    /// A step is over.
    pub(crate) fn step(&self) {
        let passed = self.bar.position() + 1;
        self.bar.set_position(passed.min(self.planned.get()));
    }

    /// All parts are over.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar of work that takes so long at most. Its position: milliseconds of that.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_controls_the_terminal() {
        let name = "a\u{1b}[2J\u{9b}b\r";
        assert_eq!(harmless(format_args!("{name}\n\tc")), "a?[2J?b?\n\tc");
    }

    #[test]
    fn a_part_moves_the_bar_as_far_as_was_planned() {
        let parts = Parts::new(5);
        parts.begin("repeats rounds", 2);
        (0..3).for_each(|_| parts.step());
        assert_eq!(parts.bar.position(), 2);
        parts.begin("is cut short", 3);
        parts.step();
        assert_eq!(parts.bar.position(), 3);
        parts.begin("has no steps", 0);
        assert_eq!(parts.bar.position(), 5);
    }
}
