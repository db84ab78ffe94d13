//! What a program has of others: of the one before it in this process sessions among its descriptors, and sockets; of other
//! processes what they pass on.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::kinds::{self, Kind};
use crate::state::{carried_by, word};

/// IP sockets that the program was started with or passed, of which no more is known yet: a bit for each of the lowest numbers.
static UNKNOWN: AtomicU64 = AtomicU64::new(0);

fn bit(fd: c_int) -> u64 {
    u32::try_from(fd).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
}

/// Whether there may be some yet.
#[inline]
pub(crate) fn has_unknown() -> bool {
    UNKNOWN.load(Ordering::Relaxed) != 0
}

/// Whether it is one of them; from now on it is none.
pub(crate) fn take_unknown(fd: c_int) -> bool {
    let bit = bit(fd);
    UNKNOWN.load(Ordering::Relaxed) & bit != 0
        && UNKNOWN.fetch_and(!bit, Ordering::Relaxed) & bit != 0
}

/// A descriptor of another's making: if it is of an IP socket, there may be more to know.
pub(crate) fn note(fd: c_int) {
    if matches!(domain(fd), Some(libc::AF_INET | libc::AF_INET6)) {
        UNKNOWN.fetch_or(bit(fd), Ordering::Relaxed);
    }
}

fn domain(fd: c_int) -> Option<c_int> {
    word(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)
}

/// Looks what the program was started with.
pub(crate) fn look() {
    let Ok(files) = std::fs::read_dir("/proc/self/fd") else { return };
    let open = files.filter_map(|file| file.ok()?.file_name().to_str()?.parse::<c_int>().ok());
    for fd in open {
        if carried_by(fd, Duration::ZERO).is_some() {
            kinds::set(fd, Kind::Elsewhere);
        } else {
            note(fd);
        }
    }
}
