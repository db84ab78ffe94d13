//! Cores, and threads on them.

use crate::failure::Failure;

/// The cores that this process may use.
pub(crate) fn cores() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return vec![0] };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Keeps the calling thread on a core.
pub(crate) fn pin(core: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Does something on a core, and gives the thread back to all that it could use before.
pub(crate) fn on<T>(core: usize, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let before = rustix::thread::sched_getaffinity(None).map_err(std::io::Error::from)?;
    pin(core)?;
    let done = work();
    rustix::thread::sched_setaffinity(None, &before).map_err(std::io::Error::from)?;
    done
}

/// The first and the last core, which hardly share anything; the same one twice where there is one.
pub(crate) fn outermost() -> [usize; 2] {
    let cores = cores();
    [cores.first(), cores.last()].map(|core| core.copied().unwrap_or(0))
}
