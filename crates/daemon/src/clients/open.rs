//! Queues of a client: made, handed to the workers, taken back.

use std::sync::Arc;

use dpdk::DeviceMemory;
use graph::{ClientCounters, ClientPorts, ClientQueues, ClientSetup, Filter, MatchError};
use shm::attach::{ChannelPlace, FILES, FilterText, Open, Opened, Refusal, RefusalKind, RingPlace};
use shm::{Layout, Segment};
use wire::EtherType;

use super::bounds::comparisons;
use super::stages::{Left, Place, Start, Starting, Taken};
use super::{Lent, Queues, function_number};
use crate::processes::{Debit, Made, PAGE, channel, invalid, printable, unknown};
use crate::workers::Member;

/// Channels of one request at most.
const MOST_CHANNELS: u16 = 64;
/// How much memory a request takes, and in which pieces.
struct Size {
    layout: Layout,
    /// Bytes of a ring, up to the next page.
    each: usize,
    bytes: usize,
}

impl Lent<'_> {
    /// The memory that a request takes and the workers that serve it, if it can be granted.
    pub(super) fn charge_client_queues(
        &mut self,
        id: u32,
        asked: &Open,
        place: Option<&Place>,
    ) -> Result<(Debit, usize), Refusal> {
        let (bytes, workers) = match (&asked.queue, place) {
            (Some(wanted), Some(place)) => {
                (self.size_of_own_queue(id, asked, (wanted, place))?.bytes, 1)
            }
            _ => {
                let filter = filter(&asked.filter).map_err(|error| invalid(error.to_string()))?;
                let size = self.size(asked)?;
                self.check_request(id, asked, comparisons(&filter))?;
                (size.bytes, self.workers.crew().len())
            }
        };
        let client = self.clients.list.get(&id).ok_or_else(|| invalid("not attached"))?;
        let uid = client.uid();
        Ok((self.clients.charge(uid, bytes, &self.config.clients)?, workers))
    }

    fn size(&self, asked: &Open) -> Result<Size, Refusal> {
        let layout =
            Layout::new(asked.slots, asked.capacity).map_err(|e| invalid(e.to_string()))?;
        let (workers, channels) = (self.workers.crew().len(), usize::from(asked.channels));
        if 1 + channels + workers > FILES {
            return Err(invalid(format!("{channels} channels are too many for {workers} workers")));
        }
        let each = layout.bytes().next_multiple_of(PAGE);
        Ok(Size { layout, each, bytes: each * 2 * channels * workers })
    }

    /// Sets queues up in memory and with bells that were made for them. They begin when the client has mapped it.
    pub(super) fn open_client_queues(
        &mut self,
        id: u32,
        asked: Open,
        (made, place): (Made, Option<(Place, Arc<DeviceMemory>)>),
    ) -> Result<Opened, Refusal> {
        if let (Some(wanted), Some((place, memory))) = (asked.queue.clone(), place) {
            return self.open_own_queue(id, asked, (&wanted, place, memory), made);
        }
        let filter = filter(&asked.filter).map_err(|error| invalid(error.to_string()))?;
        let Size { layout, each, .. } = self.size(&asked)?;
        // It was checked before the memory was made; much may have changed since.
        self.check_request(id, &asked, comparisons(&filter))?;
        let Made { segment, bells } = made;
        let workers = bells.wakes.len();
        let crew = self.workers.crew();
        let client = self.clients.list.get_mut(&id).ok_or_else(|| invalid("not attached"))?;
        client.last = client.last.wrapping_add(1);
        let (number, uid, sends) = (client.last, client.uid(), Arc::clone(&client.sends));
        let receives = Arc::<ClientPorts>::default();
        // Ring of channel c from worker w, then the one to it.
        let at = |channel: usize, worker: usize| 2 * (channel * workers + worker);
        let mut setups = Vec::new();
        for ((worker, member), wake) in crew.iter().enumerate().zip(bells.wakes) {
            let mut rings = Vec::new();
            for (index, bell) in bells.channels.iter().enumerate() {
                let offset = at(index, worker) * each;
                rings.push(channel(&segment, offset, layout, bell.clone())?);
            }
            setups.push(ClientSetup {
                take: asked.take,
                spread: asked.spread,
                filter: filter.clone(),
                receives: Arc::clone(&receives),
                sends: Arc::clone(&sends),
                channels: rings,
                wake,
                pace: self.clients.paces.of(uid, worker),
                pool: member.buffers.packets,
                counters: Arc::new(ClientCounters::default()),
            });
        }
        let place = |at: usize| RingPlace {
            offset: (at * each) as u64,
            slots: asked.slots,
            capacity: asked.capacity,
        };
        let pair = |channel, worker| [place(at(channel, worker)), place(at(channel, worker) + 1)];
        let opened = Opened {
            queues: number,
            workers: workers as u16,
            channels: (0..usize::from(asked.channels))
                .map(|channel| ChannelPlace {
                    rings: (0..workers).map(|worker| pair(channel, worker)).collect(),
                })
                .collect(),
            buffers: None,
        };
        let queues = Queues {
            asked,
            receives,
            segment,
            counters: setups.iter().map(|setup| Arc::clone(&setup.counters)).collect(),
            told: super::Told::default(),
            comparisons: comparisons(&filter),
            start: Some(Start::Workers(setups)),
            memory: None,
        };
        if let Some(client) = self.clients.list.get_mut(&id) {
            client.queues.insert(number, queues);
        }
        // The workers know the ports before they have the queues.
        self.renumber_client_ports();
        Ok(opened)
    }

    /// The memory of queues that were opened and not started.
    pub(super) fn memory_to_start(&self, id: u32, number: u32) -> Result<Arc<Segment>, Refusal> {
        let client = self.clients.list.get(&id).ok_or_else(|| invalid("not attached"))?;
        let queues = client.queues.get(&number);
        let queues = queues.ok_or_else(|| unknown(format!("there are no queues {number}")))?;
        match &queues.start {
            Some(_) => Ok(Arc::clone(&queues.segment)),
            None => Err(invalid("the queues were started already")),
        }
    }

    /// Gives the workers what a client has opened: it has mapped its memory, which is [closed](Segment::close) by now.
    pub(super) fn start_client_queues(
        &mut self,
        id: u32,
        number: u32,
    ) -> Result<Starting, Refusal> {
        let client = self.clients.list.get_mut(&id).ok_or_else(|| invalid("not attached"))?;
        let queues = client.queues.get_mut(&number);
        let queues = queues.ok_or_else(|| unknown(format!("there are no queues {number}")))?;
        let start =
            queues.start.take().ok_or_else(|| invalid("the queues were started already"))?;
        let function = function_number(id, number);
        Ok(match start {
            Start::Own(place, client, memory) => Starting::Own(self.give(&place, *client, memory)?),
            Start::Workers(setups) => {
                let crew = self.workers.crew();
                let add = |(worker, setup): (&Member, ClientSetup)| {
                    let queues = Box::new(ClientQueues::new(setup));
                    worker.ask(move |state| state.add_function(function, queues))
                };
                Starting::Workers(crew.iter().zip(setups).map(add).collect())
            }
        })
    }

    /// Whether a client may have what it asks for: so many comparisons with each packet, and all but its memory.
    pub(super) fn check_request(
        &self,
        id: u32,
        asked: &Open,
        filters: usize,
    ) -> Result<(), Refusal> {
        if !(1..=MOST_CHANNELS).contains(&asked.channels) {
            let given = asked.channels;
            return Err(invalid(format!("{given} channels; use 1 to {MOST_CHANNELS}")));
        }
        let Some(client) = self.clients.list.get(&id) else { return Err(invalid("not attached")) };
        let uid = client.uid();
        self.clients.usage(uid).admit(uid, asked, filters, &self.config.clients)?;
        for name in &asked.ports {
            if !self.ports.iter().any(|port| port.config.name == *name) {
                let names: Vec<_> =
                    self.ports.iter().map(|port| port.config.name.as_str()).collect();
                let (name, names) = (printable(name), names.join(", "));
                return Err(unknown(format!("there is no port {name}; use some of {names}")));
            }
            if !client.allowed.has(name) {
                let problem = format!("port {name} is not one that this client may use");
                return Err(Refusal::new(RefusalKind::Permission, problem));
            }
        }
        Ok(())
    }

    /// Takes queues back: the workers are told to, and what is left is to be waited for by whoever asked. `None`: there
    /// were none.
    pub(super) fn close_client_queues(&mut self, id: u32, number: u32) -> Option<Left> {
        let client = self.clients.list.get_mut(&id)?;
        let Queues { segment, memory, start, .. } = client.queues.remove(&number)?;
        let token = function_number(id, number);
        let taken = match memory {
            Some(memory) => Taken::Own(self.close_own_queue(token, Arc::clone(&segment), memory)),
            None => Taken::Workers(
                self.workers.crew().owe_all(move |state| state.remove_function(token)),
            ),
        };
        Some(Left { taken, _start: start, _segment: segment })
    }
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
        transport_port: None,
    })
}
