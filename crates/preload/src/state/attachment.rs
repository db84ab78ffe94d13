//! What a process has of the daemon, and having it anew when the daemon was restarted.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use client::session::{Knocker, Link, PLACEMENT_VARIABLE, Queues, SHARED, STACK, Shared};
use host::{Plan, Remote, Sessions, Wire};
use shm::SleepWord;
use shm::session::Placement;
use transport::Config;

use super::State;
use super::addresses::Addresses;
use crate::kinds::{self, Kind};
use crate::sockets::Sockets;
use crate::{clock, environment, internal, report};

/// Connections of a process at most, over each version of IP.
const CONNECTIONS: usize = 1 << 20;
/// Between two attempts to reach a daemon that is gone: ns.
const PATIENCE: u64 = 200_000_000;
/// The longest wait for an answer before it is looked whether the daemon is there.
const ANSWER: Duration = Duration::from_millis(100);
/// Between two looks for room in the ring of commands.
const ROOM: Duration = Duration::from_millis(1);

/// Where the stack runs.
#[derive(Debug)]
pub(crate) enum Way {
    /// Here: its packet queues.
    Inline(Box<Queues>),
    /// On a stack worker of the daemon: what both share.
    Shared(Shared),
}

/// The connection to the daemon, and what it gives a stack. Their descriptors are hidden from the application.
pub(crate) struct Attachment {
    /// Threads that ask there keep it while others have the state.
    pub(crate) link: ManuallyDrop<Arc<Link>>,
    pub(crate) way: ManuallyDrop<Way>,
    hidden: Vec<RawFd>,
    /// The daemon is gone: when it is looked for next, ns.
    gone: Option<u64>,
}

impl Attachment {
    /// Meets the daemon. `stays`: where the stack runs already.
    pub(super) fn new(name: &str, stays: Option<Placement>) -> Result<Self, client::Error> {
        let hidden = RefCell::new(Vec::new());
        // Those of an attempt that fails are closed like any other: they are hidden when all is well.
        let keep = |file: OwnedFd| {
            let file = internal::raise(file);
            hidden.borrow_mut().push(file.as_raw_fd());
            file
        };
        let link = Link::open(environment::sessions_socket().as_deref(), name, keep)?;
        let wanted = environment::placement().unwrap_or_else(|other| {
            report::say(&format!("{PLACEMENT_VARIABLE} is inline or shared, not {other}"));
            None
        });
        let placement = stays.or(wanted).unwrap_or(link.placement());
        let way = match placement {
            Placement::Inline => Way::Inline(Box::new(link.open_stack(&STACK, keep)?)),
            Placement::Shared => Way::Shared(link.open_shared(&SHARED, keep)?),
        };
        let (link, way) = (ManuallyDrop::new(Arc::new(link)), ManuallyDrop::new(way));
        let hidden = hidden.into_inner();
        for fd in &hidden {
            kinds::set(*fd, Kind::Internal);
        }
        Ok(Self { link, way, hidden, gone: None })
    }

    /// The sessions that go with it: none yet.
    pub(super) fn sockets(&mut self) -> Result<Sockets, client::Error> {
        let none = |what| client::Error::System { what, source: std::io::Error::last_os_error() };
        match &mut *self.way {
            Way::Inline(queues) => {
                let config = Config {
                    connections_v4: CONNECTIONS,
                    connections_v6: CONNECTIONS,
                    seed: queues.seed,
                    ..Config::default()
                };
                let sessions = Sessions::new(config);
                let sessions = sessions.map_err(|_| none("memory for the stack"))?;
                Ok(Sockets::Inline(Box::new(sessions)))
            }
            Way::Shared(shared) => {
                let plan = Plan::new(SHARED.sessions, SHARED.chunks);
                let end = plan.and_then(|plan| plan.process(&shared.segment));
                let (Some(end), Some(knocker)) = (end, shared.knocker.take()) else {
                    return Err(none("the memory of sessions"));
                };
                let wire = Box::new(Knocking(knocker));
                let mut remote = Remote::new(end, wire);
                if !environment::wants_links() {
                    remote.avoid_paths();
                }
                Ok(Sockets::Shared(Box::new(remote)))
            }
        }
    }

    /// Whether the daemon is there, as far as is known.
    pub(crate) fn is_there(&self) -> bool {
        self.gone.is_none()
    }

    /// The stack's number.
    pub(crate) fn number(&self) -> u32 {
        match &*self.way {
            Way::Inline(queues) => queues.number,
            Way::Shared(shared) => shared.number,
        }
    }

    /// Readable when the daemon has rung.
    pub(super) fn bell(&self) -> RawFd {
        match &*self.way {
            Way::Inline(queues) => queues.as_fd().as_raw_fd(),
            Way::Shared(shared) => shared.as_fd().as_raw_fd(),
        }
    }

    /// Takes back what was rung.
    pub(super) fn clear(&self) {
        match &*self.way {
            Way::Inline(queues) => queues.clear(),
            Way::Shared(shared) => shared.clear(),
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        show(&self.hidden);
        // SAFETY: dropped here once, and used by nobody afterwards.
        unsafe {
            ManuallyDrop::drop(&mut self.way);
            ManuallyDrop::drop(&mut self.link);
        }
    }
}

/// From now on what closes these descriptors finds them.
pub(super) fn show(hidden: &[RawFd]) {
    for fd in hidden {
        kinds::set(*fd, Kind::Kernel);
    }
}

/// The way to the stack worker. It is dropped after its [`Attachment`], which has its descriptors in its list, and when no thread
/// waits there any more.
#[derive(Debug)]
struct Knocking(Knocker);

impl Wire for Knocking {
    fn ring(&self, sleeps: SleepWord<'_>) {
        self.0.ring(sleeps);
    }

    fn wait(&self) -> bool {
        self.0.wait(ANSWER)
    }

    fn pause(&self) -> bool {
        self.0.pause(ROOM)
    }
}

impl State {
    /// The doorbell is in error: the daemon may be gone.
    pub(crate) fn doubt_daemon(&mut self) {
        if self.attachment.is_there() && self.attachment.link.is_gone() {
            report::say("the daemon is gone; connections wait for it");
            self.attachment.gone = Some(clock::now());
            if let Sockets::Shared(remote) = &mut self.sessions {
                remote.lose();
            }
        }
    }

    /// Shows the daemon the connections from now on, and which packets belong to them.
    pub(super) fn show_connections(&mut self) {
        if let (Way::Inline(queues), Sockets::Inline(sessions)) =
            (&mut *self.attachment.way, &mut self.sessions)
        {
            if let Some((writer, key)) = queues.take_claims() {
                sessions.claim_in(writer, key);
            }
            if let Some(writer) = queues.take_connections() {
                sessions.show_in(writer);
            }
        }
    }

    /// Looks for a daemon that was gone, now and then. Listeners go on where it comes back, and connections, where the stack is
    /// this process's and their peers have not given up.
    pub(crate) fn look_for_daemon(&mut self) {
        let now = clock::now();
        if self.attachment.gone.is_none_or(|at| now < at) {
            return;
        }
        self.attachment.gone = Some(now + PATIENCE);
        // A stack of this process's own has connections, which outlive the daemon.
        let stays = (!self.sessions.is_shared()).then_some(Placement::Inline);
        match Attachment::new(&self.name, stays) {
            Ok(attachment) => {
                if let Err(error) = self.meet_again(attachment) {
                    report::say(&error.to_string());
                    return;
                }
                self.routes.clear();
                self.addresses = Addresses::new(self.attachment.link.addresses());
                // They are connections to the daemon that is gone.
                self.carriers.clear();
                self.lose_given();
                self.lease_again();
                self.show_connections();
                self.prove_all();
                report::say("the daemon is back");
            }
            Err(error) => report::say(&error.to_string()),
        }
    }

    /// The daemon is back: what it has to know of a stack here, or a stack there anew.
    fn meet_again(&mut self, mut attachment: Attachment) -> Result<(), client::Error> {
        match (&mut self.sessions, &mut *attachment.way) {
            (Sockets::Inline(_), Way::Inline(_)) => {
                self.attachment = attachment;
                self.outlive_daemon();
            }
            _ => {
                let old = std::mem::replace(&mut self.sessions, attachment.sockets()?);
                // First the descriptors are shown that are closed with the old sessions.
                self.attachment = attachment;
                if let (Sockets::Shared(new), Sockets::Shared(old)) = (&mut self.sessions, &old) {
                    new.bury(old);
                }
                drop(old);
                self.listen_again();
                self.datagrams_again();
            }
        }
        Ok(())
    }
}
