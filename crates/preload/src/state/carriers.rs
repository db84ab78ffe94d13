//! Sessions that more than one process may have: each has a carrier in place of its placeholder.
//!
//! A carrier is a connection to the daemon that says nothing. The kernel counts its holders: forks, `exec`, `dup` and
//! `SCM_RIGHTS` carry it. One process at a time has the connection behind it, or the daemon; who uses a descriptor of a session that
//! is elsewhere fetches it.

mod given;

use std::collections::HashMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use client::session::{Withdrawal, carrier_id, open_carrier};
use host::{Lingering, Mask};
use shm::attach::Received;
use shm::session::{CarrierId, Event, Offered};
use transport::ImportError;

use super::{Place, State, closes_on_exec, status_flags};
use crate::address::id;
use crate::kinds::{self, Kind};
use crate::sockets::Sockets;
use crate::{clock, environment, internal, real, report, uncancelled};

pub(super) use given::Given;

/// Sessions that get a carrier at one fork, the youngest: each costs a connection to the daemon. The child loses the others.
const AT_ONCE: usize = 64;
/// How long the daemon may take to name a carrier.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a connection that was given away gets no answer here, while packets for it still come: ns.
const HELD: u64 = 2_000_000_000;
/// How long another process may take to give a connection: ns; the daemon says after a second that it will not come.
const RECALL: u64 = 3_000_000_000;
/// Between two rounds of the stack while it is waited for: ms.
const STEP: c_int = 10;

/// A session's carrier.
#[derive(Debug, Default)]
pub(crate) struct Carrier {
    /// `None`: nobody has asked for it yet.
    id: Option<CarrierId>,
}

/// What a descriptor that this process did not make carries.
pub(crate) fn carried_by(fd: c_int, patience: Duration) -> Option<CarrierId> {
    // SAFETY: the application's, or ours, open during this call.
    carrier_id(unsafe { BorrowedFd::borrow_raw(fd) }, patience)
}

/// The descriptors that stand for a session, by those that are others' too. `is_session`: its own number is one of a session.
fn standing_for(own: c_int, aliases: &HashMap<c_int, c_int>, is_session: bool) -> Vec<c_int> {
    let others = aliases.iter().filter(|(_, of)| **of == own).map(|(fd, _)| *fd);
    // At its own, there may be another session's by now.
    let has_own = is_session && !aliases.contains_key(&own);
    others.chain(has_own.then_some(own)).collect()
}

impl State {
    /// The process is about to fork: the child will have its sessions too.
    pub(crate) fn carry_all(&mut self) {
        let mut sessions = self.session_descriptors();
        sessions.retain(|own| !self.carriers.contains_key(own));
        if sessions.len() > AT_ONCE {
            sessions.sort_by_key(|own| self.births.wrapping_sub(self.place(*own).born));
            report::say("more sessions than a forked process can share: it has the youngest");
        }
        sessions.truncate(AT_ONCE);
        sessions.retain(|own| self.carry(*own));
        // A program that a child starts at once finds them named.
        for own in sessions {
            self.carrier_of(own);
        }
    }

    /// Gives a session a carrier. Gives whether it has one.
    pub(crate) fn carry(&mut self, own: c_int) -> bool {
        if self.carriers.contains_key(&own) {
            return true;
        }
        if !self.attachment.is_there() {
            return false;
        }
        let path = environment::sessions_socket();
        let file = match open_carrier(path.as_deref(), self.attachment.number()) {
            Ok(file) => file,
            Err(error) => {
                report::say(&error.to_string());
                return false;
            }
        };
        let flags = self.place(own).flags & !libc::O_ASYNC;
        // SAFETY: no memory is involved.
        unsafe { real::fcntl(file.as_raw_fd(), libc::F_SETFL, flags.into()) };
        for fd in self.descriptors_of(own) {
            let place = self.place(fd);
            place.reusable = false;
            let flags = if place.close_on_exec { libc::O_CLOEXEC } else { 0 };
            // SAFETY: what it replaces is a placeholder that says nothing.
            unsafe { real::dup3(file.as_raw_fd(), fd, flags) };
        }
        self.carriers.insert(own, Carrier::default());
        true
    }

    /// Whether other processes may have a session too.
    pub(crate) fn is_carried(&self, fd: c_int) -> bool {
        !self.carriers.is_empty() && self.carriers.contains_key(&self.own(fd))
    }

    /// The descriptors that sessions have for their own.
    pub(super) fn session_descriptors(&self) -> Vec<c_int> {
        let sessions = kinds::all().filter(|(_, kind)| *kind == Kind::Session);
        let mut all: Vec<_> = sessions.map(|(fd, _)| self.own(fd)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// All descriptors of a session that the application has.
    fn descriptors_of(&self, own: c_int) -> Vec<c_int> {
        standing_for(own, &self.aliases, kinds::get(own) == Kind::Session)
    }

    /// What a session's carrier is called.
    fn carrier_of(&mut self, own: c_int) -> Option<CarrierId> {
        let known = self.carriers.get(&own)?.id;
        let named = match known {
            Some(named) => named,
            None => {
                let fd = self.descriptors_of(own).into_iter().next()?;
                carried_by(fd, PATIENCE)?
            }
        };
        self.carriers.insert(own, Carrier { id: Some(named) });
        Some(named)
    }

    /// A descriptor of a session is passed on: the receiver finds its carrier named.
    pub(crate) fn pass_on(&mut self, fd: c_int) {
        let own = self.own(fd);
        if self.carry(own) {
            self.carrier_of(own);
        }
    }

    /// Gives a session to the daemon. Gives whether it has taken it: else it stays.
    pub(super) fn deposit(&mut self, own: c_int) -> bool {
        let Some(named) = self.carrier_of(own) else { return false };
        self.run();
        let now = clock::now();
        let Ok(parcel) = self.sessions.export(id(own), now) else { return false };
        if let Some(ends) = &parcel.ends {
            self.sessions.hold(ends, now + HELD);
        }
        let stack = self.attachment.number();
        match self.attachment.link.deposit(stack, named, now, &parcel.bytes) {
            Ok(()) => {
                self.turn();
                true
            }
            Err(error) => {
                report::say(&error.to_string());
                let age = clock::now() - now;
                match self.sessions.import(id(own), now + age, age, &parcel.bytes) {
                    Ok(_) => self.turn(),
                    Err(error) => report::say(&error.to_string()),
                }
                false
            }
        }
    }

    /// A session that was given away: its descriptors are carriers now, and no more.
    pub(super) fn let_go(&mut self, own: c_int) {
        let descriptors = self.descriptors_of(own);
        for fd in &descriptors {
            self.aliases.remove(fd);
            kinds::set(*fd, Kind::Elsewhere);
            // Each may be the one by which it is fetched.
            if self.claim_number(*fd).is_ok() {
                self.waiters.transfer((id(own), *fd), id(*fd), Mask::ALL);
            }
        }
        if kinds::get(own) == Kind::Internal {
            // The application has closed it, as far as it knows.
            internal::close(own);
        }
        // Who waited for it by a number at which the application has closed it does so by another.
        if let Some(fd) = descriptors.first().filter(|_| !descriptors.contains(&own)) {
            self.waiters.transfer_all(id(own), id(*fd), Mask::ALL);
        }
        self.replaced.retain(|other| *other != own);
        let carrier = self.carriers.remove(&own);
        if let Some(named) = carrier.and_then(|carrier| carrier.id) {
            self.note_given(named, descriptors);
        }
        // Who waits for it looks again.
        self.waiters.tell(id(own), Mask::ALL);
    }

    /// The application has closed the last descriptor of a session that other processes may have: the daemon ends it when
    /// nobody has it any more.
    pub(super) fn close_carried(&mut self, own: c_int) -> Option<Lingering> {
        let is_given = self.deposit(own);
        self.carriers.remove(&own);
        self.waiters.forget_session(id(own));
        let lingering = if is_given { None } else { self.sessions.close(id(own)) };
        self.turn();
        self.give_number_back(own, false);
        lingering
    }

    /// Has a session that is elsewhere come here. Gives what its descriptor is then.
    pub(crate) fn fetch(&mut self, fd: c_int) -> Kind {
        if kinds::get(fd) != Kind::Elsewhere {
            return kinds::get(fd);
        }
        let Some(named) = carried_by(fd, PATIENCE) else { return Kind::Stale };
        let close_on_exec = closes_on_exec(fd);
        let place = Place { flags: status_flags(fd), close_on_exec, ..Place::default() };
        let all: Vec<_> = self.carriers.keys().copied().collect();
        if let Some(own) = all.into_iter().find(|own| self.carrier_of(*own) == Some(named)) {
            // Another descriptor of this process has it.
            self.aliases.insert(fd, own);
            self.occupy(fd, place);
            self.joined(fd, own);
            return Kind::Session;
        }
        if self.claim_number(fd).is_err() {
            return Kind::Stale;
        }
        let has_come = self.bring(named, |sessions, now, age, bytes| {
            sessions.import(id(fd), now, age, bytes).map(drop)
        });
        if !has_come {
            return Kind::Stale;
        }
        self.occupy(fd, place);
        self.carriers.insert(fd, Carrier { id: Some(named) });
        self.turn();
        self.returned(fd, named);
        Kind::Session
    }

    /// A session that is elsewhere is closed here: nobody waits for it any more.
    pub(crate) fn forget(&mut self, fd: c_int) {
        self.waiters.forget_session(id(fd));
        self.waiters.halves.forget(id(fd));
        self.given.forget(fd);
    }

    /// Has a connection that the daemon or another process has come here: `import` is given the time, its age and its bytes.
    /// Gives whether it is here.
    fn bring(
        &mut self,
        named: CarrierId,
        import: impl FnOnce(&mut Sockets, u64, u64, &[u8]) -> Result<(), ImportError>,
    ) -> bool {
        let withdrawn = self.withdraw(named);
        let has_come = withdrawn.is_some_and(|(at, bytes)| {
            let now = clock::now();
            let imported = import(&mut self.sessions, now, now.saturating_sub(at), &bytes);
            if let Err(error) = &imported {
                report::say(&format!("a connection that does not arrive: {error}"));
            }
            imported.is_ok()
        });
        self.keep_quiet();
        has_come
    }

    /// A connection that the daemon or another process has: when it was exported, and its bytes. Packets for it come here then,
    /// which a stack worker takes in before the connection is there: so nothing is answered by a reset from before that until
    /// whoever asks says otherwise.
    fn withdraw(&mut self, named: CarrierId) -> Option<(u64, Vec<u8>)> {
        let until = clock::now() + RECALL;
        let mut asks = true;
        while clock::now() < until {
            if std::mem::take(&mut asks) {
                self.sessions.fall_quiet();
                match self.attachment.link.withdraw(self.attachment.number(), named) {
                    Ok(Withdrawal::Here(at, bytes)) => return Some((at, bytes)),
                    Ok(Withdrawal::Recalled) => self.keep_quiet(),
                    Err(error) => {
                        report::say(&error.to_string());
                        return None;
                    }
                }
            }
            match self.attachment.link.next_event() {
                Ok(Some(Received { message: Event::Parked(parked), .. })) if parked == named => {
                    asks = true;
                }
                Ok(Some(Received { message: Event::Lost(lost), .. })) if lost == named => {
                    return None;
                }
                // The other process may ask for one of this process meanwhile.
                Ok(Some(Received { message: Event::Recall(asked), .. })) => self.give(asked),
                Ok(Some(other)) => self.deferred.push(other),
                Ok(None) => {
                    let mut file =
                        libc::pollfd { fd: self.link(), events: libc::POLLIN, revents: 0 };
                    let mut step =
                        libc::timespec { tv_sec: 0, tv_nsec: i64::from(STEP) * 1_000_000 };
                    uncancelled::poll(&mut file, &mut step);
                    self.run();
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// Acts on what the daemon has said without being asked.
    pub(crate) fn heed(&mut self) {
        for event in std::mem::take(&mut self.deferred) {
            self.act(event);
        }
        if !self.attachment.is_there() {
            return;
        }
        loop {
            match self.attachment.link.next_event() {
                Ok(Some(event)) => self.act(event),
                Ok(None) => return,
                Err(_) => return self.doubt_daemon(),
            }
        }
    }

    /// The same for what it has said while it was asked something else, or something else was awaited: no file tells of that.
    pub(crate) fn heed_heard(&mut self) {
        if !self.deferred.is_empty() || self.attachment.link.has_heard() {
            self.heed();
        }
    }

    fn act(&mut self, Received { message, files }: Received<Event>) {
        match message {
            Event::Recall(asked) => self.give(asked),
            Event::Offered(offered) => self.take_offered(offered),
            Event::Linked(place) => self.adopt_link(place, false, files),
            Event::Unlinked(link) => self.end_link(link),
            Event::Parked(named) => self.come_back(named),
            Event::Lost(named) => self.lose(named),
            Event::Taken(listener) => self.leave_to_others(listener),
        }
    }

    /// Another process asks for a session of this one.
    fn give(&mut self, asked: CarrierId) {
        let all: Vec<_> = self.carriers.keys().copied().collect();
        let own = all.into_iter().find(|own| self.carrier_of(*own) == Some(asked));
        match own {
            Some(own) if self.deposit(own) => self.let_go(own),
            _ => {
                let _ = self.attachment.link.decline(asked);
            }
        }
    }

    /// A connection that another process was about to accept waits for this one.
    fn take_offered(&mut self, offered: Offered) {
        // Nobody would accept it here, or can any more: it is offered to another.
        if self.leaves_it_to_children() || !self.has_listener(offered.listener) {
            return;
        }
        self.bring(offered.id, Sockets::import_unheld);
        self.turn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_its_own_number_unless_another_one_is_there() {
        let mut aliases = HashMap::from([(7, 5), (9, 8)]);
        let sorted = |own, aliases: &HashMap<c_int, c_int>, is_session| {
            let mut all = standing_for(own, aliases, is_session);
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(5, &aliases, true), [5, 7]);
        assert_eq!(sorted(5, &aliases, false), [7], "closed, or a file is there");
        assert_eq!(sorted(6, &aliases, true), [6], "nothing else stands for it");
        aliases.insert(5, 8);
        assert_eq!(sorted(5, &aliases, true), [7], "another session's duplicate is there");
        assert_eq!(sorted(8, &aliases, true), [5, 8, 9]);
    }
}
