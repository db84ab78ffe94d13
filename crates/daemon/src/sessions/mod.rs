//! Processes with stacks of their own: who is there, what each has, and taking it all back.
//!
//! | module | thread | job |
//! | --- | --- | --- |
//! | `serving` | its own | who may come to the sessions socket |
//! | `guest` | the user's | requests are answered, sockets looked at, memory is made and unmapped |
//! | `stacks` | control | stacks: given to the workers, taken back |
//! | `errands` | the user's | connections are read, and go to the daemon's own stack or come from there |
//! | `moves` | control | which process has which connection |
//! | `lodging` | the user's | a process comes to a stack worker |
//! | `shared` | their own | stack workers, which run the stacks of processes that have placed them here |
//! | `parking` | its own | the daemon's own stack, which has the connections that no process has |
//! | `listeners`, `leases`, `routes` | control | what is served, local ports, which way packets go |
//! | `vacancies` | control | listeners that nobody serves any more, and whose sockets others have |
//! | `sockets` | the user's | which sockets listen, as the kernel tells |
//! | `links` | control, the user's | processes are introduced to each other |
//! | `bounds` | control | what a user may have |
//! | `dismissal` | the user's | a process that may not stay is told to go |
//! | `show` | control | all of it, for people |
//! | `connections` | the API's | stacks' connections and UDP sockets, for people |
//! | `remains`, `last_words` | the user's | what a process that died has left: its peers are told |

mod bounds;
mod connections;
mod dismissal;
mod errands;
mod guest;
mod last_words;
mod leases;
mod links;
mod listeners;
mod lodging;
mod moves;
mod parking;
mod remains;
mod routes;
mod secret;
mod serving;
mod shared;
mod show;
mod sockets;
mod stacks;
#[cfg(test)]
mod tests;
mod vacancies;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use control::config;
use control::state::KeptLease;
use forward::state::{DEFAULT_VRF, Interfaces};
use forward::steering::{ListenerId, Steering};
use graph::{StackCounters, StackId};
use shm::Segment;
use shm::attach::{Refusal, RefusalKind};
use shm::connections::ConnectionsReader;
use shm::session::{Hello, OpenStack, PROTOCOL, Placement, Reply, VERSION, Welcome};
use tokio::sync::mpsc;

use crate::processes::{
    Accounts, Answer, Control, Door, Holders, Paces, Process, Sparing, check_name, invalid,
    no_resources, printable, unknown,
};
use crate::routing::Routing;
use crate::service::Threads;
use crate::workers::Workers;

pub(crate) use connections::{Look, Wanted};
use dismissal::Dismissal;
use last_words::LastWords;
use links::Links;
use listeners::Membership;
use moves::Moves;
use secret::Secret;
use serving::{Serving, check_permission};
pub(crate) use sockets::listening;
use stacks::{Left, Start};
use vacancies::Vacancies;

/// How long processes may take to come back after a restart: they look for the daemon five times a second.
const RETURNS: Duration = Duration::from_secs(2);

/// What a daemon lends to those who ask for something about sessions.
pub(crate) struct Lent<'a> {
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) workers: &'a Workers,
    pub(crate) routing: &'a mut Routing,
}

/// A daemon with sessions.
pub(crate) trait Host: 'static {
    /// What is asked is done with this.
    fn lend(&mut self) -> Lent<'_>;
}

/// Everything about sessions.
pub(crate) struct Sessions {
    /// The section of the configuration that is in force.
    config: Arc<ArcSwap<config::Sessions>>,
    list: BTreeMap<u32, Session>,
    last: u32,
    /// What the log says of processes that come and go.
    log: Sparing,
    /// What it says of servers that lose their port: not left out because many come and go.
    losses: Sparing,
    /// Which packets are whose.
    steering: Steering,
    /// Users' memory.
    accounts: Accounts,
    paces: Paces,
    /// What numbers for stacks are made of.
    secret: Secret,
    /// Where the latest lease began.
    last_lease: u16,
    /// Ranges of ports for processes that are expected back: first ports, and users.
    reserved: BTreeMap<u16, u32>,
    moves: Moves,
    links: Links,
    vacancies: Vacancies,
    /// Until then processes are expected back that an earlier daemon had.
    returning: Option<Instant>,
    /// Those that run stacks.
    threads: Arc<Threads>,
}

/// A process.
struct Session {
    name: String,
    library: String,
    process: Process,
    stacks: BTreeMap<u32, Stack>,
    /// Told when the process may not stay.
    dismissal: Dismissal,
    /// What the process is told without having asked.
    news: mpsc::Sender<News>,
}

/// What a process is told without having asked, and what goes along.
type News = Answer<Reply>;

/// A stack of a process.
struct Stack {
    id: StackId,
    asked: OpenStack,
    /// Memory that belongs to it beside its queues, what its sessions take if a stack worker runs it; else 0: bytes.
    more: usize,
    /// The stack worker that runs it.
    worker: Option<u16>,
    since: Instant,
    segment: Arc<Segment>,
    /// Its connections, as it says.
    connections: Arc<ConnectionsReader>,
    /// By worker.
    counters: Vec<Arc<StackCounters>>,
    /// What is to be given to workers when the process has mapped its memory.
    start: Option<Start>,
    listeners: BTreeMap<ListenerId, Membership>,
    /// First ports of its ranges.
    leases: BTreeSet<u16>,
}

impl Stack {
    /// Its process has mapped its memory. Before that, the process can take pages out, and who touches the memory meanwhile waits.
    fn is_started(&self) -> bool {
        self.start.is_none()
    }

    /// A stack worker runs it.
    fn is_lodged(&self) -> bool {
        self.more > 0
    }
}

impl Session {
    fn uid(&self) -> u32 {
        self.process.credentials.uid
    }
}

/// Opens the sessions socket.
///
/// Errors: no thread; a kernel that tells network namespaces not apart.
pub(crate) fn open<H: Host>(
    (listener, path): (UnixListener, &Path),
    sessions: &Sessions,
    control: Control<H>,
    holders: Arc<Holders>,
) -> io::Result<()> {
    let threads = Arc::clone(&sessions.threads);
    let config = Arc::clone(&sessions.config);
    let serving = Serving::new(config, (control, holders), path, threads)?;
    Door::new(listener, serving).open()
}

impl Sessions {
    /// Nobody yet. `secret`: random.
    pub(crate) fn new(config: &config::Sessions, steering: Steering, secret: [u64; 2]) -> Self {
        Self {
            config: Arc::new(ArcSwap::from_pointee(config.clone())),
            list: BTreeMap::new(),
            last: 0,
            log: Sparing::default(),
            losses: Sparing::default(),
            steering,
            accounts: Accounts::default(),
            paces: Paces::default(),
            secret: Secret::new(secret),
            last_lease: 0,
            reserved: BTreeMap::new(),
            moves: Moves::default(),
            links: Links::default(),
            vacancies: Vacancies::default(),
            returning: None,
            threads: Arc::default(),
        }
    }

    /// The threads that run stacks, to be looked at once a second.
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The daemon was restarted: processes that it had before come back within a moment, and what comes for their connections
    /// until then is not answered. `leases`: what they leased is nobody else's until then.
    pub(crate) fn expect_returns(&mut self, leases: &[KeptLease]) {
        self.steering.keep_quiet(true);
        self.returning = Some(Instant::now() + RETURNS);
        self.reserved = leases.iter().map(|lease| (lease.first, lease.uid)).collect();
        // Who comes anew meanwhile is unlikely to get what another has yet to ask for: ranges used to be given from the first on.
        let all: Vec<u16> = self.config.load().ports.leases().collect();
        let random = self.secret.claims_key(0)[0] as usize;
        self.last_lease = all.get(random % all.len().max(1)).copied().unwrap_or(0);
    }

    /// The section has changed: who may not stay is told to go.
    pub(crate) fn apply(&mut self, config: &config::Sessions) {
        self.config.store(Arc::new(config.clone()));
        for session in self.list.values() {
            if check_permission(config, &session.process).is_err() {
                session.dismissal.dismiss("the configuration does not allow it any more");
            }
        }
        self.dismiss_vacancies();
    }

    /// Frees what no worker looks at any more. To be called now and then.
    pub(crate) fn reclaim(&mut self) {
        self.steering.reclaim();
    }

    /// A process says who it is.
    fn attach(
        &mut self,
        hello: Hello,
        (process, dismissal, news): (Process, Dismissal, mpsc::Sender<News>),
        interfaces: &Interfaces,
    ) -> Result<Welcome, Refusal> {
        let config = self.config.load_full();
        check_permission(&config, &process)?;
        let Hello { protocol, library, name } = hello;
        if protocol != PROTOCOL {
            let library = printable(&library);
            let problem = format!(
                "the process's library {library} speaks version {protocol} of the sessions \
                 protocol, millraced {VERSION} speaks version {PROTOCOL}; use the library of the \
                 daemon's version"
            );
            return Err(Refusal::new(RefusalKind::Version, problem));
        }
        check_name(&name, &library)?;
        let uid = process.credentials.uid;
        // Nobody keeps root out.
        let alike = self.list.values().filter(|other| (other.uid() == 0) == (uid == 0)).count();
        let most = usize::from(config.most);
        if alike >= most {
            let problem = format!("{most} processes are there already; raise sessions.most");
            return Err(no_resources(problem));
        }
        self.last = self.last.wrapping_add(1).max(1);
        let client = self.last;
        let pid = process.credentials.pid;
        self.log.say("processes", || {
            tracing::info!(process = client, pid, uid, "{name} connected");
        });
        let stacks = BTreeMap::new();
        let session = Session { name, library, process, stacks, dismissal, news };
        self.list.insert(client, session);
        let addresses = own_addresses(interfaces);
        let placement = match config.placement {
            config::Placement::Inline => Placement::Inline,
            config::Placement::Shared => Placement::Shared,
        };
        let daemon = VERSION.to_owned();
        Ok(Welcome { protocol: PROTOCOL, daemon, client, addresses, placement })
    }

    /// A process goes. Its stacks are taken back after this, and then it is [forgotten](Self::release).
    fn begin_release(&mut self, id: u32) {
        let Some(session) = self.list.remove(&id) else { return };
        self.unlink_all(|end| end.process == id);
        self.vacate(id, &session);
        self.list.insert(id, session);
    }

    /// Takes back a stack of a process that goes. Gives what is left, to be waited for by whoever asked; `None`: it has no more.
    fn release_stack(&mut self, id: u32, workers: &Workers) -> Option<Left> {
        let (_, stack) = self.list.get_mut(&id)?.stacks.pop_first()?;
        Some(self.take_back(stack, workers))
    }

    /// A process has gone, and has no stacks any more.
    fn release(&mut self, id: u32, why: &str) {
        let Some(session) = self.list.remove(&id) else { return };
        self.forget_process(id);
        self.log.say("processes", || {
            let name = &session.name;
            tracing::info!(process = id, "{name} is gone: {why}; all it had was taken back");
        });
        if !self.list.values().any(|other| other.uid() == session.uid()) {
            self.paces.forget(session.uid());
        }
    }

    fn session(&mut self, id: u32) -> Result<&mut Session, Refusal> {
        self.list.get_mut(&id).ok_or_else(|| invalid("hello was not said"))
    }

    fn stack(&mut self, id: u32, number: u32) -> Result<&mut Stack, Refusal> {
        let stack = self.session(id)?.stacks.get_mut(&number);
        stack.ok_or_else(|| unknown(format!("there is no stack {number} of this process")))
    }

    /// Whose a stack is. There may be thousands: they are not searched.
    fn owner(&self, id: StackId) -> Option<(u32, &Session, &Stack)> {
        let process = self.steering.process_of(id)?;
        let session = self.list.get(&process)?;
        Some((process, session, session.stacks.get(&id.number())?))
    }

    /// As whose stack an error is about, for people.
    fn whose(&self, id: StackId) -> String {
        match self.owner(id) {
            Some((_, session, _)) => {
                let pid = session.process.credentials.pid;
                format!("stack {id} of {} (process {pid})", session.name)
            }
            None => "a stack that has ended".to_owned(),
        }
    }
}

/// Addresses at which stacks can be reached from elsewhere: they are in the default VRF.
fn own_addresses(interfaces: &Interfaces) -> Vec<IpAddr> {
    let list = || interfaces.list.iter().flatten().filter(|one| one.vrf == DEFAULT_VRF);
    let four = list().flat_map(|one| &one.addresses4).map(|(address, _)| IpAddr::V4(*address));
    let six = list().flat_map(|one| &one.addresses6).map(|(address, _)| address);
    let six = six.filter(|address| !address.is_unicast_link_local());
    four.chain(six.map(|address| IpAddr::V6(*address))).collect()
}
