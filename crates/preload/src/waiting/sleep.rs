//! Threads that sleep for sessions, and what ends their sleep.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};

use rustix::event::{EventfdFlags, eventfd};

use super::Waiters;
use crate::internal::Hidden;

impl Waiters {
    /// The descriptor that ends a waiter's sleep; -1: it has none.
    pub(crate) fn kick_of(&self, waiter: usize) -> c_int {
        let kick = self.list.get(waiter).and_then(|waiter| waiter.kick.as_ref());
        kick.map_or(-1, AsRawFd::as_raw_fd)
    }

    /// A thread is about to sleep, until `until` at most.
    pub(crate) fn fall_asleep(&mut self, waiter: usize, until: u64) {
        self.wakes_at = if self.sleepers == 0 { until } else { self.wakes_at.min(until) };
        self.sleepers += 1;
        if let Some(waiter) = self.list.get_mut(waiter) {
            waiter.sleeping += 1;
        }
    }

    /// It is awake again.
    pub(crate) fn wake(&mut self, waiter: usize, kicked: bool) {
        self.sleepers -= 1;
        if let Some(waiter) = self.list.get_mut(waiter) {
            waiter.sleeping -= 1;
            if kicked {
                clear(waiter.kick.as_ref());
            }
        }
    }

    /// A thread that waited is no more. What was its own is for others; an epoll instance stays.
    pub(crate) fn abandon(&mut self, waiter: usize) {
        let is_asleep = self.list.get(waiter).is_none_or(|found| found.sleeping > 0);
        if !is_asleep && !self.epolls.has(waiter) {
            self.forget(waiter);
            self.release(waiter);
        }
    }

    /// A waiter watches nothing any more.
    pub(crate) fn forget(&mut self, waiter: usize) {
        for watches in &mut self.watches {
            watches.retain(|watch| watch.waiter != waiter);
        }
    }

    /// The stack has something to do earlier than the sleepers know: wakes one.
    pub(crate) fn hurry(&mut self, deadline: u64) {
        if self.sleepers == 0 || deadline >= self.wakes_at {
            return;
        }
        if let Some(waiter) = self.list.iter().find(|waiter| waiter.sleeping > 0) {
            self.wakes_at = deadline;
            kick(waiter.kick.as_ref());
        }
    }
}

/// `None`: the process has as many descriptors as it may.
pub(super) fn new_kick() -> Option<Hidden> {
    eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok().map(Hidden::of)
}

pub(super) fn kick(file: Option<&Hidden>) {
    // It fails only when it was kicked often enough.
    let _ = file.map(|file| rustix::io::write(file.as_fd(), &1_u64.to_ne_bytes()));
}

pub(super) fn clear(file: Option<&Hidden>) {
    let _ = file.map(|file| rustix::io::read(file.as_fd(), &mut [0_u8; 8]));
}
