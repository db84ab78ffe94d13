//! Sessions at their descriptors.

use std::ffi::c_int;
use std::net::SocketAddr;

use host::{Errno, Id, Lingering, Mask};
use libc::epoll_event;

use super::asking::Asks;
use super::bound::keep_name;
use super::listener::{close_listener, closes_on_exec};
use super::options::open_like_kernels;
use super::{Awaited, Place, State};
use crate::address::id;
use crate::clock::{self, Alarm};
use crate::internal;
use crate::kinds::{self, Kind};
use crate::real;

/// Makes a session of a socket of the kernel's, with all that was set of it.
pub(crate) fn take_over<S: Asks>(state: S, fd: c_int) -> (S, Result<(), Errno>) {
    let (state, opened) = open_like_kernels(state, fd);
    if opened.is_err() {
        return (state, opened);
    }
    let (mut state, named) = keep_name(state, fd);
    if named.is_err() {
        state.close_unborn(fd);
        return (state, named);
    }
    if let Some(how) = kinds::what_is_shut(fd) {
        // ENOTCONN, as the kernel has said.
        state = state.ask(|sessions| sessions.shutdown(id(fd), how)).0;
    }
    let close_on_exec = closes_on_exec(fd);
    let place = Place { close_on_exec, ..state.place_like_kernels(fd) };
    state.occupy(fd, place);
    state.take_over_watches(fd);
    (state, Ok(()))
}

impl State {
    /// The descriptor under which a session is known.
    pub(crate) fn own(&self, fd: c_int) -> c_int {
        self.aliases.get(&fd).copied().unwrap_or(fd)
    }

    /// The session at `fd`: its own, unless it is a duplicate.
    pub(crate) fn id_of(&self, fd: c_int) -> Id {
        if self.aliases.is_empty() {
            return id(fd);
        }
        id(self.own(fd))
    }

    /// A session begins at a descriptor.
    pub(crate) fn occupy(&mut self, fd: c_int, place: Place) {
        self.births = self.births.wrapping_add(1);
        *self.place(fd) = Place { born: self.births, ..place };
        kinds::set(fd, Kind::Session);
        if self.rests {
            self.rest_or_work();
        }
    }

    /// The application is about to bind a socket that was connected, or to have it listen, which it does with the kernel's. Gives whether
    /// it is that from now on: not what others have too, or what was accepted, of which the kernel has none.
    pub(crate) fn dissolve(&mut self, fd: c_int) -> bool {
        let Place { dissolved, reusable, .. } = *self.place(fd);
        let has_others = self.own(fd) != fd || self.aliases.values().any(|own| *own == fd);
        let is_kept = has_others || self.carriers.contains_key(&fd) || self.is_held(fd);
        if !dissolved || reusable || is_kept || self.waiters.is_watched(id(fd)) {
            return false;
        }
        self.close_unborn(fd);
        kinds::set(fd, Kind::Fresh);
        kinds::touch(fd);
        true
    }

    /// A descriptor for a connection that waits at a listener. The application cannot put another file there.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: none waits.
    pub(crate) fn begin_accept(&mut self, listener: c_int) -> Result<c_int, Errno> {
        if !self.is_ready(listener, Mask::IN)
            && (self.run() == 0 || !self.is_ready(listener, Mask::IN))
        {
            return Err(Errno::AGAIN);
        }
        let fd = self.placeholder()?;
        kinds::set(fd, Kind::Internal);
        Ok(fd)
    }

    /// The session that was accepted to a descriptor begins there.
    ///
    /// # Errors
    /// Why none was.
    pub(crate) fn end_accept(
        &mut self,
        fd: c_int,
        flags: c_int,
        accepted: Result<(SocketAddr, SocketAddr), Errno>,
    ) -> Result<(c_int, SocketAddr), Errno> {
        match accepted {
            Ok((_, remote)) => {
                let place = Place {
                    flags: flags & libc::SOCK_NONBLOCK,
                    close_on_exec: flags & libc::SOCK_CLOEXEC != 0,
                    reusable: true,
                    ..Place::default()
                };
                self.occupy(fd, place);
                Ok((fd, remote))
            }
            Err(error) => {
                self.put_back(fd, true);
                Err(error)
            }
        }
    }

    /// Whether a session is ready for one of these things, or is no longer here.
    pub(crate) fn is_ready(&mut self, fd: c_int, mask: Mask) -> bool {
        let now = self.mask(fd);
        !(now & mask).is_empty() || now.is_empty() && kinds::get(fd) == Kind::Elsewhere
    }

    /// What `poll` says of a session, and of its half in the kernel.
    pub(crate) fn mask(&mut self, fd: c_int) -> Mask {
        if kinds::get(fd) == Kind::Epoll {
            return self.waiters.epoll_mask(fd, &mut self.sessions);
        }
        let id = self.id_of(fd);
        self.waiters.halves.join(id, self.sessions.mask(id))
    }

    /// Waits for one of these things at a session.
    pub(crate) fn watch(&mut self, waiter: usize, fd: c_int, mask: Mask) -> Result<(), Errno> {
        let (id, now) = (self.id_of(fd), self.mask(fd));
        self.waiters.add(waiter, (id, fd), epoll_event { events: mask.0, u64: 0 }, now)
    }

    /// Waits no more, for nothing.
    pub(crate) fn unwatch(&mut self, waiter: usize, fd: c_int) {
        let id = self.id_of(fd);
        if self.waiters.remove(waiter, (id, fd)).is_err() {
            // Another thread has closed the descriptor, and what it stood for may go on.
            self.waiters.forget(waiter);
        }
        self.waiters.release(waiter);
    }

    /// How long calls that receive and that send may block.
    pub(crate) fn timeouts(&self, fd: c_int) -> (Alarm, Alarm) {
        let (receive, send) = self.sessions.timeouts(self.id_of(fd)).unwrap_or_default();
        let alarm = |time: Option<u64>| time.map_or(Alarm::NEVER, Alarm::after);
        (alarm(receive), alarm(send))
    }

    /// The error that came after data that an earlier call gave.
    pub(crate) fn take_parked(&mut self, fd: c_int) -> Result<(), Errno> {
        match std::mem::take(&mut self.shared_place(fd).error) {
            0 => Ok(()),
            error => Err(Errno(error)),
        }
    }

    /// An error is the next call's to say.
    pub(crate) fn park(&mut self, fd: c_int, error: Errno) {
        if self.sessions.has(self.id_of(fd)) {
            self.shared_place(fd).error = error.0;
        }
    }

    /// The application has duplicated a session's descriptor.
    pub(crate) fn duplicate(&mut self, old: c_int, new: c_int, close_on_exec: bool) {
        let own = self.own(old);
        self.aliases.insert(new, own);
        self.occupy(new, Place { close_on_exec, ..Place::default() });
    }

    /// The application has closed a descriptor of a session; the session ends with its last one, and nobody waits for what it has
    /// left to send.
    pub(crate) fn close_session(&mut self, fd: c_int) {
        if let Some(own) = self.leave_descriptor(fd) {
            self.end_session(own);
        }
    }

    /// The same. Gives what the application has to wait for (`SO_LINGER`).
    pub(crate) fn begin_close(&mut self, fd: c_int) -> Option<Awaited> {
        self.leave_descriptor(fd).and_then(|own| self.begin_end(own))
    }

    /// A session has one descriptor less. Gives its own, if it is to end.
    fn leave_descriptor(&mut self, fd: c_int) -> Option<c_int> {
        let own = self.aliases.remove(&fd).unwrap_or(fd);
        let has_others = self.aliases.values().any(|other| *other == own);
        if own != fd {
            self.put_back(fd, false);
            let is_closed = kinds::get(own) == Kind::Internal || self.replaced.contains(&own);
            if has_others || !is_closed {
                return None;
            }
        } else if has_others {
            // The number stays taken, as long as the session has it; a program that is started has it no more.
            kinds::set(fd, Kind::Internal);
            // SAFETY: no memory is involved.
            unsafe { real::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC.into()) };
            return None;
        }
        (!self.outlives_close(own)).then_some(own)
    }

    /// Nobody has a session any more. Gives what is left to wait for, where the stack is this process's.
    pub(super) fn end_session(&mut self, own: c_int) -> Option<Lingering> {
        if self.carriers.contains_key(&own) {
            return self.close_carried(own);
        }
        self.waiters.forget_session(id(own));
        let lingering = self.sessions.close(id(own));
        self.leave_name(own);
        self.turn();
        let reusable = self.place(own).reusable;
        self.give_number_back(own, reusable);
        lingering
    }

    /// The same as [`put_back`](Self::put_back), unless the number is the application's for another file.
    pub(super) fn give_number_back(&mut self, own: c_int, reusable: bool) {
        if let Some(at) = self.replaced.iter().position(|other| *other == own) {
            self.replaced.swap_remove(at);
        } else {
            self.put_back(own, reusable);
        }
    }

    /// The application has closed a file of the kernel's that is more to this library.
    pub(crate) fn close_known(&mut self, fd: c_int, kind: Kind) {
        match kind {
            Kind::Listener => {
                close_listener(&mut *self, fd);
            }
            Kind::Datagrams => self.close_datagrams(fd),
            Kind::Elsewhere => self.forget(fd),
            Kind::Epoll => {
                self.waiters.close_epoll(fd);
                self.forget_instance(fd);
            }
            _ => {}
        }
    }

    /// The application puts another file at a descriptor: what is there ends as by `close`, but the number stays taken until then.
    /// Gives what the application has to wait for (`SO_LINGER`).
    ///
    /// # Errors
    /// [`Errno::BADF`]: it is a file that this library works with, which stays; the application cannot have the number.
    pub(crate) fn vacate(&mut self, fd: c_int) -> Result<Option<Awaited>, Errno> {
        let mut awaited = None;
        match kinds::get(fd) {
            Kind::Session => {
                self.replacing = Some(fd);
                awaited = self.begin_close(fd);
                self.replacing = None;
            }
            kind => self.close_known(fd, kind),
        }
        if let Some(at) = self.spares.iter().position(|spare| *spare == fd) {
            self.spares.remove(at);
        } else if kinds::get(fd) == Kind::Internal {
            self.give_way(fd)?;
        }
        kinds::set(fd, Kind::Kernel);
        Ok(awaited)
    }

    /// The application wants the number of a descriptor that it does not know. A session that it has closed there keeps the number as
    /// its name only while calls wait in it.
    fn give_way(&mut self, fd: c_int) -> Result<(), Errno> {
        if !self.sessions.has(id(fd)) || self.replaced.contains(&fd) {
            return Err(Errno::BADF);
        }
        if !self.rename(fd) {
            self.replaced.push(fd);
        }
        Ok(())
    }

    /// A socket is about to become a session at its descriptor: an earlier one that still has the number as its name gets another.
    ///
    /// # Errors
    /// [`Errno::EXIST`]: calls wait in that.
    pub(super) fn claim_number(&mut self, fd: c_int) -> Result<(), Errno> {
        let Some(at) = self.replaced.iter().position(|own| *own == fd) else { return Ok(()) };
        if !self.rename(fd) {
            return Err(Errno::EXIST);
        }
        self.replaced.swap_remove(at);
        Ok(())
    }

    /// Gives a session that the application has at other descriptors a number of this library's own. Gives whether it has one: not
    /// while calls wait in it, which know it by its number.
    fn rename(&mut self, own: c_int) -> bool {
        if self.is_held(own) || self.waiters.is_awaited(id(own)) {
            return false;
        }
        let new = internal::high_placeholder(&self.base);
        if new < 0 || !kinds::set(new, Kind::Internal) {
            return false;
        }
        if !self.sessions.rename(id(own), id(new), clock::now()) {
            internal::close(new);
            return false;
        }
        let place = *self.place(own);
        *self.place(new) = Place { reusable: false, ..place };
        self.aliases.values_mut().filter(|of| **of == own).for_each(|of| *of = new);
        if let Some(carrier) = self.carriers.remove(&own) {
            self.carriers.insert(new, carrier);
        }
        self.chosen.rename(own, new);
        let now = self.sessions.mask(id(new));
        self.waiters.rename(id(own), id(new), now);
        true
    }
}
