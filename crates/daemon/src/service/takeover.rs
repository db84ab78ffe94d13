//! A restart in which another process takes over: the successor gets ready while its predecessor still forwards. Between them
//! is a socket, at first the successor's standard input:
//!
//! | who | says | meaning |
//! | --- | --- | --- |
//! | successor | `r` | its tables are filled, and devices that two processes can have are open |
//! | predecessor | `s` and when | its workers have stopped, its sockets are free: receive |
//! | predecessor | `c` | the other devices are closed: open them |

use std::env;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, stdin};

use super::restart::{LEFT, Lineage, TAKES_OVER};

const READY: u8 = b'r';
const STOPPED: u8 = b's';
const CLOSED: u8 = b'c';

/// How long the successor may take to get ready: a million routes from a file are some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why nobody takes over. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeoverError {
    #[error("the new process does not start: {0}")]
    Start(io::Error),
    #[error("the new process ended before it was ready ({0}); the log has its reason")]
    Ended(String),
    #[error("the new process was not ready within {} s", PATIENCE.as_secs())]
    Late,
}

/// The process that is going to take over, as its predecessor sees it. It is ended unless it was told to go on.
#[derive(Debug)]
pub(crate) struct Successor {
    process: Child,
    line: UnixStream,
    free: bool,
}

impl Successor {
    /// Starts it, and waits until it is ready. Blocks.
    ///
    /// Errors: [`TakeoverError`].
    pub(crate) fn start(program: &Path, lineage: &Lineage) -> Result<Self, TakeoverError> {
        let (line, process) = spawn(program, lineage).map_err(TakeoverError::Start)?;
        let mut successor = Self { process, line, free: false };
        let mut said = [0];
        match successor.line.read_exact(&mut said) {
            Ok(()) if said == [READY] => Ok(successor),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(TakeoverError::Late),
            _ => {
                // It may have said nonsense, and run still.
                let _ = successor.process.kill();
                let status = successor
                    .process
                    .wait()
                    .map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(TakeoverError::Ended(status))
            }
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has not ended since it was ready.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// The workers here stopped then (`CLOCK_MONOTONIC`, nanoseconds). `false`: the successor is not there any more.
    pub(crate) fn stopped(&mut self, when: u64) -> bool {
        let mut message = [STOPPED; 9];
        message[1..].copy_from_slice(&when.to_ne_bytes());
        self.free = self.line.write_all(&message).is_ok();
        self.free
    }

    /// All devices are closed here.
    pub(crate) fn closed(mut self) {
        // The end of this process says the same.
        let _ = self.line.write_all(&[CLOSED]);
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.free {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn spawn(program: &Path, lineage: &Lineage) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(PATIENCE))?;
    // What DPDK has opened would be open there too, and devices in use.
    dpdk::close_on_exec()?;
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).stdin(OwnedFd::from(theirs));
    command.env(LEFT, format!("{} {TAKES_OVER}", lineage.restarts().wrapping_add(1)));
    Ok((ours, command.spawn()?))
}

/// The process that is taken over from, as its successor sees it.
#[derive(Debug)]
pub(crate) struct Predecessor {
    line: UnixStream,
}

impl Predecessor {
    /// If this process was started to take over.
    ///
    /// Errors: the system's.
    pub(crate) fn of(lineage: &Lineage) -> io::Result<Option<Self>> {
        if !lineage.takes_over() {
            return Ok(None);
        }
        let line = fcntl_dupfd_cloexec(stdin(), 3)?;
        dup2_stdin(File::open("/dev/null")?)?;
        Ok(Some(Self { line: UnixStream::from(line) }))
    }

    /// Says that everything is ready, and waits until the workers there have stopped: when that was.
    ///
    /// Errors: it has ended.
    pub(crate) fn stops(&mut self) -> io::Result<u64> {
        self.line.write_all(&[READY])?;
        let (mut said, mut when) = ([0], [0; 8]);
        self.line.read_exact(&mut said)?;
        self.line.read_exact(&mut when)?;
        Ok(u64::from_ne_bytes(when))
    }

    /// Waits until all devices are closed there.
    pub(crate) fn closes(&mut self) {
        // Whether it says so or ends.
        let _ = self.line.read_exact(&mut [0]);
    }
}
