//! Queues of a client: made, handed to the workers, taken back.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dpdk::DeviceMemory;
use graph::{
    ClientChannel, ClientCounters, ClientPorts, ClientQueues, ClientSetup, Filter, LaneClient,
    MatchError,
};
use shm::attach::{ChannelPlace, FILES, FilterText, Open, Opened, Refusal, RefusalKind, RingPlace};
use shm::{Consumer, Doorbell, Layout, Producer, Segment};
use wire::EtherType;

use super::own_queue::Place;
use super::{Queues, function_number};
use crate::daemon::Daemon;

/// Channels of one request at most.
const MOST_CHANNELS: u16 = 64;
/// Channels of one client at most: every worker looks at all of them in each of its rounds. With 2,048 a router's throughput
/// was a third less, with 512 nothing was to be seen.
const ALL_CHANNELS: usize = 256;
/// Where regions of a segment begin: a page, so that no two share one.
pub(super) const PAGE: usize = 4096;

pub(super) fn invalid(problem: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, problem)
}

/// The two ends of a doorbell.
pub(super) fn doorbell() -> Result<(Doorbell, OwnedFd), Refusal> {
    Doorbell::pair().map_err(|error| {
        no_resources(format!("a doorbell: {error}; raise the daemon's LimitNOFILE"))
    })
}

pub(super) fn no_resources(problem: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::Resources, problem.to_string())
}

/// What a client will have once it has mapped its memory.
pub(super) enum Start {
    /// Its rings, by worker.
    Workers(Vec<ClientSetup>),
    /// A receive queue of its own, and the memory for its buffers.
    Own(Place, Box<LaneClient>, Arc<DeviceMemory>),
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start")
    }
}

/// What goes over to the client.
pub(super) struct Given {
    pub(super) opened: Opened,
    pub(super) segment: Arc<Segment>,
    pub(super) bells: Vec<OwnedFd>,
}

impl Daemon {
    /// Makes queues for a client and gives them to the workers.
    pub(super) fn open_client_queues(&mut self, id: u32, asked: Open) -> Result<Given, Refusal> {
        if let Some(wanted) = asked.queue.clone() {
            return self.open_own_queue(id, asked, &wanted);
        }
        let filter = filter(&asked.filter).map_err(|error| invalid(error.to_string()))?;
        self.check_request(id, &asked)?;
        let layout =
            Layout::new(asked.slots, asked.capacity).map_err(|e| invalid(e.to_string()))?;
        let workers = self.workers.iter().count();
        let channels = usize::from(asked.channels);
        if 1 + channels + workers > FILES {
            return Err(invalid(format!("{channels} channels are too many for {workers} workers")));
        }
        let each = layout.bytes().next_multiple_of(PAGE);
        let bytes = each * 2 * channels * workers;
        self.check_memory(id, bytes)?;
        let client = self.clients.list.get_mut(&id).ok_or_else(|| invalid("not attached"))?;
        client.last = client.last.wrapping_add(1);
        let number = client.last;
        let name = format!("millrace-client-{id}");
        let segment = Arc::new(Segment::create(&name, bytes).map_err(no_resources)?);
        let (receives, sends) = (Arc::<ClientPorts>::default(), Arc::clone(&client.sends));
        let place = |at: usize| RingPlace {
            offset: (at * each) as u64,
            slots: asked.slots,
            capacity: asked.capacity,
        };
        // Ring of channel c from worker w, then the one to it.
        let at = |channel: usize, worker: usize| 2 * (channel * workers + worker);
        let mut bells = Vec::new();
        let mut own_bells = Vec::new();
        for _ in 0..channels {
            let (own, theirs) = doorbell()?;
            own_bells.push(Arc::new(own));
            bells.push(theirs);
        }
        let mut setups = Vec::new();
        for worker in 0..workers {
            let (wake, theirs) = doorbell()?;
            bells.push(theirs);
            let mut rings = Vec::new();
            for (channel, bell) in own_bells.iter().enumerate() {
                let offset = at(channel, worker) * each;
                rings.push(self::channel(&segment, offset, layout, Arc::clone(bell))?);
            }
            setups.push(ClientSetup {
                take: asked.take,
                spread: asked.spread,
                filter: filter.clone(),
                receives: Arc::clone(&receives),
                sends: Arc::clone(&sends),
                channels: rings,
                wake,
                pool: self.pool,
                counters: Arc::new(ClientCounters::default()),
            });
        }
        let opened = Opened {
            queues: number,
            workers: workers as u16,
            channels: (0..channels)
                .map(|channel| ChannelPlace {
                    rings: (0..workers)
                        .map(|worker| [place(at(channel, worker)), place(at(channel, worker) + 1)])
                        .collect(),
                })
                .collect(),
            buffers: None,
        };
        let counters = setups.iter().map(|setup| Arc::clone(&setup.counters)).collect();
        let told = super::Told::default();
        let queues = Queues {
            asked,
            receives,
            segment: Arc::clone(&segment),
            counters,
            told,
            start: Some(Start::Workers(setups)),
            memory: None,
        };
        client.queues.insert(number, queues);
        // The workers know the ports before they have the queues.
        self.renumber_client_ports();
        Ok(Given { opened, segment, bells })
    }

    /// Gives the workers what a client has opened: it has mapped its memory.
    pub(super) fn start_client_queues(&mut self, id: u32, number: u32) -> Result<(), Refusal> {
        let client = self.clients.list.get_mut(&id).ok_or_else(|| invalid("not attached"))?;
        let queues = client.queues.get_mut(&number).ok_or_else(|| {
            Refusal::new(RefusalKind::Unknown, format!("there are no queues {number}"))
        })?;
        let start =
            queues.start.take().ok_or_else(|| invalid("the queues were started already"))?;
        // Who could take pages out of the memory could make a worker wait for each that it touches.
        queues.segment.close().map_err(no_resources)?;
        match start {
            Start::Own(place, client, memory) => self.give(&place, *client, memory),
            Start::Workers(setups) => self.add_to_workers(function_number(id, number), setups),
        }
    }

    fn add_to_workers(&self, function: u64, setups: Vec<ClientSetup>) -> Result<(), Refusal> {
        for (worker, setup) in self.workers.iter().zip(setups) {
            let queues = Box::new(ClientQueues::new(setup));
            let added =
                self.workers.call(worker, move |state| state.add_function(function, queues));
            added.map_err(no_resources)?;
        }
        Ok(())
    }

    /// Whether a client may have so many bytes of memory more.
    pub(super) fn check_memory(&self, id: u32, bytes: usize) -> Result<(), Refusal> {
        let Some(client) = self.clients.list.get(&id) else { return Err(invalid("not attached")) };
        let (limit, has) = ((self.config.clients.memory as usize) << 20, client.memory());
        if has.saturating_add(bytes) <= limit {
            return Ok(());
        }
        let [bytes, has] = [bytes, has].map(|bytes| bytes.div_ceil(1 << 20));
        Err(no_resources(format!(
            "{bytes} MiB of shared memory, beside {has} that the client has; clients.memory is {}: ask \
             for fewer slots or channels, or raise it",
            self.config.clients.memory
        )))
    }

    pub(super) fn check_request(&self, id: u32, asked: &Open) -> Result<(), Refusal> {
        if !(1..=MOST_CHANNELS).contains(&asked.channels) {
            let given = asked.channels;
            return Err(invalid(format!("{given} channels; use 1 to {MOST_CHANNELS}")));
        }
        let Some(client) = self.clients.list.get(&id) else { return Err(invalid("not attached")) };
        let has: usize = client.queues.values().map(|open| usize::from(open.asked.channels)).sum();
        if has + usize::from(asked.channels) > ALL_CHANNELS {
            return Err(no_resources(format!(
                "{} channels, beside {has} that the client has, are more than {ALL_CHANNELS}: close some",
                asked.channels
            )));
        }
        for name in &asked.ports {
            if !self.ports.iter().any(|port| port.config.name == *name) {
                let names: Vec<_> =
                    self.ports.iter().map(|port| port.config.name.as_str()).collect();
                let name = name.chars().take(32).collect::<String>().escape_debug().to_string();
                let problem = format!("there is no port {name}; use some of {}", names.join(", "));
                return Err(Refusal::new(RefusalKind::Unknown, problem));
            }
            if !client.allowed.has(name) {
                let problem = format!("port {name} is not one that this client may use");
                return Err(Refusal::new(RefusalKind::Permission, problem));
            }
        }
        Ok(())
    }

    /// Takes queues back: no worker touches them after this. Gives whether there were any.
    pub(super) fn close_client_queues(&mut self, id: u32, number: u32) -> bool {
        let client = self.clients.list.get_mut(&id);
        let Some(queues) = client.and_then(|client| client.queues.remove(&number)) else {
            return false;
        };
        let function = function_number(id, number);
        if queues.memory.is_some() {
            self.close_own_queue(function, queues);
            return true;
        }
        self.workers.take_back(move |state| state.remove_function(function));
        drop(queues);
        true
    }
}

/// The rings of a channel on one worker: that to the client at `offset` of the segment, the other on the pages behind it.
pub(super) fn channel(
    segment: &Arc<Segment>,
    offset: usize,
    layout: Layout,
    bell: Arc<Doorbell>,
) -> Result<ClientChannel, Refusal> {
    let each = layout.bytes().next_multiple_of(PAGE);
    let region = |offset| {
        let region = segment.region(offset, layout.bytes());
        region.ok_or_else(|| invalid("a segment too short"))
    };
    let to = Producer::new(region(offset)?, layout).map_err(|e| invalid(e.to_string()))?;
    let from = Consumer::new(region(offset + each)?, layout).map_err(|e| invalid(e.to_string()))?;
    Ok(ClientChannel::new(to, from, bell))
}

/// The filter that a client's words say.
fn filter(text: &FilterText) -> Result<Filter, MatchError> {
    Ok(Filter {
        port: None,
        host: text.host,
        protocol: text.protocol.as_deref().map(str::parse).transpose()?,
        ether_type: text.ether_type.map(EtherType),
        source: text.source,
        destination: text.destination,
        source_port: text.source_port,
        destination_port: text.destination_port,
    })
}
