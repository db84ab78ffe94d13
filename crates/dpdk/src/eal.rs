//! EAL, DPDK's environment: started once per process, never taken down.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::affinity::Affinity;
use crate::memory::{self, Memory};
use crate::{Device, DeviceKind, ffi};

/// How EAL is to run.
#[derive(Debug, Clone)]
pub struct EalOptions {
    /// Memory for buffer pools and DPDK itself: MB.
    pub megabytes: u32,
    /// Which kind of pages that memory has.
    pub memory: Memory,
    /// Devices that will be opened. Only these PCI devices are touched, and the memory mode suits
    /// the kinds that are named here.
    pub devices: Vec<Device>,
    /// DPDK's log level for standard error, 1 (emergency) to 8 (debug); 4 is errors only.
    pub log_level: u8,
}

impl Default for EalOptions {
    fn default() -> Self {
        Self { megabytes: 256, memory: Memory::Auto, devices: Vec::new(), log_level: 4 }
    }
}

/// Why EAL did not start.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum EalError {
    /// There is one EAL per process, and it was started (or tried) before.
    #[error("DPDK was started before in this process, and that works only once")]
    Once,
    /// Nobody called [`Eal::init`] yet.
    #[error("DPDK does not run yet: call Eal::init first")]
    NotRunning,
    /// Hugepages were demanded and too few are free.
    #[error(
        "{needed} MB of hugepages are needed and {free} MB are free: write more to \
         /proc/sys/vm/nr_hugepages, or allow ordinary pages"
    )]
    Hugepages {
        /// MB asked for.
        needed: u32,
        /// MB free.
        free: u64,
    },
    /// Less memory than DPDK can start with, or more than it can address.
    #[error("{0} MB of memory is out of range: 64 to 1048576 is possible")]
    Megabytes(u32),
    /// `rte_eal_init` failed.
    #[error("DPDK did not start ({reason}) with arguments `{arguments}`; its log says more")]
    Init {
        /// The error number's words.
        reason: String,
        /// What it was started with.
        arguments: String,
    },
    /// The system refused to tell or to set the thread's CPU affinity.
    #[error("the thread's CPU affinity: {0}")]
    Affinity(String),
}

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
    } else {
        list.push("--no-huge".into());
        list.push("--no-shconf".into());
        list.push(format!("-m {}", options.megabytes));
    }
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
