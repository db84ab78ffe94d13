//! Memory counts for its user until nobody holds it any more: neither a file of it nor a mapping, in whatever process.
//!
//! A file without a name goes when the last to hold it lets it go, and with it a watch (inotify) that was set on it. Nothing else
//! says so much: a lease (`F_SETLEASE`) is given while somebody has the file open with `O_PATH`. To set a watch, the kernel takes no
//! lock that others could hold for long.

use std::collections::{HashMap, HashSet};
use std::fs::read_to_string;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use shm::attach::Refusal;

use super::asks::Control;
use super::bounds::UserBound;
use super::refusal::no_resources;

/// Bytes of events that are read at once.
const EVENTS: usize = 4096;

/// Watches of a user, if the kernel does not say how many: its least number.
const WATCHES: usize = 8192;

/// What users' memory comes to: the control thread's.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Each debit has its account, and one of `all`.
    accounts: HashMap<[u32; 2], Arc<AtomicUsize>>,
    all: Arc<()>,
    /// Pieces of memory at once, an eighth of which only root can have.
    most: usize,
}

/// How much memory may count for a user: as its section of the configuration says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryBound {
    pub(crate) section: &'static str,
    pub(crate) mebibytes: u32,
    /// In so many pieces: who keeps more than it can have open keeps some that it has closed.
    pub(crate) pieces: usize,
}

/// Bytes on an account, until it is dropped.
#[derive(Debug)]
pub(crate) struct Debit {
    account: Arc<AtomicUsize>,
    bytes: usize,
    _piece: Arc<()>,
}

impl Default for Accounts {
    /// The daemon takes a quarter of the watches that its user may have for each of its two sockets.
    fn default() -> Self {
        let watches = read_to_string("/proc/sys/fs/inotify/max_user_watches");
        let watches = watches.ok().and_then(|number| number.trim().parse().ok());
        Self::with(watches.unwrap_or(WATCHES) / 4)
    }
}

impl Accounts {
    fn with(most: usize) -> Self {
        Self { accounts: HashMap::new(), all: Arc::new(()), most }
    }

    /// Bytes and pieces that count for two users together; for one alone, who is named twice.
    fn of(&self, users: [u32; 2]) -> (usize, usize) {
        let account = self.accounts.get(&sorted(users));
        account.map_or((0, 0), |account| {
            (account.load(Ordering::Relaxed), Arc::strong_count(account) - 1)
        })
    }

    /// Whether so many bytes more may count for them.
    ///
    /// Errors: what the process is told.
    pub(crate) fn check(
        &self,
        users: [u32; 2],
        bytes: usize,
        bound: MemoryBound,
    ) -> Result<(), Refusal> {
        let MemoryBound { section, mebibytes, pieces } = bound;
        let (uid, (has, held)) = (users[0], self.of(users));
        UserBound::memory(has, bytes, mebibytes).check(section, uid)?;
        if held >= pieces {
            return Err(no_resources(format!(
                "processes of user {uid} hold {held} pieces of memory; have those end that keep \
                 what they have closed"
            )));
        }
        let kept = if users == [0; 2] { 0 } else { self.most / 8 };
        let all = Arc::strong_count(&self.all) - 1;
        if all >= self.most - kept {
            return Err(no_resources(format!(
                "{section} of all users hold {all} pieces of memory; raise \
                 fs.inotify.max_user_watches and restart the daemon"
            )));
        }
        Ok(())
    }

    /// Has them count, if they may.
    ///
    /// Errors: what the process is told.
    pub(crate) fn charge(
        &mut self,
        users: [u32; 2],
        bytes: usize,
        bound: MemoryBound,
    ) -> Result<Debit, Refusal> {
        self.check(users, bytes, bound)?;
        self.accounts.retain(|_, account| Arc::strong_count(account) > 1);
        let account = Arc::clone(self.accounts.entry(sorted(users)).or_default());
        account.fetch_add(bytes, Ordering::Relaxed);
        Ok(Debit { account, bytes, _piece: Arc::clone(&self.all) })
    }
}

fn sorted(mut users: [u32; 2]) -> [u32; 2] {
    users.sort_unstable();
    users
}

impl Debit {
    /// How many.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// As many more: what is there already counts, whatever the bound.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.account.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }
}

impl Drop for Debit {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Tells when nobody holds memory any more. All users' threads, at both sockets, share it: how many of its kind there may be on a
/// machine is little.
pub(crate) struct Holders {
    held: Mutex<Held>,
    make: fn() -> io::Result<OwnedFd>,
}

#[derive(Default)]
struct Held {
    /// Where there is none, none could be made yet.
    watches: Option<OwnedFd>,
    /// By watch.
    debits: HashMap<i32, Debit>,
    /// The kernel had no room for some event.
    missed: bool,
}

impl Holders {
    /// Of no memory yet. Where the user that the daemon runs as has too many of its kind, processes are refused memory until it has
    /// fewer: what they have closed and keep would not count.
    pub(crate) fn new() -> Self {
        Self::with(|| {
            let watches = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
            watches.map_err(|error| {
                io::Error::other(format!("inotify: {error}; raise fs.inotify.max_user_instances"))
            })
        })
    }

    fn with(make: fn() -> io::Result<OwnedFd>) -> Self {
        let warn = |error: &io::Error| {
            tracing::warn!("processes can attach and have stacks when this is mended: {error}");
        };
        let held = Held { watches: make().inspect_err(warn).ok(), ..Held::default() };
        Self { held: Mutex::new(held), make }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has memory count until nobody holds it any more. To be called once, before it is handed out.
    ///
    /// Errors: too many watches, no `/proc`, or still too many of its kind.
    pub(crate) fn watch(&self, file: impl AsFd, debit: Debit) -> Result<(), Refusal> {
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let mut held = self.held();
        let watches = match held.watches.take() {
            Some(watches) => watches,
            None => (self.make)()
                .map_err(|error| no_resources(format!("memory can't be watched: {error}")))?,
        };
        let watch = inotify::add_watch(&watches, path, WatchFlags::DELETE_SELF);
        held.watches = Some(watches);
        let watch = watch.map_err(|error| {
            no_resources(format!(
                "memory can't be watched: {error}; the daemon needs /proc and enough \
                 fs.inotify.max_user_watches"
            ))
        })?;
        held.debits.insert(watch, debit);
        Ok(())
    }

    /// Has something charged on the control thread, where what nobody holds any more counts no longer. `None`: the daemon ends.
    pub(crate) async fn charge<D: 'static, R: Send + 'static>(
        &self,
        control: &Control<D>,
        act: impl FnOnce(&mut D) -> R + Send + 'static,
    ) -> Option<R> {
        self.settle();
        control.ask(act).await
    }

    /// Takes what nobody holds any more off the accounts.
    pub(crate) fn settle(&self) {
        let mut held = self.held();
        let Held { watches: Some(watches), debits, missed } = &mut *held else { return };
        let mut space = [MaybeUninit::<u8>::uninit(); EVENTS];
        let mut events = Reader::new(&*watches, &mut space);
        // A watch has two events, and none is set meanwhile.
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                *missed = true;
            }
            if event.events().contains(ReadFlags::IGNORED) {
                debits.remove(&event.wd());
            }
        }
        if let Some(there) = missed.then(|| listed(watches).ok()).flatten() {
            *missed = false;
            debits.retain(|watch, _| there.contains(watch));
        }
    }
}

/// The watches that there are.
fn listed(watches: &OwnedFd) -> io::Result<HashSet<i32>> {
    let path = format!("/proc/self/fdinfo/{}", watches.as_raw_fd());
    let text = read_to_string(path)?;
    let listed = text.lines().filter_map(|line| {
        let number = line.strip_prefix("inotify wd:")?.split(' ').next()?;
        i32::from_str_radix(number, 16).ok()
    });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests;
