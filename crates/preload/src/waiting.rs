//! Who waits for sessions: epoll instances, and threads in a call that blocks.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;

use host::{Errno, Id, Mask};
use libc::epoll_event;

use crate::internal::Hidden;
use crate::kinds;
use crate::sockets::Sockets;

mod files;
mod halves;
mod instances;
mod moving;
mod sleep;

use files::{Asks, Files};
pub(crate) use halves::{Halves, World};
use instances::Instances;
use sleep::{clear, kick, new_kick};

/// What is reported whether it was asked for or not.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
/// How events are reported, among the bits of those that are asked for.
const EDGE: u32 = libc::EPOLLET as u32;
const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
const HOW: u32 = EDGE | ONE_SHOT | (libc::EPOLLWAKEUP | libc::EPOLLEXCLUSIVE) as u32;

/// Somebody's interest in a session.
#[derive(Debug, Clone, Copy)]
struct Watch {
    waiter: usize,
    /// The descriptor by which it was asked for.
    fd: c_int,
    events: u32,
    data: u64,
    /// No other has it: what is left of one that was removed concerns none that comes after.
    number: u64,
    /// In the waiter's list of what may be ready.
    queued: bool,
    /// Told once, as was asked for; until it is asked for again.
    spent: bool,
    /// The kernel watches the same file, and tells of its end.
    kernels: bool,
}

/// An epoll instance, or a thread in a call that blocks.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Ends its sleep. `None`: the process has no descriptor left for it, and its sleeps are short.
    kick: Option<Hidden>,
    /// Threads that sleep.
    sleeping: usize,
    /// What may be ready, each once: sessions, and numbers of watches.
    ready: VecDeque<(Id, u64)>,
    /// Of an epoll instance: what is known of the kernel's files in it.
    files: Files,
    /// Of an epoll instance that others watch: what stands for it among sessions.
    inner: Option<Id>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    list: Vec<Waiter>,
    free: Vec<usize>,
    /// By session.
    watches: Vec<Vec<Watch>>,
    /// Watches so far.
    count: u64,
    epolls: Instances,
    /// Epoll instances that others watch, by what stands for them among sessions.
    nested: HashMap<Id, usize>,
    /// Of sockets that the kernel has too.
    pub(crate) halves: Halves,
    /// Threads that sleep, in all.
    pub(crate) sleepers: usize,
    /// When the first of them wakes by itself: ns.
    pub(crate) wakes_at: u64,
}

impl Waiters {
    /// One that nobody uses.
    pub(crate) fn take(&mut self) -> usize {
        let free = self.free.pop();
        if let Some(waiter) = free.and_then(|waiter| self.list.get_mut(waiter)) {
            waiter.kick = waiter.kick.take().or_else(new_kick);
        }
        free.unwrap_or_else(|| {
            let (kick, ready, files) = (new_kick(), VecDeque::new(), Files::default());
            self.list.push(Waiter { kick, sleeping: 0, ready, files, inner: None });
            self.list.len() - 1
        })
    }

    /// It is used no more; what it watched is forgotten before.
    pub(crate) fn release(&mut self, waiter: usize) {
        if let Some(waiter) = self.list.get_mut(waiter) {
            waiter.ready.clear();
            (waiter.files, waiter.inner) = (Files::default(), None);
            clear(waiter.kick.as_ref());
        }
        self.free.push(waiter);
    }

    /// Whether to ask the kernel in a call to an epoll instance that has events of sessions already.
    pub(crate) fn asks(&mut self, waiter: usize, epoll: c_int) -> Asks {
        let waiter = self.list.get_mut(waiter);
        waiter.map_or(Asks::ALL, |waiter| waiter.files.asks(epoll))
    }

    /// The kernel was asked about an epoll instance's files: whether it had events.
    pub(crate) fn asked(&mut self, waiter: usize, had_events: bool) {
        if let Some(waiter) = self.list.get_mut(waiter) {
            waiter.files.asked(had_events);
        }
    }

    /// Whether the kernel's files are known to have events.
    pub(crate) fn kernel_has_news(&self, waiter: usize) -> bool {
        self.list.get(waiter).is_some_and(|waiter| waiter.files.have_news())
    }

    /// That of an epoll instance, made if there is none.
    pub(crate) fn epoll(&mut self, epoll: c_int) -> usize {
        self.epolls.get(epoll).unwrap_or_else(|| {
            let twin = self.epolls.find(|other| kinds::are_one_epoll(epoll, other));
            let waiter = twin.unwrap_or_else(|| self.take());
            self.epolls.insert(epoll, waiter);
            waiter
        })
    }

    /// An epoll instance has another descriptor.
    pub(crate) fn duplicate_epoll(&mut self, old: c_int, new: c_int) {
        let waiter = self.epoll(old);
        self.epolls.insert(new, waiter);
    }

    /// A descriptor of an epoll instance was closed; it ends with the last one.
    pub(crate) fn close_epoll(&mut self, epoll: c_int) {
        let Some(waiter) = self.epolls.remove(epoll) else { return };
        if self.epolls.has(waiter) {
            return;
        }
        self.forget(waiter);
        let inner = self.list.get(waiter).and_then(|waiter| waiter.inner);
        if let Some(id) = inner {
            self.nested.remove(&id);
            self.forget_session(id);
        }
        // A thread that sleeps there goes on to, as in Linux, and must not be told what others wait for: its place stays empty.
        if self.list.get(waiter).is_none_or(|found| found.sleeping == 0) {
            self.release(waiter);
        }
    }

    fn of(&mut self, id: Id) -> &mut Vec<Watch> {
        let at = id.0 as usize;
        if self.watches.len() <= at {
            self.watches.resize_with(at + 1, Vec::new);
        }
        #[expect(clippy::indexing_slicing, reason = "just made long enough")]
        &mut self.watches[at]
    }

    /// Begins to watch. `now`: what is ready already.
    pub(crate) fn add(
        &mut self,
        waiter: usize,
        (id, fd): (Id, c_int),
        event: epoll_event,
        now: Mask,
    ) -> Result<(), Errno> {
        let number = self.count;
        let watches = self.of(id);
        if watches.iter().any(|watch| watch.waiter == waiter && watch.fd == fd) {
            return Err(Errno::EXIST);
        }
        if watches.capacity() == 0 {
            // Most sessions are watched once, and there may be very many.
            watches.reserve_exact(1);
        }
        let (events, data) = (event.events, event.u64);
        watches.push(Watch {
            waiter,
            fd,
            events,
            data,
            number,
            queued: false,
            spent: false,
            kernels: false,
        });
        self.count += 1;
        self.tell(id, now);
        Ok(())
    }

    /// Changes what is watched.
    pub(crate) fn change(
        &mut self,
        waiter: usize,
        (id, fd): (Id, c_int),
        event: epoll_event,
        now: Mask,
    ) -> Result<(), Errno> {
        let mut watches = self.of(id).iter_mut();
        let watch = watches.find(|watch| watch.waiter == waiter && watch.fd == fd);
        let watch = watch.ok_or(Errno::NOENT)?;
        // ep_modify: nor may it become so.
        if watch.events & libc::EPOLLEXCLUSIVE as u32 != 0 {
            return Err(Errno::INVAL);
        }
        (watch.events, watch.data, watch.spent) = (event.events, event.u64, false);
        self.tell(id, now);
        Ok(())
    }

    /// The kernel has the same file in its epoll instance: it tells of its end, and nobody else.
    pub(crate) fn leave_end_to_kernel(&mut self, waiter: usize, (id, fd): (Id, c_int)) {
        let mut watches = self.of(id).iter_mut();
        if let Some(watch) = watches.find(|watch| watch.waiter == waiter && watch.fd == fd) {
            watch.kernels = true;
        }
    }

    /// Watches no more.
    pub(crate) fn remove(&mut self, waiter: usize, (id, fd): (Id, c_int)) -> Result<(), Errno> {
        let watches = self.of(id);
        let before = watches.len();
        watches.retain(|watch| watch.waiter != waiter || watch.fd != fd);
        // What may be ready is looked up again when it is reported.
        if watches.len() == before { Err(Errno::NOENT) } else { Ok(()) }
    }

    /// Whether nobody has to be told what is ready for a waiter: it finds out when it asks.
    #[inline]
    pub(crate) fn is_awake(&self, waiter: usize) -> bool {
        let waiter = self.list.get(waiter);
        waiter.is_some_and(|waiter| waiter.sleeping == 0 && waiter.inner.is_none())
    }

    /// Whether somebody watches a session.
    pub(crate) fn is_watched(&self, id: Id) -> bool {
        self.watches.get(id.0 as usize).is_some_and(|watches| !watches.is_empty())
    }

    /// A session is no more.
    pub(crate) fn forget_session(&mut self, id: Id) {
        self.of(id).clear();
    }

    /// Whether a thread waits for a session in a call, other than by an epoll instance.
    pub(crate) fn is_awaited(&self, id: Id) -> bool {
        let mut watches = self.watches.get(id.0 as usize).into_iter().flatten();
        watches.any(|watch| !self.epolls.has(watch.waiter))
    }

    /// A session became ready for these things: those who wait for them may wake.
    pub(crate) fn tell(&mut self, id: Id, woken: Mask) {
        let Self { list, watches, .. } = self;
        let Some(watches) = watches.get_mut(id.0 as usize) else { return };
        let mut outer = Vec::new();
        for watch in watches {
            let wanted = watch.events & !HOW;
            if watch.spent || woken.0 & (wanted | ALWAYS) == 0 {
                continue;
            }
            let Some(waiter) = list.get_mut(watch.waiter) else { continue };
            outer.extend(waiter.inner);
            if watch.queued {
                continue;
            }
            watch.queued = true;
            waiter.ready.push_back((id, watch.number));
            if waiter.sleeping > 0 {
                kick(waiter.kick.as_ref());
            }
        }
        // Linux lets instances watch each other, five deep and in no circle.
        for id in outer {
            self.tell(id, Mask::IN | Mask::RDNORM);
        }
    }

    /// An epoll instance is watched by others: from now on they are told of its sessions.
    pub(crate) fn nest(&mut self, epoll: c_int, id: Id) {
        let waiter = self.epoll(epoll);
        if let Some(waiter) = self.list.get_mut(waiter) {
            waiter.inner = Some(id);
        }
        self.nested.insert(id, waiter);
    }

    /// What `poll` says of an epoll instance, as far as sessions go.
    pub(crate) fn epoll_mask(&self, epoll: c_int, sessions: &mut Sockets) -> Mask {
        let waiter = self.epolls.get(epoll);
        let has = waiter.is_some_and(|waiter| self.has_event(waiter, sessions));
        if has { Mask::IN | Mask::RDNORM } else { Mask::NONE }
    }

    fn has_event(&self, waiter: usize, sessions: &mut Sockets) -> bool {
        let Some(found) = self.list.get(waiter) else { return false };
        found.ready.iter().any(|(id, number)| {
            let mut of = self.watches.get(id.0 as usize).into_iter().flatten();
            let watch = of.find(|watch| watch.number == *number);
            watch.is_some_and(|watch| {
                let wanted = watch.events & !HOW | ALWAYS;
                !watch.spent && self.mask(*id, sessions).0 & wanted != 0
            })
        })
    }

    /// What is ready of what stands at `id`: a session with its half in the kernel, or an epoll instance.
    fn mask(&self, id: Id, sessions: &mut Sockets) -> Mask {
        let inner = if self.nested.is_empty() { None } else { self.nested.get(&id) };
        match inner {
            Some(inner) if self.has_event(*inner, sessions) => Mask::IN | Mask::RDNORM,
            Some(_) => Mask::NONE,
            None => self.halves.join(id, sessions.mask(id)),
        }
    }

    /// What is ready, into `events`. Gives how many.
    pub(crate) fn collect(
        &mut self,
        waiter: usize,
        sessions: &mut Sockets,
        events: &mut [epoll_event],
    ) -> usize {
        let mut room = events.iter_mut();
        let mut count = 0;
        let waiting = self.list.get(waiter).map_or(0, |found| found.ready.len());
        for _ in 0..waiting {
            let Some(found) = self.list.get_mut(waiter) else { break };
            if room.len() == 0 {
                // Other threads that sleep are for the rest (`ep_done_scan`): this one may have taken their kick, too.
                if found.sleeping > 0 {
                    kick(found.kick.as_ref());
                }
                break;
            }
            let Some((id, number)) = found.ready.pop_front() else { break };
            let now = self.mask(id, sessions);
            let Self { list, watches, .. } = self;
            let mut of = watches.get_mut(id.0 as usize).into_iter().flatten();
            let watch = of.find(|watch| watch.number == number);
            // It was removed meanwhile.
            let Some(watch) = watch else { continue };
            watch.queued = false;
            let wanted = watch.events & !HOW;
            let unasked = if watch.kernels { 0 } else { ALWAYS };
            let mask = now.0 & (wanted | unasked);
            if mask == 0 || watch.spent {
                continue;
            }
            let Some(event) = room.next() else { break };
            *event = epoll_event { events: mask, u64: watch.data };
            count += 1;
            if watch.events & ONE_SHOT != 0 {
                watch.spent = true;
            } else if watch.events & EDGE == 0 {
                // Ready until somebody finds that it is not.
                watch.queued = true;
                if let Some(found) = list.get_mut(waiter) {
                    found.ready.push_back((id, number));
                }
            }
        }
        count
    }

    /// What was ready is not, as the waiter has found.
    pub(crate) fn drop_stale(&mut self, waiter: usize) {
        let Self { list, watches, .. } = self;
        let Some(found) = list.get_mut(waiter) else { return };
        for (id, number) in found.ready.drain(..) {
            let of = watches.get_mut(id.0 as usize).into_iter().flatten();
            of.filter(|watch| watch.number == number).for_each(|watch| watch.queued = false);
        }
    }

    /// Whether something may be ready.
    pub(crate) fn may_be_ready(&self, waiter: usize) -> bool {
        self.list.get(waiter).is_some_and(|waiter| !waiter.ready.is_empty())
    }
}

#[cfg(test)]
mod tests;
