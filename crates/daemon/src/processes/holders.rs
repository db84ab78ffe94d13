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
mod tests {
    use super::*;

    use std::sync::atomic::AtomicBool;
    use std::thread::sleep;
    use std::time::Duration;

    use rustix::fs::{Mode, OFlags, open};
    use shm::Segment;

    const BYTES: usize = 1 << 16;
    const BOUND: MemoryBound = MemoryBound { section: "test", mebibytes: 2, pieces: 20 };

    impl Accounts {
        fn bytes(&self, uid: u32) -> usize {
            self.of([uid; 2]).0
        }
    }

    /// How a process can hold memory.
    type Hold = fn(&Segment) -> Box<dyn Send>;

    /// Memory of a user.
    fn made(holders: &Holders, accounts: &mut Accounts, uid: u32) -> Segment {
        let segment = Segment::create("held", BYTES).unwrap();
        holders.watch(&segment, accounts.charge([uid; 2], BYTES, BOUND).unwrap()).unwrap();
        segment
    }

    fn reopened(segment: &Segment, flags: OFlags) -> OwnedFd {
        let path = format!("/proc/self/fd/{}", segment.as_fd().as_raw_fd());
        open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    /// Soon: a process that another test starts has all files for a moment.
    fn comes(mut holds: impl FnMut() -> bool) -> bool {
        (0..500).any(|_| {
            let there = holds();
            if !there {
                sleep(Duration::from_millis(10));
            }
            there
        })
    }

    #[test]
    fn memory_counts_until_nobody_holds_it() {
        let (holders, mut accounts) = (Holders::new(), Accounts::default());
        let ways: [Hold; 5] = [
            |segment| Box::new(segment.as_fd().try_clone_to_owned().unwrap()),
            |segment| Box::new(reopened(segment, OFlags::RDWR)),
            |segment| Box::new(reopened(segment, OFlags::RDONLY)),
            |segment| Box::new(reopened(segment, OFlags::PATH)),
            |segment| Box::new(Segment::from_file(reopened(segment, OFlags::RDWR)).unwrap()),
        ];
        for (way, hold) in ways.into_iter().enumerate() {
            let segment = made(&holders, &mut accounts, 7);
            let _other = made(&holders, &mut accounts, 8);
            let held = hold(&segment);
            drop(segment);
            // Long enough for what another test has started.
            sleep(Duration::from_millis(50));
            holders.settle();
            assert_eq!(accounts.bytes(7), BYTES, "way {way}");
            drop(held);
            let gone = comes(|| {
                holders.settle();
                accounts.bytes(7) == 0
            });
            assert!(gone && accounts.bytes(8) >= BYTES, "way {way}");
        }
        let gone = comes(|| {
            holders.settle();
            accounts.bytes(8) == 0
        });
        assert!(gone && holders.held().debits.is_empty());
    }

    #[test]
    fn nothing_counts_for_ever_when_events_were_lost() {
        let (holders, mut accounts) = (Holders::new(), Accounts::default());
        // Watches are listed in hexadecimal.
        let mut all: Vec<_> = (0..20).map(|_| made(&holders, &mut accounts, 7)).collect();
        all.truncate(17);
        let watches = holders.held().watches.as_ref().unwrap().try_clone().unwrap();
        assert!(comes(|| listed(&watches).unwrap().len() == 17));
        let mut space = [MaybeUninit::<u8>::uninit(); EVENTS];
        while rustix::io::read(&watches, &mut space).is_ok() {}
        holders.settle();
        assert_eq!(accounts.bytes(7), 20 * BYTES, "nobody has told");
        holders.held().missed = true;
        holders.settle();
        assert_eq!(accounts.bytes(7), 17 * BYTES);
        assert!(!holders.held().missed);
    }

    #[test]
    fn memory_that_cannot_be_watched_is_refused_until_it_can() {
        static TOO_MANY: AtomicBool = AtomicBool::new(true);
        fn make() -> io::Result<OwnedFd> {
            if TOO_MANY.load(Ordering::SeqCst) {
                return Err(io::Error::other("too many"));
            }
            Ok(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?)
        }
        let (holders, mut accounts) = (Holders::with(make), Accounts::default());
        let segment = Segment::create("unwatched", BYTES).unwrap();
        let debit = accounts.charge([7; 2], BYTES, BOUND).unwrap();
        let refusal = holders.watch(&segment, debit).unwrap_err();
        assert!(refusal.message.contains("can't be watched: too many"), "{refusal}");
        holders.settle();
        assert_eq!(accounts.bytes(7), 0, "who gets none owes nothing");
        TOO_MANY.store(false, Ordering::SeqCst);
        let _segment = made(&holders, &mut accounts, 7);
        assert_eq!(accounts.bytes(7), BYTES);
    }

    #[test]
    fn two_users_have_one_account_beside_their_own() {
        let mut accounts = Accounts::with(100);
        let own = accounts.charge([7; 2], 1, BOUND).unwrap();
        let both = [(); 2].map(|()| accounts.charge([8, 7], 1 << 20, BOUND).unwrap());
        let all = [[7, 7], [7, 8], [8, 7], [8, 8]].map(|users| accounts.of(users));
        assert_eq!(all, [(1, 1), (2 << 20, 2), (2 << 20, 2), (0, 0)]);
        let refusal = accounts.charge([7, 8], 1, BOUND).unwrap_err();
        assert!(refusal.message.contains("test.memory allows one user 2"), "{refusal}");
        assert!(accounts.check([7; 2], 1 << 20, BOUND).is_ok(), "what both have is not its own");
        drop((own, both));
        let last = accounts.charge([9; 2], 3, BOUND).unwrap();
        assert_eq!((accounts.of([7, 8]), accounts.accounts.len()), ((0, 0), 1), "forgotten");
        assert_eq!((accounts.bytes(9), last.bytes()), (3, 3));
    }

    #[test]
    fn pieces_are_bounded_and_some_are_roots() {
        let mut accounts = Accounts::with(32);
        let mut all: Vec<_> = (0..20).map(|_| accounts.charge([7; 2], 1, BOUND).unwrap()).collect();
        let refusal = accounts.charge([7; 2], 1, BOUND).unwrap_err();
        assert!(refusal.message.contains("user 7 hold 20 pieces"), "{refusal}");
        all.extend((0..8).map(|_| accounts.charge([8; 2], 1, BOUND).unwrap()));
        let refusal = accounts.charge([9; 2], 1, BOUND).unwrap_err();
        assert!(refusal.message.contains("all users hold 28 pieces"), "{refusal}");
        all.extend((0..4).map(|_| accounts.charge([0; 2], 1, BOUND).unwrap()));
        assert!(accounts.check([0; 2], 1, BOUND).is_err());
        all.remove(0);
        assert!(accounts.check([0; 2], 1, BOUND).is_ok());
    }
}
