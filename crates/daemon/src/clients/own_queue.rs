//! Dedicated receive queues: their packets reach the client where the device has put them.

use std::sync::Arc;

use dpdk::{DeviceMemory, Port};
use graph::{ClientCounters, LaneClient, PortId, RxAssignment, WorkerState};
use shm::attach::{
    BufferPlace, ChannelPlace, FilterText, Open, Opened, PortQueue, Refusal, RefusalKind,
    RingPlace, Take,
};
use shm::{Layout, Segment};

use super::stages::{Given, Place, Start};
use super::{Clients, Lent, Queues, Told, function_number};
use crate::ports::{DeviceJobs, OpenDevice, PortState};
use crate::processes::{Made, PAGE, channel, invalid, no_resources};
use crate::workers::{Answer, Answers, Member};

/// Clients before this one whose memory a device's ring may still hold.
const EARLIER: usize = 4;

/// Memory of a client that is gone, until no buffer lies in it any more.
#[derive(Debug)]
pub(super) struct Retired {
    segment: Arc<Segment>,
    /// A worker that does not give it back keeps it mapped.
    memory: Arc<DeviceMemory>,
}

/// The workers are asked who polls a queue.
pub(super) struct Search {
    port: PortId,
    wanted: PortQueue,
    /// By core.
    answers: Vec<(u16, Answer<Option<Found>>)>,
}

/// Of a queue that a worker polls: buffers, bytes of each, and clients before whose memory the device may still hold.
type Found = (u32, usize, usize);

impl Search {
    /// The queue that a client means, when the workers have answered.
    pub(super) async fn place(self) -> Result<Place, Refusal> {
        let Self { port, wanted: PortQueue { port: name, queue }, answers } = self;
        for (core, answer) in answers {
            let Some((count, size, earlier)) = answer.get().await.map_err(no_resources)? else {
                continue;
            };
            if earlier >= EARLIER {
                return Err(no_resources(format!(
                    "the device still holds memory of {earlier} clients before; it comes back as \
                     packets arrive: try again later"
                )));
            }
            return Ok(Place { port, queue, core, buffers: (count, size) });
        }
        Err(no_resources(format!("queue {queue} of port {name} is not polled now")))
    }
}

/// What a dedicated receive queue takes.
pub(super) struct OwnSize {
    layout: Layout,
    /// Bytes of a ring, up to the next page.
    each: usize,
    /// Bytes of the buffers.
    area: usize,
    pub(super) bytes: usize,
}

/// Where a dedicated queue's buffers are to lie, and the device that is to reach them.
pub(super) struct Buffers {
    device: DeviceJobs,
    offset: usize,
    length: usize,
}

impl Buffers {
    /// Lets the device reach them. That takes as long as its driver and the kernel like.
    pub(super) async fn reach(self, segment: &Arc<Segment>) -> Result<Arc<DeviceMemory>, Refusal> {
        let Self { device, offset, length } = self;
        // Whoever waits no more takes the memory along: a driver that hangs keeps none of it.
        let segment = Arc::downgrade(segment);
        let reach = move |port: &mut Port| {
            let buffers = segment.upgrade().and_then(|segment| segment.region(offset, length));
            buffers.map(|buffers| port.reach(buffers))
        };
        let reached = device.ask(reach).await.map_err(no_resources)?;
        let reached = reached.ok_or_else(|| invalid("a short segment"))?;
        Ok(Arc::new(reached.map_err(|error| invalid(error.to_string()))?))
    }
}

impl Lent<'_> {
    /// Where the buffers of a receive queue that a client can have are to lie in its memory.
    pub(super) fn buffers_of_own_queue(
        &self,
        id: u32,
        asked: &Open,
        (wanted, place): (&PortQueue, &Place),
    ) -> Result<Buffers, Refusal> {
        let size = self.size_of_own_queue(id, asked, (wanted, place))?;
        let port = self.ports.get(&wanted.port).filter(|port| port.id() == Some(place.port));
        if port.is_some_and(|port| !port.answers()) {
            return Err(no_resources("the port's driver does not answer now"));
        }
        let device = port.and_then(|port| port.open.as_ref()).map(OpenDevice::jobs);
        let device = device.ok_or_else(|| no_resources("the port is gone"))?;
        Ok(Buffers { device, offset: 2 * size.each, length: size.area })
    }

    /// What it takes to give a receive queue to a client, if it can have it.
    pub(super) fn size_of_own_queue(
        &self,
        id: u32,
        asked: &Open,
        (wanted, place): (&PortQueue, &Place),
    ) -> Result<OwnSize, Refusal> {
        if let Some(other) = self.clients.of_queue(&wanted.port, wanted.queue) {
            let PortQueue { port, queue } = wanted;
            return Err(no_resources(format!("client {other} has queue {queue} of port {port}")));
        }
        let layout =
            Layout::new(asked.slots, asked.capacity).map_err(|e| invalid(e.to_string()))?;
        let each = layout.bytes().next_multiple_of(PAGE);
        let (count, size) = place.buffers;
        let area = (count as usize * size).next_multiple_of(PAGE);
        let bytes = 2 * each + area;
        self.check_own_queue(id, asked)?;
        Ok(OwnSize { layout, each, area, bytes })
    }

    /// Sets a client's receive queue up, in memory that its device reaches, and with bells that were made for it.
    pub(super) fn open_own_queue(
        &mut self,
        id: u32,
        mut asked: Open,
        (wanted, place, memory): (&PortQueue, Place, Arc<DeviceMemory>),
        made: Made,
    ) -> Result<Opened, Refusal> {
        let OwnSize { layout, each, .. } = self.size_of_own_queue(id, &asked, (wanted, &place))?;
        asked.ports = vec![wanted.port.clone()];
        let (count, size) = place.buffers;
        let Made { segment, bells } = made;
        let (bell, wake) = bells
            .channels
            .into_iter()
            .zip(bells.wakes)
            .next()
            .ok_or_else(|| no_resources("the queue's bells were not made"))?;
        if self.ports.id(&wanted.port) != Some(place.port) {
            return Err(no_resources("the port is gone"));
        }
        let number =
            self.clients.number(&wanted.port).ok_or_else(|| no_resources("too many ports"))?;
        let at = self.workers.crew().position(place.core).unwrap_or(0);
        let client = self.clients.list.get_mut(&id).ok_or_else(|| invalid("not attached"))?;
        client.last = client.last.wrapping_add(1);
        let (queues, uid, sends) = (client.last, client.uid(), Arc::clone(&client.sends));
        let counters = Arc::new(ClientCounters::default());
        let lane_client = LaneClient {
            token: function_number(id, queues),
            number,
            sends,
            channel: channel(&segment, 0, layout, bell)?,
            wake,
            pace: self.clients.paces.of(uid, at),
            counters: Arc::clone(&counters),
        };
        let ring = |which: usize| RingPlace {
            offset: (which * each) as u64,
            slots: asked.slots,
            capacity: asked.capacity,
        };
        let opened = Opened {
            queues,
            workers: 1,
            channels: vec![ChannelPlace { rings: vec![[ring(0), ring(1)]] }],
            buffers: Some(BufferPlace { offset: 2 * each as u64, count, size: size as u32 }),
        };
        let own = Queues {
            asked,
            receives: Arc::default(),
            segment,
            counters: vec![counters],
            told: Told::default(),
            comparisons: 0,
            start: Some(Start::Own(place, Box::new(lane_client), Arc::clone(&memory))),
            memory: Some(memory),
        };
        if let Some(client) = self.clients.list.get_mut(&id) {
            client.queues.insert(queues, own);
        }
        self.renumber_client_ports();
        Ok(opened)
    }

    /// Whether a client may have a dedicated receive queue.
    fn check_own_queue(&self, id: u32, asked: &Open) -> Result<(), Refusal> {
        let plain = asked.ports.is_empty() && asked.filter == FilterText::default();
        if !plain || asked.take != Take::Divert || asked.channels != 1 {
            return Err(invalid(
                "a dedicated queue is given whole: divert, one channel, no other ports, no filter",
            ));
        }
        let port = asked.queue.as_ref().map(|wanted| wanted.port.clone());
        let asked = Open { ports: port.into_iter().collect(), ..asked.clone() };
        self.check_request(id, &asked, 0)
    }

    /// Asks the workers for the queue that a client means, if it can have it.
    pub(super) fn find_own_queue(
        &self,
        id: u32,
        asked: &Open,
        wanted: &PortQueue,
    ) -> Result<Search, Refusal> {
        self.check_own_queue(id, asked)?;
        let PortQueue { port: name, queue } = wanted;
        let port = self.ports.iter().find(|port| port.config.name == *name);
        let Some((port, id)) = port.and_then(|port| Some((port, port.id()?))) else {
            return Err(no_resources(format!("port {name} is not open now")));
        };
        if !for_clients(port).contains(queue) {
            let kept = for_clients(port);
            let problem = match (kept.start, kept.end) {
                (start, end) if start == end => format!(
                    "port {name} keeps no receive queue for clients; set client-queues in its section"
                ),
                (start, end) => format!(
                    "queue {queue} of port {name} is not kept for clients; {start} to {} are",
                    end - 1
                ),
            };
            return Err(Refusal::new(RefusalKind::Unknown, problem));
        }
        let about = |rx: &mut RxAssignment| {
            let pool = rx.queue.shared()?;
            Some((pool.capacity(), pool.size(), pool.earlier()))
        };
        let ask = |member: &Member| {
            let place = (id, *queue);
            (member.core, member.ask(move |state| on_queue(state, place, about).flatten()))
        };
        let answers = self.workers.crew().iter().map(ask).collect();
        Ok(Search { port: id, wanted: wanted.clone(), answers })
    }

    pub(super) fn give(
        &mut self,
        place: &Place,
        client: LaneClient,
        memory: Arc<DeviceMemory>,
    ) -> Result<Answer<Given>, Refusal> {
        let crew = self.workers.crew();
        let worker = crew.on_core(place.core).ok_or_else(|| no_resources("the worker is gone"))?;
        let (port, queue) = (place.port, place.queue);
        self.clients.log.say("clients", || {
            tracing::info!(%port, queue, "a client is given the receive queue");
        });
        let give = move |rx: &mut RxAssignment| rx.give(client, &memory);
        Ok(worker.ask(move |state| on_queue(state, (port, queue), give)))
    }

    /// Takes a dedicated queue back. Its memory goes when the last buffer has left it.
    pub(super) fn close_own_queue(
        &mut self,
        token: u64,
        segment: Arc<Segment>,
        memory: Arc<DeviceMemory>,
    ) -> Answers<Option<LaneClient>> {
        let taken = self.workers.crew().owe_all(move |state| {
            state.receive_mut().iter_mut().find_map(|rx| rx.take_client(token))
        });
        // Its port may be closed at this moment.
        self.devices.leave(move |pools| drop(pools.take_client(token)));
        self.clients.retired.push(Retired { segment, memory });
        taken
    }

    /// Takes back queues that the configuration keeps for clients no more, or their client may not use any more.
    pub(super) fn close_stray_own_queues(&mut self) {
        let mut stray = Vec::new();
        for (id, client) in &self.clients.list {
            for (number, queues) in &client.queues {
                let Some(PortQueue { port, queue }) = &queues.asked.queue else { continue };
                let state = self.ports.iter().find(|state| state.config.name == *port);
                let kept = state.is_some_and(|state| for_clients(state).contains(queue));
                if !kept || !client.allowed.has(port) {
                    stray.push((*id, *number, port.clone(), *queue));
                }
            }
        }
        for (id, number, port, queue) in stray {
            tracing::warn!(client = id, port, queue, "may not have the receive queue any more");
            if let Some(left) = self.close_client_queues(id, number) {
                left.forget();
            }
        }
    }

    /// Memory of clients that are gone in which no buffer lies any more, to be unmapped by whoever asked, here and for its device,
    /// and whether that was all of it.
    pub(super) fn free_retired(&mut self) -> (Vec<Retired>, bool) {
        // One for itself, one for the device.
        let retired = std::mem::take(&mut self.clients.retired).into_iter();
        let (free, held): (Vec<_>, _) = retired.partition(|retired| {
            Arc::strong_count(&retired.memory) == 1 && Arc::strong_count(&retired.segment) <= 2
        });
        self.clients.retired = held;
        (free, self.clients.retired.is_empty())
    }
}

impl Clients {
    /// The client that has a queue for itself.
    pub(crate) fn of_queue(&self, port: &str, queue: u16) -> Option<u32> {
        let is_it = |queues: &Queues| {
            queues.asked.queue.as_ref().is_some_and(|own| own.port == port && own.queue == queue)
        };
        let mut clients = self.list.iter();
        clients.find(|(_, client)| client.queues.values().any(is_it)).map(|(id, _)| *id)
    }
}

/// Does something with a receive queue, on its worker.
fn on_queue<R>(
    state: &mut WorkerState,
    (port, queue): (PortId, u16),
    act: impl FnOnce(&mut RxAssignment) -> R,
) -> Option<R> {
    let is_it = |rx: &&mut RxAssignment| rx.port == port && rx.queue.index() == queue;
    state.receive_mut().iter_mut().find(is_it).map(act)
}

/// The receive queues of a port that clients can have. While it is closed: those that it will have.
fn for_clients(port: &PortState) -> std::ops::Range<u16> {
    let opened = u16::try_from(port.queues.0).unwrap_or(u16::MAX);
    let all = if port.open.is_some() { opened } else { port.config.rx_queues };
    all.saturating_sub(port.config.client_queues)..all
}
