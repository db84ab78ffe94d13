//! The log: lines on standard error, which systemd stores. Lines that their reader has no room for are left out, and counted.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use control::config::LogLevel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing_subscriber::EnvFilter;

/// As much as a pipe that has room takes whole: bytes (`PIPE_BUF`, pipe(7)). A socket that has room takes more (Linux,
/// `unix_writable`).
const PIECE: usize = 4096;

/// Lines that were left out since the last one.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

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
        .with_writer(|| Lines)
        .with_ansi(io::stderr().is_terminal());
    let started = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => lines.without_time().try_init(),
        None => lines.try_init(),
    };
    if let Err(error) = started {
        let _ = writeln!(io::stderr(), "millraced: no log: {error}");
    }
}

/// Standard error, for whose reader nobody waits: the control thread writes lines too, and a write to a pipe or socket that is
/// full lasts until somebody reads.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        put(&mut io::stderr().lock(), line, &LEFT_OUT);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line, after how many were left out, if there is room for it now; else it is left out, too. Nobody else writes
/// to `out` meanwhile.
fn put(out: &mut (impl Write + AsFd), line: &[u8], left_out: &AtomicU64) {
    let before = left_out.load(Ordering::Relaxed);
    if before > 0 {
        let told = format!("{before} lines were left out here: nobody read the log in time\n");
        if !fits(out, told.as_bytes()) {
            left_out.store(before + 1, Ordering::Relaxed);
            return;
        }
    }
    let missing = u64::from(!fits(out, line));
    left_out.store(missing, Ordering::Relaxed);
}

/// Writes as much as there is room for. Whether that was all.
fn fits(out: &mut (impl Write + AsFd), bytes: &[u8]) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    bytes.chunks(PIECE).all(|piece| {
        let has_room = poll(&mut [PollFd::new(&*out, PollFlags::OUT)], Some(&now));
        has_room.is_ok_and(|ready| ready > 0) && out.write_all(piece).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn nobody_waits_for_who_does_not_read() {
        let (mut log, mut reader) = UnixStream::pair().unwrap();
        let left_out = AtomicU64::new(0);
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        // As a pipe it has room for some of them.
        for _ in 0..10_000 {
            put(&mut log, &line, &left_out);
        }
        let missing = left_out.load(Ordering::Relaxed);
        assert!((1..10_000).contains(&missing), "{missing}");
        let mut read = vec![0; line.len() * (10_000 - missing as usize)];
        reader.read_exact(&mut read).unwrap();
        put(&mut log, b"again\n", &left_out);
        drop(log);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let told =
            format!("{missing} lines were left out here: nobody read the log in time\nagain\n");
        assert_eq!((rest, left_out.into_inner()), (told, 0));
    }
}
