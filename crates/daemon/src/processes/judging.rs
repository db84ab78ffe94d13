//! The process that receives, examines and closes what a user's processes hand over ([`shm::session::Judge`]).
//!
//! Each user whose processes may hand over descriptors has one, started with the first connection that may bring some. It holds
//! all of these connections, so it must live as long as they do: one that waits in a close is left alone, and what would need
//! it is refused meanwhile. It is ended with its user's thread. Until it has really ended, its user gets no other: nobody can have
//! more than one process of the daemon wait.

use std::env;
use std::fs::read_to_string;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, wait, waitpid};
use shm::attach::ChannelError;
use shm::session::{Brought, Judge, ORDERS, OTHER_ORDERS};

use super::sparing::complain;

/// The program, which lies beside the daemon's.
const PROGRAM: &str = "millrace-judge";
/// How long one that was killed may take to end, unless it waits in a close; and between two attempts to start one.
const BREATH: Duration = Duration::from_millis(100);
/// When so many are left over, no user but root gets another: each is one of the tasks that the system lets the daemon have, and one
/// person may be many users (`/etc/subuid`).
const MOST_LEFT: usize = 64;

/// Those that nobody uses and that had not ended when that was looked at last.
static LEFT: Mutex<Left> = Mutex::new(Left { users: Vec::new(), before: Vec::new() });

struct Left {
    /// Those that have not ended with their users' threads.
    users: Vec<(u32, Child)>,
    /// Those of the program before, which was run in this process.
    before: Vec<Pid>,
}

impl Left {
    /// Takes note of the end of those that have ended, and waits for none.
    fn reap(&mut self) {
        self.users.retain_mut(|(_, process)| matches!(process.try_wait(), Ok(None)));
        let runs = |process: &Pid| matches!(waitpid(Some(*process), WaitOptions::NOHANG), Ok(None));
        self.before.retain(runs);
    }
}

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a user gets none before others have ended.
fn has_to_wait(uid: u32) -> bool {
    let mut left = left();
    left.reap();
    let users: Vec<u32> = left.users.iter().map(|(user, _)| *user).collect();
    drop(left);
    if let Some(line) = complaint(&users, uid) {
        complain(|| tracing::warn!("{line}"));
    }
    keep_waiting(&users, uid)
}

/// Whether those that are left over of these users keep one waiting: its own, or too many.
fn keep_waiting(users: &[u32], uid: u32) -> bool {
    users.contains(&uid) || (uid != 0 && users.len() >= MOST_LEFT)
}

/// What the log says of one that others keep waiting. Of its own, that was said when it did not end.
fn complaint(users: &[u32], uid: u32) -> Option<String> {
    let by_others = keep_waiting(users, uid) && !users.contains(&uid);
    let count = users.len();
    by_others.then(|| {
        format!("descriptors of user {uid} are refused: {count} {PROGRAM} of others cannot end")
    })
}

/// Takes note of the end of those that are left over and have ended; to be called again and again.
pub(crate) fn reap_judges() {
    left().reap();
}

/// Takes over those that the program before had, which was run in this process. To be called before there are others.
pub(crate) fn inherit_judges() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    // Where the kernel doesn't list them (CONFIG_PROC_CHILDREN), those that end later stay zombies until the daemon ends.
    let children = read_to_string("/proc/thread-self/children").unwrap_or_default();
    let numbers = children.split_whitespace().filter_map(|number| number.parse::<i32>().ok());
    left().before = numbers.filter_map(Pid::from_raw).collect();
}

/// A user's judge.
#[derive(Debug, Default)]
pub(super) struct Judging(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of the connection that came last.
    last: u64,
    running: Option<Running>,
    /// When one could not be started last.
    failed: Option<Instant>,
    /// Why, unless others keep it waiting.
    failure: Option<String>,
}

impl Judging {
    /// Why its user has none, if none can be started.
    pub(super) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Has a connection held: its number.
    fn hold(&mut self, uid: u32, socket: BorrowedFd<'_>) -> Result<u64, ChannelError> {
        self.last += 1;
        let number = self.last;
        self.with(Some(uid), |running| running.judge.hold(number, socket))?;
        Ok(number)
    }

    fn take(&mut self, number: u64, most: usize) -> Result<Vec<Brought>, ChannelError> {
        self.with(None, |running| {
            let was_busy = running.judge.is_busy();
            let taken = running.judge.take(number, most);
            if running.judge.is_busy() && !was_busy {
                let uid = running.uid;
                complain(|| tracing::warn!("user {uid}: {}", ChannelError::Unjudged));
            }
            taken
        })
    }

    /// Asks the judge, which is started for that user if there is none.
    fn with<R>(
        &mut self,
        starts: Option<u32>,
        ask: impl FnOnce(&mut Running) -> Result<R, ChannelError>,
    ) -> Result<R, ChannelError> {
        if let (false, Some(uid)) = (self.running.is_some(), starts) {
            self.start(uid);
        }
        let running = self.running.as_mut().ok_or(ChannelError::Unjudged)?;
        match ask(running) {
            // It has ended, and all that it held is the daemon's alone.
            Err(ChannelError::Closed) => {
                if let Some(mut ended) = self.running.take() {
                    let (uid, how) = (ended.uid, ended.end());
                    let how = how.map_or_else(|| "unknown".to_owned(), said);
                    complain(|| tracing::warn!("{PROGRAM} of user {uid} has ended: {how}"));
                }
                Err(ChannelError::Unjudged)
            }
            answer => answer,
        }
    }

    fn start(&mut self, uid: u32) {
        if self.failed.is_some_and(|at| at.elapsed() < BREATH) {
            return;
        }
        self.failure = None;
        if has_to_wait(uid) {
            self.failed = Some(Instant::now());
            return;
        }
        match Running::start(uid) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.failed = Some(Instant::now());
                self.failure = Some(error.to_string());
                complain(|| tracing::warn!("user {uid} is refused: {error}"));
            }
        }
    }
}

/// How one has ended.
fn said(how: ExitStatus) -> String {
    match how.code() {
        Some(code) if code == i32::from(OTHER_ORDERS) => {
            "it is of another version than this millraced: restart that".to_owned()
        }
        _ => how.to_string(),
    }
}

/// Why the program was not started, and what to do.
fn unstarted(program: &Path, error: &io::Error) -> String {
    let shown = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{shown} is missing, which millraced needs beside it: install it there")
        }
        _ => format!("{shown}, which millraced needs, cannot be started: {error}"),
    }
}

/// The process.
#[derive(Debug)]
struct Running {
    judge: Judge,
    process: Option<Child>,
    uid: u32,
}

impl Running {
    /// Starts it. It has no descriptor of the daemon's but the one by which it gets its orders.
    ///
    /// Errors: the system's, or there is no such program.
    fn start(uid: u32) -> io::Result<Self> {
        let program = env::current_exe()?.with_file_name(PROGRAM);
        // What DPDK has opened would be open there, too.
        dpdk::close_on_exec()?;
        let (judge, orders) = Judge::pair().map_err(io::Error::other)?;
        let mut command = Command::new(&program);
        command.arg(ORDERS.to_string()).stdin(orders);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Its own group: what a terminal sends to the daemon's ends the daemon first.
        command.env_clear().process_group(0);
        let failed = |error| io::Error::other(unstarted(&program, &error));
        let process = Some(command.spawn().map_err(failed)?);
        Ok(Self { judge, process, uid })
    }

    /// Ends it, unless it has ended by itself. Gives how it has; `None`: it waits in a close.
    fn end(&mut self) -> Option<ExitStatus> {
        let mut process = self.process.take()?;
        let _ = process.kill();
        let begun = Instant::now();
        while begun.elapsed() < BREATH {
            match process.try_wait() {
                Ok(None) => sleep(Duration::from_millis(1)),
                ended => return ended.ok().flatten(),
            }
        }
        let (uid, pid) = (self.uid, process.id());
        complain(|| {
            tracing::warn!("process {pid} cannot end: a descriptor of user {uid} does not");
        });
        left().users.push((uid, process));
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A connection that its user's judge holds, too. It is dropped after the daemon's descriptors of that connection.
pub(super) struct Held {
    judging: Arc<Judging>,
    number: u64,
}

impl Held {
    /// Has a connection of a user held. `None`: nobody does, so nothing that comes with its messages can be received.
    pub(super) fn of(judging: &Arc<Judging>, uid: u32, socket: BorrowedFd<'_>) -> Option<Self> {
        let number = judging.state().hold(uid, socket).ok()?;
        Some(Self { judging: Arc::clone(judging), number })
    }

    /// What comes with the next message, which is gone then.
    ///
    /// Errors: [`ChannelError::Malformed`]: more than `most`; [`ChannelError::Unjudged`]: the message stays.
    pub(super) fn take(&self, most: usize) -> Result<Vec<Brought>, ChannelError> {
        self.judging.state().take(self.number, most)
    }

    /// What was taken is closed here, and is to be closed there.
    pub(super) fn close(&self) {
        if let Some(running) = &mut self.judging.state().running {
            running.judge.close(self.number);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(running) = &mut self.judging.state().running {
            running.judge.release(self.number);
        }
    }
}

#[cfg(test)]
mod tests;
