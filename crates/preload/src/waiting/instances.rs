//! Epoll instances by their descriptors.

use std::ffi::c_int;

/// No waiter has this number.
const NONE: u32 = u32::MAX;

/// The waiter of each epoll instance, by descriptor: found by one load.
#[derive(Debug, Default)]
pub(super) struct Instances(Vec<u32>);

impl Instances {
    #[inline]
    pub(super) fn get(&self, epoll: c_int) -> Option<usize> {
        let waiter = *self.0.get(usize::try_from(epoll).ok()?)?;
        (waiter != NONE).then_some(waiter as usize)
    }

    pub(super) fn insert(&mut self, epoll: c_int, waiter: usize) {
        let Ok(at) = usize::try_from(epoll) else { return };
        if self.0.len() <= at {
            self.0.resize(at + 1, NONE);
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = u32::try_from(waiter).unwrap_or(NONE);
        }
    }

    pub(super) fn remove(&mut self, epoll: c_int) -> Option<usize> {
        let waiter = self.get(epoll)?;
        self.insert(epoll, NONE as usize);
        Some(waiter)
    }

    /// The waiter of the first descriptor that is as wanted.
    pub(super) fn find(&self, is_wanted: impl Fn(c_int) -> bool) -> Option<usize> {
        let mut all = self.0.iter().zip(0..).filter(|(waiter, _)| **waiter != NONE);
        all.find(|(_, fd)| is_wanted(*fd)).map(|(waiter, _)| *waiter as usize)
    }

    /// Whether a waiter has a descriptor.
    pub(super) fn has(&self, waiter: usize) -> bool {
        self.0.iter().any(|other| *other as usize == waiter)
    }
}
