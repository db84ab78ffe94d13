//! Giving a thread its own buffer cache.

use std::marker::PhantomData;

use crate::{Eal, EalError, ffi};

/// Why a thread could not be registered.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ThreadError {
    /// EAL does not run.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// The thread is registered already (the thread that called `Eal::init` is, too).
    #[error("this thread is registered with DPDK already")]
    Registered,
    /// All of DPDK's lcore ids are taken.
    #[error("DPDK has no lcore id left for another thread (it has 128)")]
    Full,
}

/// A thread's registration: while it lives, pools keep buffers in a cache for this thread, which
/// halves the cost of a packet. It ends on the thread that made it.
#[derive(Debug)]
pub struct Registration {
    stays: PhantomData<*const ()>,
}

/// Registers the calling thread with DPDK.
///
/// # Errors
/// [`ThreadError`] says which.
pub fn register_thread() -> Result<Registration, ThreadError> {
    Eal::get().ok_or(EalError::NotRunning)?;
    if lcore_id().is_some() {
        return Err(ThreadError::Registered);
    }
    // SAFETY: EAL runs.
    if unsafe { ffi::rte_thread_register() } < 0 {
        return Err(ThreadError::Full);
    }
    Ok(Registration { stays: PhantomData })
}

/// DPDK's number of the calling thread; `None` when it is not registered.
#[must_use]
pub fn lcore_id() -> Option<u32> {
    // SAFETY: reads a thread-local number.
    let id = unsafe { ffi::millrace_lcore_id() };
    (id != u32::MAX).then_some(id)
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: this thread registered itself, and `Registration` cannot leave it; its caches are
        // used by nobody else.
        unsafe {
            ffi::millrace_flush_caches();
            ffi::rte_thread_unregister();
        }
    }
}
