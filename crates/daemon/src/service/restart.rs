//! What the program before has left to this one; and a restart in place: the process stays and runs the program anew.

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock;

/// What the program before has left to this one: how often it was restarted in place, and when packets were forwarded last
/// (`CLOCK_MONOTONIC`, nanoseconds).
pub(super) const LEFT: &str = "MILLRACE_RESTARTED";
/// In place of the time: packets are still forwarded there.
pub(super) const TAKES_OVER: &str = "takes-over";

/// How the process came to run this program.
#[derive(Debug)]
pub(crate) struct Lineage {
    /// Restarts, in place and by take-over.
    restarts: u32,
    takes_over: bool,
    stopped: OnceLock<u64>,
    /// Microseconds and one; 0: not over yet.
    standstill: AtomicU64,
}

impl Lineage {
    /// By what the program before has left.
    pub(crate) fn of_environment() -> Self {
        Self::of(env::var(LEFT).ok().as_deref())
    }

    fn of(left: Option<&str>) -> Self {
        let read = |text: &str| {
            let (restarts, stopped) = text.split_once(' ')?;
            let takes_over = stopped == TAKES_OVER;
            let stopped = if takes_over { None } else { Some(stopped.parse::<u64>().ok()?) };
            Some((restarts.parse().ok()?, takes_over, stopped))
        };
        let (restarts, takes_over, stopped) = left.and_then(read).unwrap_or_default();
        let stopped = stopped.map_or_else(OnceLock::new, OnceLock::from);
        Self { restarts, takes_over, stopped, standstill: AtomicU64::new(0) }
    }

    /// Whether the process was started to take over from another.
    pub(super) fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// That one stopped then (`CLOCK_MONOTONIC`, nanoseconds).
    pub(crate) fn stopped(&self, when: u64) {
        self.stopped.get_or_init(|| when);
    }

    /// Restarts since the daemon was started.
    pub(crate) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Everything that was forwarded before is forwarded again.
    pub(crate) fn forwards(&self) {
        let Some(stopped) = self.stopped.get() else { return };
        let standstill = Duration::from_nanos(clock::now().saturating_sub(*stopped));
        let microseconds = u64::try_from(standstill.as_micros()).unwrap_or(u64::MAX - 1);
        self.standstill.store(microseconds + 1, Ordering::Relaxed);
        tracing::info!("restarted; forwarding stood still for {} ms", standstill.as_millis());
    }

    /// How long forwarding stood still at the last restart: microseconds. `None`: it was none, or is not over.
    pub(crate) fn standstill(&self) -> Option<u64> {
        self.standstill.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// The program as it is to be run anew.
#[derive(Debug)]
pub(crate) struct Again {
    program: PathBuf,
    restarts: u32,
    stopped: u64,
}

impl Again {
    /// Workers have just stopped. `program`: what [`program`] has given at the start.
    pub(crate) fn now(program: PathBuf, lineage: &Lineage) -> Self {
        Self { program, restarts: lineage.restarts.wrapping_add(1), stopped: clock::now() }
    }

    /// When the workers stopped.
    pub(crate) fn stopped(&self) -> u64 {
        self.stopped
    }

    /// Runs it in this process. Only comes back when that fails.
    pub(crate) fn run(self) -> io::Error {
        // What DPDK has opened would stay open, and devices in use.
        if let Err(error) = dpdk::close_on_exec() {
            tracing::warn!("open files stay open over the restart: {error}");
        }
        let mut command = Command::new(self.program);
        command.args(env::args_os().skip(1));
        command.env(LEFT, format!("{} {}", self.restarts, self.stopped));
        command.exec()
    }
}

/// Where this program is: by its name then, a new version that was installed meanwhile is run.
///
/// Errors: the system does not say.
pub(crate) fn program() -> io::Result<PathBuf> {
    env::current_exe()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_read_or_none() {
        for nothing in [None, Some(""), Some("1"), Some("x 5"), Some("1 -5"), Some("1 2 3")] {
            let lineage = Lineage::of(nothing);
            lineage.forwards();
            assert_eq!((lineage.restarts(), lineage.standstill()), (0, None), "{nothing:?}");
        }
        let lineage = Lineage::of(Some(&format!("3 {}", clock::now())));
        assert_eq!((lineage.restarts(), lineage.standstill()), (3, None));
        lineage.forwards();
        assert!(lineage.standstill().is_some());
        let lineage = Lineage::of(Some(&format!("3 {TAKES_OVER}")));
        assert!(lineage.takes_over());
        lineage.forwards();
        assert_eq!((lineage.restarts(), lineage.standstill()), (3, None));
        lineage.stopped(clock::now());
        lineage.forwards();
        assert!(lineage.standstill().is_some());
        // A clock that was set back, or a number that somebody made up.
        let lineage = Lineage::of(Some(&format!("3 {}", u64::MAX)));
        lineage.forwards();
        assert_eq!(lineage.standstill(), Some(0));
    }
}
