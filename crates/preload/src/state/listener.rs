//! Listening sockets: the kernel's, which local clients reach, and beside it the stack's.

mod neglect;
mod telling;

use std::ffi::c_int;
use std::mem::offset_of;
use std::sync::Arc;

use host::Errno;

use super::State;
use super::alone::is_alone;
use super::asking::Asks;
use super::bound::bind_like_kernels;
use super::leaving::await_handshakes;
use super::options::open_like_kernels;
use super::proving::prove;
use crate::address::{bound, id};
use crate::kinds::{self, Kind};
use crate::{clock, real, report};

/// A listener of this process.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    /// The daemon's number for it. `None`: the daemon refuses, and the kernel alone serves.
    pub(super) number: Option<u32>,
    /// Whether it gets its share of new connections: the application has begun to take them, or it shares a port with one of which it
    /// has.
    serves: bool,
    /// The application takes connections from it at the moment: an NGINX worker without the accept mutex does not.
    wanted: bool,
    /// The daemon has been told that the application neglects it.
    busy: bool,
    /// When the daemon was told last whether it serves: ns.
    told: u64,
    /// Calls to `accept` since the kernel was asked first.
    asked: u8,
    /// It is about to end.
    ends: bool,
    /// This process has it from another one, which may have it still.
    inherited: bool,
    neglect: neglect::Neglect,
}

/// A listener that was closed after a fork.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lingering {
    number: u32,
    until: u64,
}

/// How long a child may take after the fork to serve what its parent has closed: ns. What comes meanwhile comes again.
const CHILDHOOD: u64 = 3_000_000_000;

/// Of so many calls to `accept`, one asks the kernel first.
const TURNS: u8 = 16;

/// How long packets for a listener that was closed may still come: ns. A client's first repetition comes after 1 s.
const LATECOMERS: u64 = 500_000_000;

/// Connections that may wait where the kernel does not say how many.
const BACKLOG: c_int = 511;
/// Where it says that of a socket that listens, in words (tcp(7), `TCP_INFO`).
const WAITING_AT_MOST: usize = offset_of!(libc::tcp_info, tcpi_sacked) / size_of::<c_int>();

/// How many connections may wait at a socket that listens, whoever has said so: this process, or one that it has the socket from.
fn backlog(fd: c_int) -> c_int {
    let mut info = [BACKLOG; WAITING_AT_MOST + 1];
    let mut length = size_of_val(&info) as libc::socklen_t;
    let target = (&raw mut info).cast();
    // SAFETY: the kernel writes `length` bytes at most, which the array has.
    unsafe { real::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, target, &raw mut length) };
    info[WAITING_AT_MOST]
}

/// The kernel listens at `fd`: so does the stack, from now on or with another backlog.
pub(crate) fn listen_at<S: Asks>(state: S, fd: c_int) -> (S, Result<(), Errno>) {
    listen_as(state, fd, false)
}

/// The same. `serves`: the application takes connections from it already.
fn listen_as<S: Asks>(mut state: S, fd: c_int, serves: bool) -> (S, Result<(), Errno>) {
    let backlog = backlog(fd);
    let local = match bound(fd).and_then(|local| local.ok_or(Errno::OPNOTSUPP)) {
        Ok(local) => local,
        Err(error) => return (state, Err(error)),
    };
    let fd = state.own(fd);
    if is_alone(fd) {
        return (state, Err(Errno::OPNOTSUPP));
    }
    if state.listeners.contains_key(&fd) {
        let (after, name) = state.ask(|sessions| sessions.name(id(fd)));
        state = after;
        if name.is_ok_and(|name| name.port() == local.port()) {
            let (state, done) = state.ask(|sessions| sessions.listen(id(fd), backlog));
            return if done.is_ok() { (prove_again(state, fd), done) } else { (state, done) };
        }
        // It was shut down, and the kernel has given it another port since.
        state = end_listener(state, fd);
    }
    let link = Arc::clone(&state.attachment.link);
    let (mut state, opened) = open_like_kernels(state, fd);
    let mut done = opened;
    if done.is_ok() {
        (state, done) = bind_like_kernels(state, fd, local);
    }
    if done.is_ok() {
        (state, done) = state.ask(|sessions| sessions.listen(id(fd), backlog));
    }
    if opened.is_ok() && done.is_err() {
        state.sessions.close(id(fd));
    }
    // One whose daemon has gone meanwhile is had again with the others, on the next one's stack.
    let is_there = Arc::ptr_eq(&link, &state.attachment.link);
    if let Some(error) = done.err().filter(|error| is_there && *error != Errno::NETDOWN) {
        report::say(&format!("the stack can't listen at {local}: {error}"));
        return (state, Err(error));
    }
    let shown = state.shown;
    let (mut state, number) = prove(state, fd, u8::from(serves));
    *state.place(fd) = state.place_like_kernels(fd);
    kinds::set(fd, Kind::Listener);
    let (wanted, serves) = (serves, serves && number.is_some());
    let listener = Listener { number, serves, wanted, ..Listener::default() };
    state.listeners.insert(fd, listener);
    state.note_shown(number, serves, shown);
    (state, Ok(()))
}

/// Shows the daemon a listener that it knows: the kernel says another thing of it now.
fn prove_again<S: Asks>(state: S, fd: c_int) -> S {
    let known = state.listeners.get(&fd).filter(|listener| listener.number.is_some());
    let Some(serves) = known.map(|listener| listener.serves) else { return state };
    let shown = state.shown;
    let (mut state, number) = prove(state, fd, u8::from(serves));
    if let Some(listener) = state.listeners.get_mut(&fd) {
        listener.number = number.or(listener.number);
    }
    state.note_shown(number, serves, shown);
    state
}

impl State {
    /// Whether one of this process's listeners has this number, and goes on.
    pub(super) fn has_listener(&self, number: u32) -> bool {
        self.listeners.values().any(|listener| listener.number == Some(number) && !listener.ends)
    }

    /// Has all listeners anew on a stack that does not know them.
    pub(super) fn listen_again(&mut self) {
        self.keep_quiet();
        let all: Vec<_> = self.listeners.keys().copied().collect();
        for fd in all {
            self.have_listener_again(fd);
        }
    }

    fn have_listener_again(&mut self, fd: c_int) {
        let Ok(Some(local)) = bound(fd) else { return };
        let opened = open_like_kernels(&mut *self, fd).1;
        let bound = opened.and_then(|()| bind_like_kernels(&mut *self, fd, local).1);
        let listens = bound.and_then(|()| self.sessions.listen(id(fd), backlog(fd)));
        if let Err(error) = listens {
            report::say(&format!("the stack can't listen at {local}: {error}"));
        }
    }

    /// Shows a daemon that does not know them all sockets that listen.
    pub(super) fn prove_all(&mut self) {
        let all: Vec<_> = self.listeners.keys().copied().collect();
        for fd in all {
            self.show_listener(fd);
        }
        self.prove_datagrams();
    }

    /// The same of one.
    fn show_listener(&mut self, fd: c_int) {
        let known = self.listeners.get(&fd).filter(|known| !known.ends);
        let Some(serves) = known.map(|known| known.serves) else { return };
        let number = prove(&mut *self, fd, u8::from(serves)).1;
        if let Some(listener) = self.listeners.get_mut(&fd) {
            listener.number = number;
        }
    }

    /// A daemon that has come since a thread began to change a listener is to have it as it is now.
    pub(super) fn renew_listener(&mut self, fd: c_int) {
        if !self.listeners.contains_key(&fd) {
            return;
        }
        if !self.sessions.has(id(fd)) {
            self.have_listener_again(fd);
        }
        self.show_listener(fd);
    }

    /// Whether it is the kernel's turn to give a connection: clients that come from the network without end do not keep the host's
    /// own waiting.
    pub(crate) fn is_kernels_turn(&mut self, fd: c_int) -> bool {
        let fd = self.own(fd);
        let Some(listener) = self.listeners.get_mut(&fd) else { return false };
        listener.asked = (listener.asked + 1) % TURNS;
        listener.asked == 0
    }

    /// Whether this process has only opened listeners for those that it forked: connections that it opened would wait for
    /// ever, and clients that get no answer ask again, somebody who serves then.
    pub(crate) fn leaves_it_to_children(&self) -> bool {
        self.forked.is_some()
            && !self.listeners.values().any(|listener| listener.serves)
            && !kinds::all().any(|(_, kind)| kind == Kind::Session)
    }

    /// Ends listeners that were closed after a fork, when the child has had the time to serve them.
    pub(crate) fn end_lingering(&mut self) {
        let now = clock::now();
        while let Some(at) = self.lingering.iter().position(|listener| now >= listener.until) {
            let number = self.lingering.swap_remove(at).number;
            if !self.has_listener(number) {
                self.give_back(number);
            }
        }
    }

    /// Looks whether new connections are left to the processes that were forked.
    pub(crate) fn rest_or_work(&mut self) {
        let rests = self.leaves_it_to_children();
        if rests == self.rests {
            return;
        }
        self.rests = rests;
        self.keep_quiet();
    }

    /// Who has no connection here gets no answer as long as new ones are left to others.
    pub(super) fn keep_quiet(&mut self) {
        self.sessions.keep_quiet(if self.rests { u64::MAX } else { 0 });
    }

    /// Whether this process listens at `fd`: what it has inherited, it does not know yet.
    fn listens(&self, fd: c_int) -> bool {
        self.listeners.contains_key(&self.own(fd))
    }

    /// Makes sure that this process listens at `fd`: it may have inherited it.
    pub(crate) fn adopt(&mut self, fd: c_int) -> Result<(), Errno> {
        // Another thread is about to, maybe.
        if self.listens(fd) || self.is_changing(fd) {
            return Ok(());
        }
        listen_at(&mut *self, fd).1?;
        if let Some(listener) = self.listeners.get_mut(&self.own(fd)) {
            listener.inherited = true;
        }
        Ok(())
    }

    /// The application has duplicated its descriptor.
    pub(crate) fn duplicate_listener(&mut self, old: c_int, new: c_int) {
        let own = self.own(old);
        self.aliases.insert(new, own);
        kinds::set(new, Kind::Listener);
    }

    /// The kernel alone serves a listener from now on.
    pub(super) fn leave_to_kernel(&mut self, fd: c_int) {
        if self.listeners.contains_key(&fd) {
            end_listener(self, fd);
        }
    }
}

/// The application has closed a descriptor of it. The last one ends it; with its own, it goes on at another, without
/// the connections that waited.
pub(crate) fn close_listener<S: Asks>(mut state: S, fd: c_int) -> S {
    if state.aliases.remove(&fd).is_some() {
        return state;
    }
    let serves = state.listeners.get(&fd).is_some_and(|it| it.serves && it.wanted);
    let mut state = end_listener(state, fd);
    let heir = state.aliases.iter().find(|(_, own)| **own == fd).map(|(other, _)| *other);
    let Some(heir) = heir else { return state };
    state.aliases.remove(&heir);
    for own in state.aliases.values_mut().filter(|own| **own == fd) {
        *own = heir;
    }
    // Its descriptor is another by now, of which nobody knows that it changes.
    let _ = listen_as(&mut *state, heir, serves);
    state
}

fn end_listener<S: Asks>(mut state: S, fd: c_int) -> S {
    let now = clock::now();
    let known = state.listeners.get_mut(&fd).map(|listener| {
        listener.ends = true;
        (listener.number, listener.serves)
    });
    let child = state.forked.map(|at| at + CHILDHOOD).filter(|until| now < *until);
    // Sockets that share a port (`SO_REUSEPORT`) are one listener to the daemon.
    let number = known.and_then(|(number, _)| number);
    let stays = number.is_some_and(|number| state.has_listener(number));
    let mut quiet_until = 0;
    match (known, child) {
        _ if stays => {}
        // A child that will serve has not shown it yet: nobody would have the port meanwhile.
        (Some((Some(number), false)), Some(until)) => {
            state.lingering.push(Lingering { number, until });
            quiet_until = until;
        }
        (Some((Some(number), _)), _) => state.give_back(number),
        _ => {}
    }
    // Who comes at the last moment comes again, to others who serve; who waits already is theirs too.
    let mut state = await_handshakes(state, fd);
    state.hand_over(fd);
    state.listeners.remove(&fd);
    if let Ok(name) = state.sessions.name(id(fd)) {
        let until = quiet_until.max(clock::now() + LATECOMERS);
        state.sessions.spare_resets(name.port(), until);
    }
    state.run();
    state.waiters.forget_session(id(fd));
    state.sessions.close(id(fd));
    state.turn();
    state
}

/// Whether another program that is started does not get a descriptor of the kernel's (`FD_CLOEXEC`).
pub(crate) fn closes_on_exec(fd: c_int) -> bool {
    // SAFETY: no memory is involved.
    unsafe { real::fcntl(fd, libc::F_GETFD, 0) & libc::FD_CLOEXEC != 0 }
}

/// What `F_GETFL` says of a file of the kernel's, but for how it was opened.
pub(crate) fn status_flags(fd: c_int) -> c_int {
    // SAFETY: no memory is involved.
    unsafe { real::fcntl(fd, libc::F_GETFL, 0) & !libc::O_ACCMODE }
}
