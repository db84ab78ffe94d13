//! A forwarder like the daemon's, with one worker, without the daemon.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ::forward::bridge::{MacTable, learn_ring};
use ::forward::flow::{FlowLimits, Flows};
use ::forward::nodes::{self, Parts};
use ::forward::rib::{self, Change, Limits, Miss, NextHopMacs, Rib, Route, Target};
use ::forward::state::{
    DEFAULT_VRF, Features, Interface, Interfaces, Mode, PortEntry, Settings, State,
};
use ::forward::steering::{Steering, SteeringLimits};
use dpdk::{BufferPool, RxQueue, TxQueue};
use graph::{
    Counters, Doorbell, Exits, InterfaceId, Output, PollMode, PortId, Reason, RxAssignment,
    TransmitPath, WorkerHandle, WorkerSetup, ring,
};
use tables::{Epoch, Prefix};
use wire::MacAddr;

use crate::failure::Failure;
use crate::load::Destination;

/// DPDK numbers its ports below this.
pub(crate) const PORTS: usize = 32;
/// How long the worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Drain time of the transmit buffers: microseconds, as the daemon's default.
const DRAIN: u64 = 100;

/// Own MAC address of a port.
pub(crate) fn mac(port: u16) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, port as u8])
}

/// Every port has an interface of the same number.
fn interfaces() -> Interfaces {
    let interface = |port: u16| Interface {
        name: format!("port{port}"),
        generation: 0,
        port: Some(PortId::new(port)),
        vlan: None,
        mac: mac(port),
        mtu: 1500,
        addresses4: vec![(Ipv4Addr::new(198, 18, 255, 1 + 4 * port as u8), 30)],
        addresses6: vec![(Ipv6Addr::new(0x2001, 2, 0, port + 1, 0, 0, 0, 1), 64)],
        any_mac: false,
        up: true,
        unnumbered: false,
        mode: Mode::Routed,
        vrf: DEFAULT_VRF,
        features: Features::default(),
    };
    let entry = |port| PortEntry {
        id: PortId::new(port),
        untagged: Some(InterfaceId::new(port)),
        vlans: Vec::new(),
    };
    let ports = 0..PORTS as u16;
    Interfaces {
        list: ports.clone().map(|port| Some(interface(port))).collect(),
        ports: ports.map(entry).collect(),
        bridges: Vec::new(),
        vrfs: BTreeMap::new(),
    }
}

/// The routing tables.
pub(crate) struct Router {
    state: State,
    flows: Flows,
    macs: MacTable,
    epoch: Epoch,
    _rib: Rib,
}

impl Router {
    /// Routes spread evenly over the egress ports.
    pub(crate) fn new<A: Destination>(
        routes: &[Prefix<A>],
        egress: &[u16],
    ) -> Result<Self, Failure> {
        let settings = Settings {
            martians: true,
            directed_broadcast: false,
            icmp_rate: 1000,
            hash_seed: 0,
            flows4: false,
            flows6: false,
            tsc_hz: dpdk::tsc_hz(),
        };
        let epoch = Epoch::new();
        let limits =
            Limits { routes4: 2_000_000, routes6: 500_000, next_hops: 1 << 14, groups: 100 };
        let (mut rib, state) = Rib::new(limits, Miss::Drop, settings, &epoch)?;
        let interfaces = interfaces();
        let beyond: NextHopMacs = (0..PORTS as u16)
            .map(|port| (InterfaceId::new(port), MacAddr::new([2, 0, 0, 0, 2, port as u8])))
            .collect::<BTreeMap<_, _>>();
        state.interfaces.store(Arc::new(interfaces.clone()));
        rib.set_interfaces(&interfaces, &beyond);
        let mut changes = Vec::with_capacity(routes.len());
        for (route, port) in routes.iter().zip(egress.iter().cycle()) {
            let prefix = rib::Prefix::new(route.bits().address(), route.len())?;
            changes.push(Change::Add(Route::of_static(
                DEFAULT_VRF,
                prefix,
                Target::Port(InterfaceId::new(*port)),
            )));
        }
        rib.apply(&changes)?;
        let limits = FlowLimits { flows4: 0, flows6: 0, translations: 0 };
        let flows = Flows::new(limits, state.next_hops.clone(), rib.flow_next_hops(), &epoch)?;
        let macs = MacTable::new(64, &epoch)?;
        Ok(Self { state, flows, macs, epoch, _rib: rib })
    }

    /// Starts the worker, with the transmit queues of the egress ports.
    pub(crate) fn start(
        &self,
        pool: BufferPool,
        core: usize,
        burst: u16,
        egress: Vec<TxQueue>,
    ) -> Result<Running, Failure> {
        let handle = self.spawn(0, pool, core, burst)?;
        handle.call(PATIENCE, move |state| {
            for queue in egress {
                state.set_path(PortId::new(queue.port()), Some(TransmitPath::Queue(queue)));
            }
        })?;
        Ok(Running { handle })
    }

    /// Starts a worker without queues.
    pub(crate) fn spawn(
        &self,
        index: usize,
        pool: BufferPool,
        core: usize,
        burst: u16,
    ) -> Result<WorkerHandle, Failure> {
        let (state, flows, macs) = (self.state.clone(), self.flows.readers(), self.macs.reader());
        let steering = Steering::new(SteeringLimits::default(), 0, &self.epoch)?.reader();
        let control = Arc::new(Doorbell::new()?);
        let drain = DRAIN * (dpdk::tsc_hz() / 1_000_000);
        let setup = WorkerSetup {
            index,
            core: Some(core),
            entry: nodes::INPUT,
            doorbell: Arc::new(Doorbell::new()?),
            burst: burst.into(),
            poll: PollMode::Adaptive,
        };
        let make = move || {
            let (learn, _learned) = learn_ring(64);
            let graph = nodes::build(Parts { state, flows, macs, steering, learn, pool })?;
            let counters = Arc::new(Counters::new(graph.names().len(), PORTS));
            // What is punted is dropped, and counted as that.
            let (punts, _control) = ring(64, control);
            Ok((graph, Exits::new(Output::new(PORTS, drain), counters, punts), ()))
        };
        let (handle, ()) = WorkerHandle::spawn(setup, make)?;
        let reader = self.epoch.register()?;
        handle.call(PATIENCE, move |state| state.set_reader(reader))?;
        Ok(handle)
    }
}

/// The worker. Without a receive queue it sleeps.
pub(crate) struct Running {
    handle: WorkerHandle,
}

impl Running {
    /// Gives it the queue.
    pub(crate) fn resume(&self, queue: RxQueue) -> Result<(), Failure> {
        let give = move |state: &mut graph::WorkerState| {
            state.add_receive(RxAssignment::new(PortId::new(queue.port()), queue));
        };
        Ok(self.handle.call(PATIENCE, give)?)
    }

    /// Takes the queue back.
    pub(crate) fn pause(&self, port: u16) -> Result<RxQueue, Failure> {
        let back =
            self.handle.call(PATIENCE, move |state| state.remove_receive(PortId::new(port), 0))?;
        Ok(back.ok_or(Failure::NoQueue)?.queue)
    }

    /// The worker, for what only some measurements do with it.
    pub(crate) fn handle(&self) -> &WorkerHandle {
        &self.handle
    }

    /// Packets received so far.
    pub(crate) fn packets(&self) -> u64 {
        self.handle.counters().packets.get()
    }

    /// Nodes that packets went through: name, packets/vector, cycles/packet.
    pub(crate) fn profile(&self) -> Vec<(&'static str, f64, f64)> {
        let nodes = self.handle.nodes().iter().zip(&self.handle.counters().nodes);
        let used = nodes.filter(|(_, counters)| counters.sampled_packets.get() > 0);
        used.map(|(name, node)| {
            let vector = node.packets.get() as f64 / node.vectors.get() as f64;
            let cycles = node.sampled_cycles.get() as f64 / node.sampled_packets.get() as f64;
            (*name, vector, cycles)
        })
        .collect()
    }

    /// Ends the worker; gives the transmit queues back. A drop is an error: all packets are valid
    /// and have a route.
    pub(crate) fn stop(self) -> Result<Vec<TxQueue>, Failure> {
        let counters = Arc::clone(self.handle.counters());
        let stopped = self.handle.stop(PATIENCE)?;
        let drops = Reason::ALL.iter().zip(&counters.drops).filter(|(_, n)| n.get() > 0);
        let reasons: Vec<_> = drops.map(|(why, n)| format!("{} {}", n.get(), why.name())).collect();
        let forwarded = counters.ports.iter().map(|port| port.tx_packets.get()).sum();
        if !reasons.is_empty() {
            return Err(Failure::Dropped { forwarded, reasons: reasons.join(", ") });
        }
        let paths = stopped.transmit.into_iter();
        Ok(paths
            .filter_map(|(_, path)| match path {
                TransmitPath::Queue(queue) => Some(queue),
                TransmitPath::Worker(_) => None,
            })
            .collect())
    }
}
