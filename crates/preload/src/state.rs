//! What is behind the lock: the stack, its sockets, and who waits for them.

mod addresses;
mod alone;
mod asking;
mod attachment;
pub(crate) mod bound;
mod carriers;
mod changing;
mod datagrams;
mod early;
mod held;
mod leaving;
mod links;
mod listener;
mod options;
mod owner;
mod places;
mod proving;
mod route;
mod session;
mod sleep;

use std::collections::HashMap;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use client::session::{Links, Queues, Ways};
use shm::attach::Received;
use shm::session::{Event, Routed, TransportProtocol};
use shm::{Courtesy, Spin};

use crate::clock;
use crate::internal::{self, Hidden};
use crate::sockets::Sockets;
use crate::waiting::Waiters;

pub(crate) use alone::{decides, is_alone};
pub(crate) use asking::{Asks, lease};
use attachment::{Attachment, Way};
pub(crate) use carriers::carried_by;
pub(crate) use datagrams::{
    STAMPS, adopt_datagrams, bind_anywhere, bind_datagrams, connect_datagrams, connected_by_kernel,
    disconnect_datagrams, is_the_kernels, open_datagrams, serve_datagrams,
};
pub(crate) use held::Awaited;
pub(crate) use listener::{close_listener, closes_on_exec, listen_at, status_flags};
pub(crate) use options::word;
pub(crate) use owner::sets_owner;
pub(crate) use session::take_over;

/// Whoever sends and has not looked for packets for so long does it then: ns.
const LULL: u64 = 1_000_000;

/// A session's place among the descriptors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// What `F_SETFL` has set: shared by all descriptors of the session.
    pub(crate) flags: c_int,
    /// An error that came after data that a call gave: the next one gives it (`sk_err`).
    pub(crate) error: c_int,
    /// `FD_CLOEXEC`, as the application believes it to be.
    pub(crate) close_on_exec: bool,
    /// Who gets its signals.
    pub(crate) owner: owner::Owner,
    /// The file behind it is a placeholder of ours, to be used again.
    pub(crate) reusable: bool,
    /// How many sessions began before it.
    pub(crate) born: u32,
    /// It is connected no more (`AF_UNSPEC`), nor anew.
    pub(crate) dissolved: bool,
}

/// Everything that a process has.
pub(crate) struct State {
    /// What the process calls itself: the thread that minds the stack has another name.
    name: String,
    pub(crate) attachment: Attachment,
    addresses: addresses::Addresses,
    pub(crate) sessions: Sockets,
    pub(crate) waiters: Waiters,
    places: Vec<Place>,
    listeners: HashMap<c_int, listener::Listener>,
    chosen: bound::Chosen,
    early: early::Early,
    untouched: options::Untouched,
    datagrams: HashMap<c_int, datagrams::Datagrams>,
    pub(crate) changing: changing::Changing,
    /// Listeners to which the daemon was told to steer no more, and those that it was shown, or told of.
    given_back: u64,
    shown: u64,
    /// An epoll instance: what the kernel has for those UDP sockets that somebody waits for.
    company: Option<Hidden>,
    routes: HashMap<(TransportProtocol, SocketAddr), (u64, Routed)>,
    /// Sessions in which calls wait, by their own descriptors.
    held: held::Held,
    /// Descriptors of sessions that have others: by each, the session's own.
    aliases: HashMap<c_int, c_int>,
    /// Sessions' own descriptors at which the application has something else by now.
    replaced: Vec<c_int>,
    /// A descriptor at which the application is about to put something else: it is not closed meanwhile.
    replacing: Option<c_int>,
    /// Sessions that other processes may have too, by their own descriptors.
    carriers: HashMap<c_int, carriers::Carrier>,
    /// Those that others have taken while somebody waited for them here.
    given: carriers::Given,
    /// What the daemon has said, and nobody has acted on yet.
    deferred: Vec<Received<Event>>,
    /// To other processes of this machine.
    pub(crate) links: Links,
    acquaintances: links::Acquaintances,
    /// How many sessions began.
    births: u32,
    base: Hidden,
    /// Placeholders for the next sessions, the lowest last.
    spares: Vec<c_int>,
    /// How many placeholders are made before any is kept again.
    scarce: usize,
    /// How long to look for packets before a sleep.
    pub(crate) spin: Spin,
    /// Whether others get the core meanwhile.
    pub(crate) courtesy: Courtesy,
    /// How often the stack was run.
    pub(crate) rounds: u64,
    /// When it was run last: ns.
    ran_at: u64,
    /// A session has had an owner.
    pub(crate) is_owned: bool,
    /// This process has forked: when it did so last, ns.
    pub(crate) forked: Option<u64>,
    /// New connections are left to the processes that were forked.
    rests: bool,
    /// Listeners that were closed after a fork, and are kept for the child for a moment.
    lingering: Vec<listener::Lingering>,
}

impl State {
    /// Meets the daemon.
    pub(crate) fn attach() -> Result<Self, client::Error> {
        let name = program();
        let mut attachment = Attachment::new(&name, None)?;
        let none = |what| client::Error::System { what, source: std::io::Error::last_os_error() };
        let base = internal::base().ok_or_else(|| none("a socket that stands for sessions"))?;
        let sessions = attachment.sockets()?;
        let addresses = addresses::Addresses::new(attachment.link.addresses());
        let mut state = Self {
            name,
            attachment,
            addresses,
            sessions,
            waiters: Waiters::default(),
            places: Vec::new(),
            listeners: HashMap::new(),
            chosen: bound::Chosen::default(),
            early: early::Early::default(),
            untouched: options::Untouched::default(),
            datagrams: HashMap::new(),
            changing: changing::Changing::default(),
            given_back: 0,
            shown: 0,
            company: None,
            routes: HashMap::new(),
            held: held::Held::default(),
            aliases: HashMap::new(),
            replaced: Vec::new(),
            replacing: None,
            carriers: HashMap::new(),
            given: carriers::Given::default(),
            deferred: Vec::new(),
            links: Links::default(),
            acquaintances: links::Acquaintances::default(),
            births: 0,
            base,
            spares: Vec::new(),
            scarce: 0,
            spin: Spin::default(),
            courtesy: Courtesy::default(),
            rounds: 0,
            ran_at: 0,
            is_owned: false,
            forked: None,
            rests: false,
            lingering: Vec::new(),
        };
        state.show_connections();
        Ok(state)
    }

    /// Brings what the daemon is shown of the connections up to date, every 100 ms at most.
    pub(crate) fn show_changes(&mut self) {
        self.sessions.look(clock::now(), self.links.refused());
    }

    /// Takes in the packets that came, acts on timers, sends what is to be sent, and tells who waits. Gives how many came.
    pub(crate) fn run(&mut self) -> usize {
        self.rounds = self.rounds.wrapping_add(1);
        let now = clock::now();
        self.ran_at = now;
        if !self.attachment.is_there() {
            self.look_for_daemon();
        }
        let Self { attachment, sessions, links, .. } = self;
        let mut came = match (&mut *attachment.way, sessions) {
            (Way::Inline(queues), Sockets::Inline(sessions)) => {
                let Queues { inbound, outbound, .. } = &mut **queues;
                let mut ways = Ways::new(outbound, &mut links.exits);
                inbound.receive(|packets| sessions.input(now, packets, &mut ways))
            }
            (_, Sockets::Shared(remote)) => {
                let came = remote.hear();
                if remote.is_lost() {
                    self.doubt_daemon();
                }
                came
            }
            (_, Sockets::Inline(_)) => 0,
        };
        if self.links.has_packets() {
            came += self.receive_by_links(now);
        }
        self.turn_at(now);
        came
    }

    /// The same without looking for packets: after a call that left something to send.
    pub(crate) fn turn(&mut self) {
        self.turn_at(clock::now());
    }

    /// The same after data was sent: whoever does nothing else hears of the peer, too.
    pub(crate) fn turn_or_run(&mut self) {
        let now = clock::now();
        if now >= self.ran_at + LULL {
            self.run();
        } else {
            self.turn_at(now);
        }
    }

    fn turn_at(&mut self, now: u64) {
        let Self { attachment, sessions, waiters, links, .. } = self;
        match (&mut *attachment.way, &mut *sessions) {
            (Way::Inline(queues), Sockets::Inline(sessions)) => {
                sessions.turn(now, &mut Ways::new(&mut queues.outbound, &mut links.exits));
                queues.outbound.ring();
                links.exits.ring();
            }
            (_, Sockets::Shared(remote)) => remote.ring(),
            (_, Sockets::Inline(_)) => {}
        }
        while let Some(ready) = sessions.next_ready() {
            waiters.tell(ready.id, ready.woken);
            if self.is_owned {
                let place = self.places.get(ready.id.0 as usize);
                let fd = ready.id.0 as c_int;
                let signal = |place: &Place| place.owner.signal(fd, place.flags, ready.woken);
                place.into_iter().for_each(signal);
            }
        }
        if waiters.sleepers > 0 {
            self.mind_sleepers();
        }
    }

    /// Other threads sleep: their doorbell has to ring, and no timer may be earlier than they know.
    fn mind_sleepers(&mut self) {
        if let Some(deadline) = self.sessions.next_deadline() {
            self.waiters.hurry(deadline);
        }
        if !self.arm() {
            self.waiters.hurry(0);
        }
    }

    /// Has the daemon and the other ends of links ring when something comes. `false`: there is something already.
    fn arm(&mut self) -> bool {
        let is_there = self.attachment.is_there();
        match (&mut *self.attachment.way, &mut self.sessions) {
            (Way::Inline(queues), sessions) => {
                // What waits for room in a link may wait for nothing else.
                let starved = queues.outbound.is_starved();
                let full = sessions.wants_turn() && (starved || !self.links.exits.is_starved());
                let network = !is_there || queues.arm(full);
                self.links.arm() && network
            }
            (Way::Shared(_), Sockets::Shared(remote)) => {
                if is_there {
                    remote.ring();
                    remote.sleeps().announce();
                }
                !(is_there && remote.has_events())
            }
            (Way::Shared(_), Sockets::Inline(_)) => true,
        }
    }

    /// Nobody need ring any more.
    pub(crate) fn disarm(&self) {
        match (&*self.attachment.way, &self.sessions) {
            (Way::Inline(queues), _) => {
                queues.withdraw();
                self.links.withdraw();
            }
            (Way::Shared(_), Sockets::Shared(remote)) => remote.sleeps().withdraw(),
            (Way::Shared(_), Sockets::Inline(_)) => {}
        }
    }

    /// Whether something has come from the daemon, or by a link.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        match (&*self.attachment.way, &self.sessions) {
            (Way::Inline(queues), _) => queues.inbound.has_packets() || self.links.has_packets(),
            (Way::Shared(_), Sockets::Shared(remote)) => remote.has_events(),
            (Way::Shared(_), Sockets::Inline(_)) => false,
        }
    }

    /// After a call that may have left something to send that is no answer to wait for.
    pub(crate) fn settle(&mut self) {
        if self.waiters.sleepers > 0 && self.sessions.wants_turn() {
            self.turn();
        }
    }

    /// Readable when another end of a link has rung, or is gone; none while there are no links.
    pub(crate) fn link_bells(&self) -> c_int {
        self.links.bells().map_or(-1, |bells| bells.as_raw_fd())
    }

    /// Readable when the daemon has said something; none while it is gone.
    pub(crate) fn link(&self) -> c_int {
        if self.attachment.is_there() { self.attachment.link.as_fd().as_raw_fd() } else { -1 }
    }

    /// Readable when a worker has rung; none while the daemon is gone.
    pub(crate) fn doorbell(&self) -> c_int {
        if self.attachment.is_there() { self.attachment.bell() } else { -1 }
    }
}

/// The name of the calling thread: that of the program, where it has not changed it.
fn program() -> String {
    let mut name = [0_u8; 17];
    // SAFETY: room for the sixteen bytes that it writes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name: String = name
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte))
        .filter(|letter| letter.is_ascii_graphic())
        .collect();
    if name.is_empty() { "program".to_owned() } else { name }
}
