//! The process's state: made when it is first needed; made anew in a forked child, whose parent keeps all that it had.

use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use host::Errno;
use shm::Process;

use crate::caretaker::{self, Look};
use crate::kinds::{self, Kind};
use crate::signals::Quiet;
use crate::state::State;
use crate::{address, arrival, errno, internal, report};

/// After an attempt to reach the daemon that failed: seconds until the next.
const PATIENCE: u64 = 1;

/// The state, and whose it is.
pub(crate) struct Shared {
    process: Process,
    state: Mutex<State>,
    /// A thread takes a connection of the kernel's.
    accepting: Mutex<()>,
    /// A thread has changed a socket, or the daemon has heard what it had to tell of one.
    changed: Condvar,
}

/// The turn of this thread among those that accept; until it is over no handler of a signal runs in it.
pub(crate) struct Turn<'a> {
    // Let go first.
    _turn: MutexGuard<'a, ()>,
    _quiet: Quiet,
}

/// The state, while this thread has it; until then no handler of a signal runs in it.
pub(crate) struct Held<'a> {
    // Let go first.
    state: MutexGuard<'a, State>,
    _quiet: Quiet,
}

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl<'a> Held<'a> {
    /// Others have the state while this thread waits; no handler of a signal runs in it meanwhile.
    pub(crate) fn lend<T>(self, shared: &'a Shared, wait: impl FnOnce() -> T) -> (Self, T) {
        let Self { state, _quiet } = self;
        drop(state);
        let waited = wait();
        let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        (Self { state, _quiet }, waited)
    }

    /// Tells the daemon which listeners serve from now on, and which rest, while others have the state.
    pub(crate) fn tell(mut self, shared: &'a Shared) -> Self {
        while let Some(telling) = self.begin_telling() {
            let (mut after, answer) = self.lend(shared, || telling.tell());
            if after.end_telling(&telling, answer) {
                shared.tell_others();
            }
            self = after;
        }
        self
    }

    /// Others have the state until no thread changes the socket at `fd`, or tells the daemon of it, any more.
    pub(crate) fn await_others(mut self, shared: &'a Shared, fd: c_int) -> Self {
        while self.is_changing(fd) {
            self.changing.followers += 1;
            let Self { state, _quiet } = self;
            let state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            self = Self { state, _quiet };
            self.changing.followers -= 1;
        }
        self
    }
}

static CURRENT: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());
/// When the daemon is looked for again: seconds since 1970.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Shared {
    pub(crate) fn lock(&self) -> Held<'_> {
        let quiet = Quiet::new();
        Held { state: self.state.lock().unwrap_or_else(PoisonError::into_inner), _quiet: quiet }
    }

    /// `None`: another thread has it, or this one.
    pub(crate) fn try_lock(&self) -> Option<Held<'_>> {
        let quiet = Quiet::new();
        Some(Held { state: self.state.try_lock().ok()?, _quiet: quiet })
    }

    /// Threads wait that want something of a socket, which is not changed any more.
    pub(crate) fn tell_others(&self) {
        self.changed.notify_all();
    }

    /// `None`: it is another thread's.
    pub(crate) fn turn_to_accept(&self) -> Option<Turn<'_>> {
        let quiet = Quiet::new();
        Some(Turn { _turn: self.accepting.try_lock().ok()?, _quiet: quiet })
    }
}

impl Shared {
    /// Runs the stack if nobody has since the last look. `seen`: how often it had been run then.
    fn mind(&self, seen: &mut u64) -> Look {
        // Who has the lock runs the stack.
        let Some(mut state) = self.try_lock() else { return Look::Busy };
        state.show_changes();
        state.look_for_neglect();
        state = state.tell(self);
        if state.forked.is_some() {
            state.rest_or_work();
            state.end_lingering();
        }
        if state.waiters.sleepers > 0 {
            state.heed_heard();
            return Look::Asleep;
        }
        state.heed();
        state.heed_links();
        if state.rounds == *seen {
            state.run();
        }
        *seen = state.rounds;
        Look::Busy
    }
}

/// This process's state. `None`: it has none, or not yet.
#[inline]
pub(crate) fn current() -> Option<&'static Shared> {
    // SAFETY: null, or what was leaked by `attached`, which nobody ever frees, not even a forked child.
    let shared = unsafe { CURRENT.load(Ordering::Acquire).as_ref() }?;
    if shared.process.is_current() {
        return Some(shared);
    }
    leave_to_parent(shared);
    None
}

/// Whether the application has `fd`, as far as this library knows.
#[inline]
pub(crate) fn is_open(fd: c_int) -> bool {
    !matches!(known(fd), Kind::Spare | Kind::Internal)
}

/// What a call about a descriptor that the application does not have returns; `None`: it has it.
#[inline]
pub(crate) fn refuse(fd: c_int) -> Option<c_int> {
    if is_open(fd) {
        return None;
    }
    errno::set(Errno::BADF);
    Some(-1)
}

/// The same, made if there is none. `None`: there is no daemon, or it refuses; the kernel serves then.
pub(crate) fn attached() -> Option<&'static Shared> {
    if let Some(shared) = current() {
        return Some(shared);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if now < NEXT.load(Ordering::Relaxed) {
        return None;
    }
    match State::attach() {
        Ok(state) => {
            let (process, state) = (Process::current(), Mutex::new(state));
            let (accepting, changed) = (Mutex::default(), Condvar::new());
            let fresh = Shared { process, state, accepting, changed };
            let fresh = Box::into_raw(Box::new(fresh));
            let null = std::ptr::null_mut();
            match CURRENT.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: just leaked, and lives as long as the process.
                    let shared = unsafe { fresh.as_ref() };
                    arrival::ring();
                    if let Some(shared) = shared {
                        let mut seen = 0;
                        caretaker::start(move || shared.mind(&mut seen));
                    }
                    shared
                }
                Err(faster) => {
                    // SAFETY: made above, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    // SAFETY: another thread's, which lives as long as the process.
                    unsafe { faster.as_ref() }
                }
            }
        }
        Err(error) => {
            NEXT.store(now + PATIENCE, Ordering::Relaxed);
            report::say(&error.to_string());
            None
        }
    }
}

/// In a forked child: everything of the parent's stays the parent's. Its state is never touched, nor freed: locks in it may
/// be held by threads that there are none of here, and its memory is not mapped.
#[cold]
fn leave_to_parent(shared: &'static Shared) {
    let old = std::ptr::from_ref(shared).cast_mut();
    let null = std::ptr::null_mut();
    if CURRENT.compare_exchange(old, null, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    NEXT.store(0, Ordering::Relaxed);
    for (fd, kind) in kinds::all() {
        match kind {
            Kind::Spare | Kind::Internal => {
                // This process's copy of a descriptor that only this library knows.
                internal::close(fd);
            }
            Kind::Session => {
                kinds::set(fd, Kind::Elsewhere);
            }
            _ => {}
        }
    }
}

/// Makes a file of the application's, at the lowest number that is free as the kernel sees it. Files of this library's own have such a
/// number for a moment, until they are moved up, while their thread has the state.
pub(crate) fn undisturbed(make: impl FnOnce() -> c_int) -> c_int {
    let state = current().map(Shared::lock);
    let made = make();
    let error = errno::get();
    drop(state);
    errno::set(error);
    made
}

/// What `fd` is, in this process: a fork may have changed it. A session that is elsewhere stays there.
#[inline]
pub(crate) fn known(fd: c_int) -> Kind {
    let kind = kinds::get(fd);
    if matches!(kind, Kind::Kernel | Kind::Fresh) {
        return kind;
    }
    // Looks whether this process still is the one.
    let _ = current();
    kinds::get(fd)
}

/// What `fd` is to a call that uses it: a session that is elsewhere is fetched. Not while the state is locked.
#[inline]
pub(crate) fn kind(fd: c_int) -> Kind {
    match known(fd) {
        Kind::Elsewhere => fetch(fd),
        kind => kind,
    }
}

#[cold]
fn fetch(fd: c_int) -> Kind {
    attached().map_or(Kind::Stale, |shared| shared.lock().fetch(fd))
}

/// Whether clients may come to a socket, which a process without a state has from its parent.
fn is_served(fd: c_int) -> bool {
    match kinds::get(fd) {
        Kind::Listener => true,
        Kind::Datagrams => address::bound(fd).is_ok_and(|at| at.is_some_and(|at| at.port() != 0)),
        _ => false,
    }
}

/// This process's state for a call about several descriptors: sessions among them that are elsewhere are fetched, and a process that
/// has none gets one if it waits where clients come.
pub(crate) fn for_files<I: Iterator<Item = c_int>>(
    files: impl Fn() -> I,
) -> Option<&'static Shared> {
    let shared = current().or_else(|| files().any(is_served).then(attached).flatten());
    if !kinds::any_elsewhere() {
        return shared;
    }
    files().filter(|fd| kinds::get(*fd) == Kind::Elsewhere).for_each(|fd| {
        fetch(fd);
    });
    current()
}
