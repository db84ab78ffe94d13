//! What a process has of the daemon, and having it anew when the daemon was restarted.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use client::session::{Link, Queues};
use shm::session::OpenStack;

use super::State;
use crate::kinds::{self, Kind};
use crate::{clock, environment, internal, report};

/// Slots of each ring, and bytes of packet in one: a packet of 1,500 bytes takes one.
const SLOTS: u32 = 1024;
pub(super) const CAPACITY: u32 = 2048 - 64;
/// Places for claims: flows of listeners.
const CLAIMS: u32 = 1 << 16;
/// Connections that the daemon is shown.
const SHOWN: u32 = 1 << 14;
/// Between two attempts to reach a daemon that is gone: ns.
const PATIENCE: u64 = 200_000_000;

/// The connection to the daemon and a stack's packet queues. Their descriptors are hidden from the application.
pub(crate) struct Attachment {
    pub(crate) link: ManuallyDrop<Link>,
    pub(crate) queues: ManuallyDrop<Queues>,
    hidden: Vec<RawFd>,
    /// The daemon is gone: when it is looked for next, ns.
    gone: Option<u64>,
}

impl Attachment {
    /// Meets the daemon.
    pub(super) fn new(name: &str) -> Result<Self, client::Error> {
        let hidden = RefCell::new(Vec::new());
        // Those of an attempt that fails are closed like any other: they are hidden when all is well.
        let keep = |file: OwnedFd| {
            let file = internal::raise(file);
            hidden.borrow_mut().push(file.as_raw_fd());
            file
        };
        let asked =
            OpenStack { slots: SLOTS, capacity: CAPACITY, claims: CLAIMS, connections: SHOWN };
        let link = Link::open(environment::sessions_socket().as_deref(), name, keep)?;
        let queues = ManuallyDrop::new(link.open_stack(&asked, keep)?);
        let (link, hidden) = (ManuallyDrop::new(link), hidden.into_inner());
        for fd in &hidden {
            kinds::set(*fd, Kind::Internal);
        }
        Ok(Self { link, queues, hidden, gone: None })
    }

    /// Whether the daemon is there, as far as is known.
    pub(crate) fn is_there(&self) -> bool {
        self.gone.is_none()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        show(&self.hidden);
        // SAFETY: dropped here once, and used by nobody afterwards.
        unsafe {
            ManuallyDrop::drop(&mut self.queues);
            ManuallyDrop::drop(&mut self.link);
        }
    }
}

/// From now on what closes these descriptors finds them.
fn show(hidden: &[RawFd]) {
    for fd in hidden {
        kinds::set(*fd, Kind::Kernel);
    }
}

impl State {
    /// The doorbell is in error: the daemon may be gone.
    pub(crate) fn doubt_daemon(&mut self) {
        if self.attachment.is_there() && self.attachment.link.is_gone() {
            report::say("the daemon is gone; connections wait for it");
            self.attachment.gone = Some(clock::now());
        }
    }

    /// Shows the daemon the connections from now on, and which packets belong to them.
    pub(super) fn show_connections(&mut self) {
        if let Some((writer, key)) = self.attachment.queues.take_claims() {
            self.sessions.claim_in(writer, key);
        }
        if let Some(writer) = self.attachment.queues.take_connections() {
            self.sessions.show_in(writer);
        }
    }

    /// Looks for a daemon that was gone, now and then. Listeners and connections go on where it comes back before their peers
    /// give up.
    pub(crate) fn look_for_daemon(&mut self) {
        let now = clock::now();
        if self.attachment.gone.is_none_or(|at| now < at) {
            return;
        }
        self.attachment.gone = Some(now + PATIENCE);
        match Attachment::new(&super::program()) {
            Ok(attachment) => {
                self.attachment = attachment;
                self.outlive_daemon();
                self.routes.clear();
                // They are connections to the daemon that is gone.
                self.carriers.clear();
                self.lease_again();
                self.show_connections();
                self.prove_all();
                report::say("the daemon is back");
            }
            Err(error) => report::say(&error.to_string()),
        }
    }
}
