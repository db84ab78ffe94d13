//! The log: lines on standard error, which systemd stores.

use std::io::{IsTerminal, Write as _};

use control::config::LogLevel;
use tracing_subscriber::EnvFilter;

/// The filter for a level of the configuration.
pub(crate) const fn filter(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    }
}

/// Starts logging. `level` is the name of a level.
///
/// Under systemd the lines carry no time of their own: the journal has it.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => lines.without_time().try_init(),
        None => lines.try_init(),
    };
    if let Err(error) = started {
        let _ = writeln!(std::io::stderr(), "millraced: no log: {error}");
    }
}
