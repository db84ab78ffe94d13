//! The application's signal handlers: none runs while its thread has the state, and calls know which ones ran meanwhile.
//!
//! A handler may call `send` or `close`, and may leave by `siglongjmp`. If it interrupted its own thread in the stack, the
//! first would wait for ever for what this thread has, and the second would leave it half done. So handlers are
//! called by [`arrived`]. It puts off what comes at such a moment, with everything behind it, until the thread lets
//! go of the state; then the kernel delivers the same signal again.

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use libc::{siginfo_t, ucontext_t};

use crate::{errno, real};

/// Signals are numbered from 1 to 64 (`_NSIG`).
const MOST: usize = 65;
/// Bytes of the kernel's set of signals.
const SET: c_long = 8;

/// What the application wants done.
struct Action {
    handler: AtomicUsize,
    flags: AtomicI32,
}

static ACTIONS: [Action; MOST] =
    [const { Action { handler: AtomicUsize::new(0), flags: AtomicI32::new(0) } }; MOST];

/// A thread's signals. Its handlers interrupt it anywhere: single words only, in the order that the fences say.
struct Thread {
    /// How often it has the state, or is about to.
    holds: AtomicU32,
    /// A signal was put off.
    waits: AtomicBool,
    signal: Cell<c_int>,
    info: Cell<MaybeUninit<siginfo_t>>,
    /// The signals that were blocked before.
    mask: Cell<u64>,
    /// Handlers that ran.
    came: AtomicU32,
    /// Of those, one ran that ends calls.
    ended: AtomicBool,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            holds: AtomicU32::new(0),
            waits: AtomicBool::new(false),
            signal: Cell::new(0),
            info: Cell::new(MaybeUninit::uninit()),
            mask: Cell::new(0),
            came: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        }
    };
}

/// As long as it lives, no handler runs in this thread.
#[derive(Debug)]
pub(crate) struct Quiet(());

impl Quiet {
    pub(crate) fn new() -> Self {
        THREAD.with(|thread| {
            let holds = thread.holds.load(Ordering::Relaxed);
            thread.holds.store(holds + 1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
        });
        Self(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        THREAD.with(|thread| {
            compiler_fence(Ordering::SeqCst);
            let holds = thread.holds.load(Ordering::Relaxed) - 1;
            thread.holds.store(holds, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            if holds == 0 && thread.waits.load(Ordering::Relaxed) {
                thread.deliver();
            }
        });
    }
}

impl Thread {
    /// Puts a signal off: it and all others are blocked when its handler returns.
    fn put_off(&self, signal: c_int, info: *const siginfo_t, context: *mut ucontext_t) {
        // SAFETY: the kernel hands a handler both, valid until it returns; what is blocked then, `uc_sigmask` says, of which the
        // kernel has a word only.
        let before = unsafe {
            let blocked = (&raw mut (*context).uc_sigmask).cast::<u64>();
            let before = blocked.read_unaligned();
            blocked.write_unaligned(u64::MAX);
            before
        };
        // One step: another signal may have come, or come now, whose handler has not returned.
        let is_second = self.waits.swap(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if is_second {
            // What was blocked before both is blocked in each.
            self.mask.set(self.mask.get() & before);
            let errno = errno::get();
            block(u64::MAX);
            // It waits in the kernel for `deliver`; where that has no room for it, it is lost, as any is that comes then.
            send_again(signal, info);
            errno::set(errno);
            return;
        }
        // SAFETY: as above.
        self.info.set(MaybeUninit::new(unsafe { info.read() }));
        self.mask.set(before);
        self.signal.set(signal);
    }

    /// Sends the signal that was put off again, and unblocks it.
    fn deliver(&self) {
        let before = errno::get();
        let (signal, mut info, mask) = (self.signal.get(), self.info.get(), self.mask.get());
        self.waits.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let is_sent = send_again(signal, info.as_ptr());
        block(mask);
        if !is_sent {
            // The process may not, or too many wait already.
            call_handler(signal, info.as_mut_ptr(), std::ptr::null_mut());
        }
        errno::set(before);
    }
}

/// Sends this thread a signal, with what the kernel has said of it. Gives whether it could.
fn send_again(signal: c_int, info: *const siginfo_t) -> bool {
    let (number, told, call) = (c_long::from(signal), info as c_long, libc::SYS_rt_tgsigqueueinfo);
    // SAFETY: the kernel reads what it has written itself.
    unsafe {
        let thread = real::syscall(libc::SYS_gettid, 0, 0, 0, 0, 0, 0);
        let process = c_long::from(libc::getpid());
        real::syscall(call, process, thread, number, told, 0, 0) == 0
    }
}

/// Sets which signals are blocked in this thread.
fn block(signals: u64) {
    let (how, set) = (c_long::from(libc::SIG_SETMASK), (&raw const signals) as c_long);
    // SAFETY: a set of signals of the kernel's size.
    unsafe { real::syscall(libc::SYS_rt_sigprocmask, how, set, 0, SET, 0, 0) };
}

/// What the kernel calls instead of the application's handlers.
extern "C" fn arrived(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let put_off = THREAD.with(|thread| {
        let busy = thread.holds.load(Ordering::Relaxed) > 0;
        if busy {
            thread.put_off(signal, info, context.cast());
        }
        busy
    });
    if !put_off {
        call_handler(signal, info, context);
    }
}

/// Calls the application's handler, which may not return.
fn call_handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(action) = ACTIONS.get(signal.unsigned_abs() as usize) else { return };
    let flags = action.flags.load(Ordering::Relaxed);
    if flags & libc::SA_RESETHAND != 0 {
        // SAFETY: room for an action, for which all zeros are one too.
        unsafe {
            let mut once = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            real::sigaction(signal, std::ptr::null(), &raw mut once);
            (once.sa_sigaction, once.sa_flags) = (libc::SIG_DFL, flags);
            real::sigaction(signal, &raw const once, std::ptr::null_mut());
        }
    }
    THREAD.with(|thread| {
        let came = thread.came.load(Ordering::Relaxed);
        thread.came.store(came.wrapping_add(1), Ordering::Relaxed);
    });
    // One that ends its thread (`pthread_exit`) unwinds.
    type Handler = extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);
    let handler = action.handler.load(Ordering::Relaxed);
    // SAFETY: the application's own function, stored by `set`; one that takes the number only ignores the rest.
    let handler = unsafe { std::mem::transmute::<usize, Option<Handler>>(handler) };
    if let Some(handler) = handler {
        handler(signal, info, context);
    }
    if flags & libc::SA_RESTART == 0 {
        THREAD.with(|thread| thread.ended.store(true, Ordering::Relaxed));
    }
}

/// Whether handlers of a signal are called by [`arrived`]: not of those that a thread causes by what it does, for which
/// there is no later.
fn may_wait(signal: c_int) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    (1..MOST as c_int).contains(&signal)
        && !matches!(signal, SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP)
}

/// `sigaction(2)`: sets what the application wants done, and gives what it wanted before.
///
/// # Safety
/// As `sigaction`.
pub(crate) unsafe fn set(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some(action) = ACTIONS.get(signal.unsigned_abs() as usize).filter(|_| may_wait(signal))
    else {
        // SAFETY: the caller's promise.
        return unsafe { real::sigaction(signal, new, old) };
    };
    let before = (action.handler.load(Ordering::Relaxed), action.flags.load(Ordering::Relaxed));
    // SAFETY: null, or an action as the application says.
    let wanted = unsafe { new.as_ref() };
    // An application that was told of it by a call that this library does not know puts it back.
    let known = [libc::SIG_DFL, libc::SIG_IGN, arrived as *const () as usize];
    let handled = wanted.filter(|new| !known.contains(&new.sa_sigaction));
    let ours = handled.map(|new| {
        // A signal that comes in between finds the new handler.
        action.flags.store(new.sa_flags, Ordering::Relaxed);
        action.handler.store(new.sa_sigaction, Ordering::Relaxed);
        let sa_flags = new.sa_flags & !libc::SA_RESETHAND | libc::SA_SIGINFO;
        libc::sigaction { sa_sigaction: arrived as *const () as usize, sa_flags, ..*new }
    });
    let given = ours.as_ref().map_or(new, std::ptr::from_ref);
    // SAFETY: the caller's promise, or the action just made.
    let done = unsafe { real::sigaction(signal, given, old) };
    if done != 0 {
        action.flags.store(before.1, Ordering::Relaxed);
        action.handler.store(before.0, Ordering::Relaxed);
        return done;
    }
    // SAFETY: null, or room for an action, which the kernel has filled.
    if let Some(old) = unsafe { old.as_mut() } {
        if old.sa_sigaction == arrived as *const () as usize {
            (old.sa_sigaction, old.sa_flags) = before;
        }
    }
    done
}

/// Handlers that ran in this thread so far. From here on, [`restart`] looks at those that run.
pub(crate) fn so_far() -> u32 {
    THREAD.with(|thread| {
        thread.ended.store(false, Ordering::Relaxed);
        thread.came.load(Ordering::Relaxed)
    })
}

/// Whether one more has run.
pub(crate) fn came_since(before: u32) -> bool {
    THREAD.with(|thread| thread.came.load(Ordering::Relaxed) != before)
}

/// Whether a call that a signal has ended begins again (`SA_RESTART`): unless a handler ran that ends calls.
pub(crate) fn restart() -> bool {
    THREAD.with(|thread| !thread.ended.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals whose handler ran, a bit each.
    static SEEN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn note(signal: c_int) {
        SEEN.fetch_or(1 << signal, Ordering::Relaxed);
    }

    #[test]
    fn of_two_signals_that_come_at_once_none_is_lost() {
        let both = [libc::SIGUSR1, libc::SIGUSR2];
        // SAFETY: all zeros are an action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as *const () as usize;
        for signal in both {
            // SAFETY: an action.
            assert_eq!(unsafe { set(signal, &raw const action, std::ptr::null_mut()) }, 0);
        }
        let quiet = Quiet::new();
        for signal in both {
            // SAFETY: all zeros are what the kernel may say of a signal, and a context in which nothing is blocked.
            let (mut info, mut context) = unsafe { std::mem::zeroed::<(siginfo_t, ucontext_t)>() };
            arrived(signal, &raw mut info, (&raw mut context).cast());
        }
        assert_eq!(SEEN.load(Ordering::Relaxed), 0, "the state is held");
        drop(quiet);
        let expected: u32 = both.map(|signal| 1_u32 << signal).iter().sum();
        assert_eq!(SEEN.load(Ordering::Relaxed), expected);
    }
}
