//! The caretaker: a thread that minds the stack while the application does something else.
//!
//! The application's own threads run the stack in their socket calls, and it takes no part in that. But peers do not know
//! that a program computes, or waits for a file: their connections must be answered, what was sent must be sent again.
//! The caretaker looks a few times a second whether anybody has run the stack since its last look, and only if
//! nobody has and nobody sleeps in a call that would, it runs the stack itself.

use std::thread;
use std::time::Duration;

use crate::report;

/// Between two looks while threads of the application are busy: about the time after which a peer's first
/// delayed acknowledgment would come.
const BUSY: Duration = Duration::from_millis(10);
/// The same while one of them sleeps in a socket call, from which packets and timers wake it.
const ASLEEP: Duration = Duration::from_millis(100);
/// Bytes of its call stack.
const STACK: usize = 256 << 10;

/// What a look finds.
pub(crate) enum Look {
    /// A thread of the application sleeps where packets wake it.
    Asleep,
    /// None does.
    Busy,
}

/// Whether the application has a single thread, beside which there is this one.
pub(crate) fn minds_one_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() <= 2)
}

/// Starts it. It ends with the process.
pub(crate) fn start(mut look: impl FnMut() -> Look + Send + 'static) {
    // Signals are the application's: its handlers run in its own threads.
    // SAFETY: room for two sets, which the calls fill.
    let before = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let thread = thread::Builder::new().name("millrace".into()).stack_size(STACK);
    let mind = move || {
        loop {
            thread::sleep(match look() {
                Look::Asleep => ASLEEP,
                Look::Busy => BUSY,
            });
        }
    };
    if let Err(error) = thread.spawn(mind) {
        report::say(&format!("no thread to mind the stack: {error}"));
    }
    // SAFETY: the set that the first call has filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
}
