//! Why EAL did not start.

/// Why EAL did not start.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum EalError {
    /// There is one EAL per process, and it was started (or tried) before.
    #[error("DPDK was started before in this process, and that works only once")]
    Once,
    /// Nobody called [`Eal::init`](crate::Eal::init) yet.
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
