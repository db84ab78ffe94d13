//! Client processes: who is attached, what each has, and taking it all back.
//!
//! | module | thread | job |
//! | --- | --- | --- |
//! | `attaching` | its own | who may come to the attach socket |
//! | `serve` | the user's | requests are answered, memory is made and unmapped |
//! | `open`, `own_queue`, `bounds`, `watch` | control | what was asked is done, as here |
//! | `stages` | all | queues on their way from a request to the workers and back |
//! | `permission` | both | who may attach |

mod attaching;
mod bounds;
mod open;
mod own_queue;
mod permission;
mod serve;
mod stages;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use control::{Config, api};
use dpdk::DeviceMemory;
use graph::{ClientCounters, ClientPorts, PortId};
use shm::Segment;
use shm::attach::{
    Hello, Open, PROTOCOL, PeerCredentials, PortInfo, Refusal, RefusalKind, VERSION, Welcome,
};

use crate::ports::{Devices, Ports};
use crate::processes::{
    Accounts, Control, Door, Holders, Paces, Process, Sparing, check_name, no_resources, printable,
};
use crate::workers::Workers;

use attaching::{Attaching, Rules};
use own_queue::Retired;
use permission::Allowed;
use stages::{Left, Start};
use watch::Told;

/// Numbers of ports in packets' marks.
const NUMBERS: usize = 256;

/// A daemon with clients.
pub(crate) trait Host: 'static {
    /// What is asked is done with this.
    fn lend_to_clients(&mut self) -> Lent<'_>;
}

/// What is needed of a daemon to do what clients ask for.
pub(crate) struct Lent<'a> {
    pub(crate) clients: &'a mut Clients,
    pub(crate) config: &'a Config,
    pub(crate) ports: &'a Ports,
    pub(crate) workers: &'a Workers,
    pub(crate) devices: &'a Devices,
}

/// Everything about clients.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    list: BTreeMap<u32, Client>,
    last: u32,
    /// What the log says of clients that come and go.
    log: Sparing,
    /// What it says of those that do not keep up or write nonsense.
    faults: Sparing,
    /// The rules in force, for the thread that accepts.
    rules: Rules,
    /// How often users are rung, by worker.
    paces: Paces,
    /// Names of ports by their numbers in packets' marks: a port keeps its number for ever.
    numbers: Vec<String>,
    /// Memory of clients that are gone, in which buffers still lie.
    retired: Vec<Retired>,
    /// Users' memory.
    accounts: Accounts,
}

/// A process that is attached.
#[derive(Debug)]
struct Client {
    name: String,
    library: String,
    process: Process,
    /// Whether it was in the group that counts where there are no rules when it came.
    member: bool,
    allowed: Allowed,
    since: Instant,
    /// By which ports it may send.
    sends: Arc<ClientPorts>,
    queues: BTreeMap<u32, Queues>,
    last: u32,
}

/// What it was given at a request.
#[derive(Debug)]
struct Queues {
    asked: Open,
    receives: Arc<ClientPorts>,
    segment: Arc<Segment>,
    /// By worker.
    counters: Vec<Arc<ClientCounters>>,
    told: Told,
    /// Comparisons of its filter with each packet.
    comparisons: usize,
    /// What is to be given to workers when the client has mapped its memory.
    start: Option<Start>,
    /// The device's buffers, when a receive queue is its own.
    memory: Option<Arc<DeviceMemory>>,
}

impl Clients {
    /// The number of a port, its own for ever. `None`: there were too many.
    fn number(&mut self, name: &str) -> Option<u8> {
        let known = self.numbers.iter().position(|other| other == name);
        let at = known.unwrap_or(self.numbers.len());
        if known.is_none() && at < NUMBERS {
            self.numbers.push(name.to_owned());
        }
        u8::try_from(at).ok()
    }

    /// As the API shows them.
    pub(crate) fn show(&self) -> Vec<api::Client> {
        self.list.iter().map(|(id, client)| show(*id, client)).collect()
    }
}

/// Opens the attach socket.
///
/// Errors: no thread.
pub(crate) fn open<H: Host>(
    listener: UnixListener,
    lent: Lent<'_>,
    control: Control<H>,
    holders: Arc<Holders>,
) -> io::Result<()> {
    lent.show_rules_to_door();
    let (bounds, rules) = (&lent.config.clients, Arc::clone(&lent.clients.rules));
    Door::new(listener, Attaching::new(bounds, rules, control, holders)).open()
}

impl Client {
    fn uid(&self) -> u32 {
        self.process.credentials.uid
    }

    fn memory(&self) -> usize {
        self.queues.values().map(|queues| queues.segment.length()).sum()
    }
}

/// What a worker calls the queues of a client.
fn function_number(client: u32, queues: u32) -> u64 {
    u64::from(client) << 32 | u64::from(queues)
}

impl Lent<'_> {
    fn show_rules_to_door(&self) {
        let mut rules = self.clients.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.clone_from(&self.config.client_rules);
    }

    /// A process says who it is; and whether it is in the group that counts where there are no rules, which its user's thread
    /// has read.
    fn attach_client(
        &mut self,
        hello: Hello,
        (process, member): (Process, bool),
    ) -> Result<Welcome, Refusal> {
        let Some(allowed) = Allowed::of(&self.config.client_rules, &process, member) else {
            return Err(permission::stranger(&self.config.client_rules, &process));
        };
        if hello.protocol != PROTOCOL {
            let (theirs, library, ours) = (hello.protocol, &hello.library, PROTOCOL);
            let library = printable(library);
            return Err(Refusal::new(
                RefusalKind::Version,
                format!(
                    "the client's library {library} speaks version {theirs} of the attach protocol, \
                     millraced {VERSION} speaks version {ours}; use libmillrace of the daemon's \
                     version"
                ),
            ));
        }
        check_name(&hello.name, &hello.library)?;
        let PeerCredentials { pid, uid, .. } = process.credentials;
        let most = usize::from(self.config.clients.most);
        // Nobody keeps root out.
        let alike = self.clients.list.values().filter(|other| (other.uid() == 0) == (uid == 0));
        if alike.count() >= most {
            return Err(no_resources(format!(
                "{most} clients are attached already; raise clients.most"
            )));
        }
        self.clients.last = self.clients.last.wrapping_add(1).max(1);
        let id = self.clients.last;
        self.clients.log.say("clients", || {
            tracing::info!(client = id, pid, uid, "{} attached", hello.name);
        });
        let client = Client {
            name: hello.name,
            library: hello.library,
            process,
            member,
            allowed,
            since: Instant::now(),
            sends: Arc::default(),
            queues: BTreeMap::new(),
            last: 0,
        };
        self.clients.list.insert(id, client);
        self.renumber_client_ports();
        let ports = self.ports_of_client(id);
        let daemon = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Welcome { protocol: PROTOCOL, daemon, client: id, ports })
    }

    /// Takes back all that a client had. Gives what is left, to be waited for by whoever asked.
    fn release_client(&mut self, id: u32, why: &str) -> Vec<Left> {
        let Some(client) = self.clients.list.get(&id) else { return Vec::new() };
        let numbers: Vec<u32> = client.queues.keys().copied().collect();
        let left = numbers.into_iter().filter_map(|number| self.close_client_queues(id, number));
        let left = left.collect();
        if let Some(client) = self.clients.list.remove(&id) {
            self.clients.log.say("clients", || {
                let name = &client.name;
                tracing::info!(client = id, "{name} is gone: {why}; all it had was taken back");
            });
            if !self.clients.list.values().any(|other| other.uid() == client.uid()) {
                self.clients.paces.forget(client.uid());
            }
        }
        left
    }

    /// The configuration has changed: what clients may do from now on.
    pub(crate) fn apply_client_rules(&mut self) {
        for client in self.clients.list.values_mut() {
            let allowed = Allowed::of(&self.config.client_rules, &client.process, client.member);
            client.allowed = allowed.unwrap_or(Allowed::These(Vec::new()));
        }
        self.show_rules_to_door();
        self.close_stray_own_queues();
        self.renumber_client_ports();
    }

    /// The ports that a client may use.
    fn ports_of_client(&mut self, id: u32) -> Vec<PortInfo> {
        let Some(client) = self.clients.list.get(&id) else { return Vec::new() };
        let allowed = client.allowed.clone();
        let mut ports = Vec::new();
        for port in self.ports.iter().filter(|port| allowed.has(&port.config.name)) {
            let name = port.config.name.clone();
            let Some(number) = self.clients.number(&name) else { continue };
            let mac = wire::MacAddr::from(port.mac).octets();
            ports.push(PortInfo { name, number, mac, mtu: port.config.mtu });
        }
        ports
    }

    /// Shows the ports as they are now to the workers' client queues.
    pub(crate) fn renumber_client_ports(&mut self) {
        let ports: Vec<(String, Option<(PortId, u16)>)> = self
            .ports
            .iter()
            .map(|port| (port.config.name.clone(), port.id().map(|id| (id, port.config.mtu))))
            .collect();
        for (name, _) in &ports {
            let _ = self.clients.number(name);
        }
        let Clients { list, numbers, .. } = &mut self.clients;
        for (number, name) in numbers.iter().enumerate() {
            let place = ports.iter().find(|(known, _)| known == name).and_then(|(_, place)| *place);
            for client in list.values() {
                let allowed = place.filter(|_| client.allowed.has(name));
                client.sends.set(number as u8, allowed);
                for queues in client.queues.values() {
                    let wanted = queues.asked.ports.is_empty() || queues.asked.ports.contains(name);
                    queues.receives.set(number as u8, allowed.filter(|_| wanted));
                }
            }
        }
    }
}

fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

fn show(id: u32, client: &Client) -> api::Client {
    let queues = client.queues.iter().map(|(number, queues)| {
        let asked = &queues.asked;
        let filter = word(&asked.filter);
        api::ClientQueues {
            number: *number,
            queue: asked.queue.as_ref().map(|own| own.queue),
            ports: match &client.allowed {
                Allowed::These(ports) if asked.ports.is_empty() => ports.clone(),
                _ => asked.ports.clone(),
            },
            take: word(&asked.take),
            spread: word(&asked.spread),
            filter: if filter == "{}" { String::new() } else { filter },
            transfer: if asked.queue.is_some() { "zero copy" } else { "one copy" }.to_owned(),
            channels: asked.channels,
            slots: asked.slots,
            capacity: asked.capacity,
            counters: queues.counted(),
        }
    });
    api::Client {
        id,
        name: client.name.clone(),
        library: client.library.clone(),
        pid: client.process.credentials.pid,
        uid: client.process.credentials.uid,
        gid: client.process.credentials.gid,
        age: client.since.elapsed().as_secs(),
        memory: client.memory() as u64,
        queues: queues.collect(),
    }
}

impl Queues {
    /// On all workers.
    fn counted(&self) -> api::ClientCounters {
        self.counters.iter().fold(api::ClientCounters::default(), |sum, one| api::ClientCounters {
            delivered: sum.delivered + one.delivered.get(),
            delivered_bytes: sum.delivered_bytes + one.delivered_bytes.get(),
            full: sum.full + one.full.get(),
            skipped: sum.skipped + one.skipped.get(),
            sent: sum.sent + one.sent.get(),
            sent_bytes: sum.sent_bytes + one.sent_bytes.get(),
            refused: sum.refused + one.refused.get(),
            no_buffer: sum.no_buffer + one.no_buffer.get(),
            malformed: sum.malformed + one.malformed.get(),
        })
    }
}
