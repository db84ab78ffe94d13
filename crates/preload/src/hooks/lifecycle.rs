//! Forking, another root, and ending.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use libc::pid_t;

use super::{descriptors, stdio};
use crate::clock::{self, Alarm};
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::real;
use crate::sleeping::wait_for;

/// How long a process that ends stays for what it has sent to be acknowledged, where the daemon does not take that over: ns.
const FAREWELL: u64 = 1_000_000_000;
/// How often a process that ends tries to have the lock, and the time between two attempts.
const LOOKS: usize = 20;
const BREATH: Duration = Duration::from_millis(1);

/// `fork(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> pid_t {
    stand_by();
    // SAFETY: the caller's promise.
    unsafe { fork_sharing() }
}

/// What has inherited listeners and forks keeps them open for its children, as NGINX's master does when it has become a daemon
/// or the upgrade of another: connections that come while there are none of them wait here.
fn stand_by() {
    let listeners = || kinds::all().filter(|(_, kind)| *kind == Kind::Listener).map(|(fd, _)| fd);
    if listeners().next().is_none() {
        return;
    }
    let Some(shared) = process::attached() else { return };
    let mut state = shared.lock();
    for fd in listeners() {
        // Where the stack can't, the kernel listens nevertheless.
        let _ = state.adopt(fd);
    }
}

/// # Safety
/// As for `fork`.
unsafe fn fork_sharing() -> pid_t {
    share();
    // SAFETY: the caller's promise.
    let child = unsafe { real::fork() };
    if child == 0 {
        // The parent's files are closed before the child has a second thread, which may make files of its own.
        let _ = process::current();
    }
    if child > 0 {
        if let Some(shared) = process::current() {
            let mut state = shared.lock();
            state.forked = Some(clock::now());
            state.rest_or_work();
        }
    }
    child
}

/// The child will have this process's sessions too.
pub(super) fn share() {
    kinds::touch_all();
    if let Some(shared) = process::current() {
        shared.lock().carry_all();
    }
}

/// `vfork(2)`: as `fork`. A child that shares its parent's memory would close its parent's sessions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    // SAFETY: the child may do all that a child of `vfork` may, and more.
    unsafe { fork_sharing() }
}

/// `clone(2)`, by the C library's function for it: as `vfork`, where the child would have its parent's memory until that goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    function: *const c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut pid_t,
    thread: *mut c_void,
    child: *mut pid_t,
) -> c_int {
    let flags = without_memory(flags);
    if flags & libc::CLONE_VM == 0 {
        share();
    }
    // SAFETY: the caller's promise; a child that has a copy of the memory may do all that one may that shares it, and more.
    unsafe { real::clone(function, stack, flags, argument, parent, thread, child) }
}

/// The flags of `clone`, without the one by which a process that its parent waits for shares its memory.
fn without_memory(flags: c_int) -> c_int {
    let waits = flags & libc::CLONE_VFORK != 0 && flags & libc::CLONE_SIGHAND == 0;
    if waits { flags & !libc::CLONE_VM } else { flags }
}

/// `daemon(3)`: the C library's forks without calling a public function, so the child would not have this process's
/// connections, and this process would end without leaving them to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daemon(keeps_folder: c_int, keeps_streams: c_int) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { fork() } {
        0 => {}
        child if child < 0 => return -1,
        // SAFETY: as above.
        _ => unsafe { _exit(0) },
    }
    // SAFETY: strings that end with zero.
    unsafe {
        if libc::setsid() < 0 {
            return -1;
        }
        if keeps_folder == 0 {
            libc::chdir(c"/".as_ptr());
        }
        if keeps_streams != 0 {
            return 0;
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null < 0 {
            return -1;
        }
        for stream in libc::STDIN_FILENO..=libc::STDERR_FILENO {
            descriptors::dup2(null, stream);
        }
        if null > libc::STDERR_FILENO {
            descriptors::close(null);
        }
    }
    0
}

/// `chroot(2)`: the daemon's socket is out of reach from there. So the process meets the daemon before, if it has not yet, as a
/// worker that HAProxy has forked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    let _ = process::attached();
    // SAFETY: the caller's promise.
    unsafe { real::chroot(path) }
}

/// Run when the process ends by `exit`, or by returning from `main`.
extern "C" fn end() {
    stdio::flush_all();
    farewell();
}

fn farewell() {
    let Some(shared) = process::current() else { return };
    let Some(mut state) = last_lock(shared) else { return };
    if state.leave() {
        return;
    }
    // The daemon does not go on with it: the process stays for a moment.
    let waiter = state.waiters.take();
    let files = (&mut Vec::new(), std::ptr::null());
    let alarm = Alarm::after(FAREWELL);
    let (state, _) =
        wait_for(shared, state, waiter, files, alarm, |state| state.sessions.is_drained());
    drop(state);
}

/// `None`: a thread that is no more may have had the lock, or this one, in a signal's handler.
fn last_lock(shared: &Shared) -> Option<Held<'_>> {
    for _ in 0..LOOKS {
        if let Some(state) = shared.try_lock() {
            return Some(state);
        }
        std::thread::sleep(BREATH);
    }
    shared.try_lock()
}

/// `_exit(2)`: what ends without its functions for that ends orderly nevertheless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    farewell();
    // SAFETY: the caller's promise.
    unsafe { real::_exit(status) };
    std::process::abort()
}

/// `_Exit(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller's promise.
    unsafe { _exit(status) }
}

/// Called by the loader when the process ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static END_HOOK: extern "C" fn() = end;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_waited_for_has_memory_of_its_own() {
        use libc::{CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD, CLONE_VFORK, CLONE_VM, SIGCHLD};
        assert_eq!(without_memory(CLONE_VM | CLONE_VFORK | SIGCHLD), CLONE_VFORK | SIGCHLD);
        for kept in [CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FILES, CLONE_VM, SIGCHLD] {
            assert_eq!(without_memory(kept), kept);
        }
    }
}
