//! EAL, DPDK's environment: started once per process, never taken down.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, OnceLock, PoisonError};

mod affinity;
mod error;
mod files;
mod memory;
mod options;

use crate::{DeviceKind, ffi};
use affinity::Affinity;

pub use error::EalError;
pub use files::close_on_exec;
pub use options::{EalOptions, Memory};

/// Proof that EAL runs. It runs until the process ends: buffers and pools rely on its memory.
#[derive(Debug)]
pub struct Eal {
    hugepages: bool,
    arguments: String,
}

static TRIED: Mutex<bool> = Mutex::new(false);
static RUNNING: OnceLock<Eal> = OnceLock::new();

impl Eal {
    /// Starts EAL on the calling thread, which becomes DPDK's main thread (it has a buffer cache
    /// without [`register_thread`](crate::register_thread)) and keeps its CPU affinity. No worker
    /// threads are started; DPDK's interrupt thread is.
    ///
    /// # Errors
    /// [`EalError::Once`] on a second call, others as they say.
    pub fn init(options: &EalOptions) -> Result<&'static Self, EalError> {
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        if *tried {
            return Err(EalError::Once);
        }
        if !(64..=1 << 20).contains(&options.megabytes) {
            return Err(EalError::Megabytes(options.megabytes));
        }
        let hugepages = memory::choose(options)?;
        let affinity = Affinity::of_thread()?;
        let arguments = arguments(options, hugepages, affinity.first());
        let line = arguments.join(" ");
        *tried = true;
        let started = start(arguments);
        // DPDK pinned this thread to the one CPU of its main lcore.
        affinity.restore()?;
        started.map_err(|reason| EalError::Init { reason, arguments: line.clone() })?;
        Ok(RUNNING.get_or_init(|| Self { hugepages, arguments: line }))
    }

    /// The running EAL, if there is one.
    #[must_use]
    pub fn get() -> Option<&'static Self> {
        RUNNING.get()
    }

    /// Whether its memory is in hugepages.
    #[must_use]
    pub fn hugepages(&self) -> bool {
        self.hugepages
    }

    /// Whether the system has memory of the same kind for another process with these options beside this one. Of ordinary
    /// memory twice as much must be free, so that nobody is killed for it.
    #[must_use]
    pub fn has_room_beside(&self, options: &EalOptions) -> bool {
        if self.hugepages {
            return memory::choose(options) == Ok(true);
        }
        memory::available_megabytes() >= 2 * u64::from(options.megabytes)
    }

    /// The arguments that DPDK was started with.
    #[must_use]
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// DPDK's version, e.g. `DPDK 22.11.11`.
    #[must_use]
    pub fn version() -> String {
        // SAFETY: returns a static string, before EAL runs too.
        unsafe { CStr::from_ptr(ffi::rte_version()) }.to_string_lossy().into_owned()
    }
}

/// EAL's argument vector.
///
/// `--no-huge` excludes `--in-memory`; both do without a runtime directory, so any number of
/// daemons run side by side.
fn arguments(options: &EalOptions, hugepages: bool, cpu: usize) -> Vec<String> {
    let mut list: Vec<String> = vec!["millrace".into()];
    list.push(format!("--lcores=0@{cpu}"));
    list.push(format!("--file-prefix=millrace-{}", std::process::id()));
    list.push(format!("--log-level={}", options.log_level.clamp(1, 8)));
    list.push("--no-telemetry".into());
    if hugepages {
        // One file per memory list: virtio-user can hand over 8 regions at most.
        list.push("--in-memory".into());
        list.push("--single-file-segments".into());
        if options.preallocate {
            list.push(format!("-m {}", options.megabytes));
        }
    } else {
        list.push("--no-huge".into());
        list.push("--no-shconf".into());
        list.push(format!("-m {}", options.megabytes));
    }
    list.extend(options.channels.map(|channels| format!("-n {channels}")));
    let pci = options.devices.iter().filter(|device| device.kind() == DeviceKind::Pci);
    let before = list.len();
    list.extend(pci.map(|device| format!("-a {}", device.allow())));
    if list.len() == before {
        list.push("--no-pci".into());
        // No device addresses memory by itself, so the physical addresses need not be known.
        list.push("--iova-mode=va".into());
    }
    list
}

fn start(arguments: Vec<String>) -> Result<(), String> {
    // `-m 256` is two arguments; the others are one.
    let words = arguments.iter().flat_map(|word| word.split(' '));
    let words: Result<Vec<CString>, _> = words.map(CString::new).collect();
    let words = words.map_err(|_| "an argument holds a NUL byte".to_owned())?;
    let count = i32::try_from(words.len()).map_err(|_| "too many arguments".to_owned())?;
    let mut argv: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    argv.push(std::ptr::null_mut());
    // EAL keeps pointers into argv, and may permute it: it is given away for good.
    let argv = argv.leak();
    // SAFETY: argv has `count` writable C strings and a null, and lives for ever; the lock in
    // `init` makes this the only call.
    if unsafe { ffi::rte_eal_init(count, argv.as_mut_ptr()) } < 0 {
        // SAFETY: reads a thread-local number.
        let code = unsafe { ffi::millrace_errno() };
        return Err(std::io::Error::from_raw_os_error(code).to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use super::*;

    #[test]
    fn memory_is_asked_for_as_the_options_say() {
        let words = |options: &EalOptions, hugepages| arguments(options, hugepages, 3).join(" ");
        let usual = EalOptions { megabytes: 128, ..EalOptions::default() };
        assert!(words(&usual, true).contains("--lcores=0@3 "));
        assert!(!words(&usual, true).contains(" -m ") && !words(&usual, true).contains(" -n "));
        assert!(words(&usual, false).contains("--no-huge --no-shconf -m 128"));
        let all = EalOptions { preallocate: true, channels: NonZeroU8::new(2), ..usual };
        assert!(words(&all, true).contains("--single-file-segments -m 128 -n 2 "));
        assert!(words(&all, false).contains("-m 128 -n 2 "));
    }
}
