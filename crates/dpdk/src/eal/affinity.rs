//! The CPU affinity of the calling thread, which EAL changes and we put back.

use super::EalError;

pub(crate) struct Affinity(libc::cpu_set_t);

impl Affinity {
    pub(crate) fn of_thread() -> Result<Self, EalError> {
        // SAFETY: a CPU set is an array of integers, for which zero is valid.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is as large as said; pid 0 is the calling thread.
        let rc = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        if rc == 0 { Ok(Self(set)) } else { Err(last_error()) }
    }

    /// The lowest CPU that the thread may use.
    pub(crate) fn first(&self) -> usize {
        let limit = 8 * size_of::<libc::cpu_set_t>();
        // SAFETY: `cpu` is below the set's size.
        (0..limit).find(|&cpu| unsafe { libc::CPU_ISSET(cpu, &self.0) }).unwrap_or(0)
    }

    pub(crate) fn restore(&self) -> Result<(), EalError> {
        // SAFETY: the set is as large as said; pid 0 is the calling thread.
        let rc = unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &self.0) };
        if rc == 0 { Ok(()) } else { Err(last_error()) }
    }
}

fn last_error() -> EalError {
    EalError::Affinity(std::io::Error::last_os_error().to_string())
}
