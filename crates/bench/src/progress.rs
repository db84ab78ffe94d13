//! Progress for people who wait; nothing where no terminal is.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `steps` steps on standard error. It hides itself when that is no terminal.
pub(crate) fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
