//! Threads that wait in the kernel before the process has a state: when another thread has made it, they look again.

use std::ffi::{c_char, c_int, c_long};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

use crate::kinds::{self, Kind};
use crate::{internal, real};

/// The process that has made the bell, and one more than its descriptor; 0: there is none.
static BELL: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    /// Not 0: there is no other thread (`sys/single_threaded.h`). The C library writes it.
    static mut __libc_single_threaded: c_char;
}

/// Whether the process has other threads, any of which may make its state.
pub(crate) fn may_come() -> bool {
    // SAFETY: a byte of the C library's, which it writes when there is one thread.
    unsafe { (&raw const __libc_single_threaded).read_volatile() == 0 }
}

/// Readable from when the process has a state on; made if there is none yet. Whoever has it looks for a state before it waits.
/// `None`: no descriptor is left.
pub(crate) fn bell() -> Option<c_int> {
    let known = BELL.load(Ordering::Acquire);
    let bell = of_this_process(known).or_else(|| {
        let file = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok()?;
        let fd = internal::raise(file).into_raw_fd();
        kinds::set(fd, Kind::Internal);
        let new = u64::from(process()) << 32 | u64::from(fd.unsigned_abs() + 1);
        match BELL.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(fd),
            Err(faster) => {
                internal::close(fd);
                of_this_process(faster)
            }
        }
    });
    // Either the state is seen after this, or the bell is seen by `ring`.
    fence(Ordering::SeqCst);
    bell
}

/// The process has a state, from now on.
pub(crate) fn ring() {
    fence(Ordering::SeqCst);
    let Some(bell) = of_this_process(BELL.load(Ordering::Acquire)) else { return };
    let one = 1_u64.to_ne_bytes();
    let (bytes, length) = ((&raw const one) as c_long, one.len() as c_long);
    // By number: no thread is cancelled here.
    // SAFETY: so many bytes.
    unsafe { real::syscall(libc::SYS_write, bell.into(), bytes, length, 0, 0, 0) };
}

fn process() -> u32 {
    // SAFETY: no memory is involved.
    unsafe { libc::getpid() }.unsigned_abs()
}

/// The bell, unless it is that of the process that has forked this one, which would hear it too.
fn of_this_process(word: u64) -> Option<c_int> {
    let place = (word as u32).checked_sub(1)?;
    (word >> 32 == u64::from(process())).then_some(place as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_of_another_process_is_none() {
        let own = u64::from(process()) << 32;
        assert_eq!(of_this_process(0), None);
        assert_eq!(of_this_process(own), None);
        assert_eq!(of_this_process(own | 8), Some(7));
        assert_eq!(of_this_process((own + (1 << 32)) | 8), None);
    }
}
