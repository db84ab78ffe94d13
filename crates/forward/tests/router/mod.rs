//! A whole forwarder graph without devices: frames go in by port, and what the graph transmits is
//! read back from rings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    missing_docs,
    reason = "test bed"
)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dpdk::{Buffer, BufferPool, Eal, EalOptions, Memory};
use graph::{
    Counters, Doorbell, Entry, Exits, Graph, Handoff, HandoffReceiver, InterfaceId, Output, PortId,
    Punt, Reason, Stacks, TransmitPath, Vector, ring,
};
use millrace_forward::bridge::{LearnReceiver, MacTable, learn_ring};
use millrace_forward::flow::{FlowLimits, Flows};
use millrace_forward::nodes::{self, Parts};
use millrace_forward::rib::{Change, Limits, Miss, NextHopMacs, Prefix, Rib, Route, Target};
use millrace_forward::state::{
    DEFAULT_VRF, Features, Interface, Interfaces, Mode, PortEntry, Settings, State,
};
use millrace_forward::steering::{Steering, SteeringLimits};
use tables::Epoch;
use wire::MacAddr;

/// Ports of the test bed; port n has interface n.
pub(crate) const PORTS: u16 = 3;
/// A clock that ticks once a nanosecond.
const HZ: u64 = 1_000_000_000;

pub(crate) fn mac(last: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, last])
}

/// The host behind port n.
pub(crate) fn host(port: u16) -> MacAddr {
    mac(0x80 + port as u8)
}

/// Port n is 10.0.n.1/24 and 2001:db8:n::1/64, with MAC 02:00:00:00:00:0n.
pub(crate) fn interface(port: u16) -> Interface {
    Interface {
        name: format!("p{port}"),
        generation: 0,
        port: Some(PortId::new(port)),
        vlan: None,
        mac: mac(port as u8),
        mtu: 1500,
        addresses4: vec![(Ipv4Addr::new(10, 0, port as u8, 1), 24)],
        addresses6: vec![
            (Ipv6Addr::new(0x2001, 0xdb8, port, 0, 0, 0, 0, 1), 64),
            (mac(port as u8).link_local(), 64),
        ],
        any_mac: false,
        up: true,
        unnumbered: false,
        mode: Mode::Routed,
        vrf: DEFAULT_VRF,
        features: Features::default(),
    }
}

pub(crate) fn interfaces() -> Interfaces {
    Interfaces {
        list: (0..PORTS).map(|port| Some(interface(port))).collect(),
        ports: (0..PORTS)
            .map(|port| PortEntry {
                id: PortId::new(port),
                untagged: Some(InterfaceId::new(port)),
                vlans: Vec::new(),
            })
            .collect(),
        bridges: Vec::new(),
        vrfs: BTreeMap::new(),
    }
}

/// Who is behind each port.
fn beyond() -> NextHopMacs {
    (0..PORTS).map(|port| (InterfaceId::new(port), host(port))).collect()
}

/// Routes to 10.1n.0.0/16 and 2001:db8:1n::/48 through port n, to the host behind it.
pub(crate) fn routes() -> Vec<Change> {
    let mut changes = Vec::new();
    for port in 0..PORTS {
        for prefix in [format!("10.1{port}.0.0/16"), format!("2001:db8:1{port}::/48")] {
            let target = Target::Port(InterfaceId::new(port));
            changes.push(Change::Add(Route::of_static(DEFAULT_VRF, prefix_of(&prefix), target)));
        }
    }
    changes
}

/// An empty routing table, of nobody.
pub(crate) fn no_routes() -> Rib {
    let limits = Limits { routes4: 1, routes6: 1, next_hops: 1, groups: 1 };
    Rib::new(limits, Miss::Drop, SETTINGS, &Epoch::new()).unwrap().0
}

pub(crate) const SETTINGS: Settings = Settings {
    martians: true,
    directed_broadcast: false,
    icmp_rate: 1000,
    hash_seed: 0,
    flows4: false,
    flows6: false,
    tsc_hz: HZ,
};

/// With flows, which are looked for before routes: then no packet takes the short path.
pub(crate) const FLOWS: Settings = Settings { flows4: true, flows6: true, ..SETTINGS };

pub(crate) struct Router {
    pub(crate) rib: Rib,
    pub(crate) state: State,
    pub(crate) flows: Flows,
    pub(crate) macs: MacTable,
    pub(crate) steering: Steering,
    pub(crate) learned: LearnReceiver,
    pub(crate) punts: HandoffReceiver<Punt>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) now: u64,
    pub(crate) pool: BufferPool,
    pub(crate) stacks: Stacks,
    pub(crate) graph: Graph,
    exits: Exits,
    vector: Box<Vector>,
    sent: Vec<HandoffReceiver<Buffer>>,
    _turn: MutexGuard<'static, ()>,
}

/// A frame that left by a port.
pub(crate) type Sent = (u16, Vec<u8>);

fn pool() -> BufferPool {
    static POOL: OnceLock<BufferPool> = OnceLock::new();
    *POOL.get_or_init(|| {
        let options = EalOptions { memory: Memory::Plain, megabytes: 128, ..EalOptions::default() };
        Eal::init(&options).unwrap();
        BufferPool::new("router", 4095, 2048, 0, None).unwrap()
    })
}

impl Router {
    pub(crate) fn new(miss: Miss, interfaces: Interfaces) -> Self {
        Self::with(SETTINGS, miss, interfaces)
    }

    pub(crate) fn with(settings: Settings, miss: Miss, interfaces: Interfaces) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pool();
        assert_eq!(pool.available(), pool.capacity(), "an earlier test has kept buffers");
        let epoch = Epoch::new();
        let limits = Limits { routes4: 1000, routes6: 1000, next_hops: 1000, groups: 100 };
        let (mut rib, state) = Rib::new(limits, miss, settings, &epoch).unwrap();
        state.interfaces.store(Arc::new(interfaces.clone()));
        rib.set_interfaces(&interfaces, &beyond());
        let flow_limits = FlowLimits { flows4: 100, flows6: 100, translations: 10 };
        let flows =
            Flows::new(flow_limits, state.next_hops.clone(), rib.flow_next_hops(), &epoch).unwrap();
        let macs = MacTable::new(64, &epoch).unwrap();
        let steering = Steering::new(SteeringLimits::default(), 1, &epoch).unwrap();
        let (learn, learned) = learn_ring(64);
        let graph = nodes::build(Parts {
            state: state.clone(),
            flows: flows.readers(),
            macs: macs.reader(),
            steering: steering.reader(),
            learn,
            pool,
        })
        .unwrap();
        let counters = Arc::new(Counters::new(graph.names().len(), usize::from(PORTS)));
        let doorbell = || Arc::new(Doorbell::new().unwrap());
        let (punt, punts) = ring(256, doorbell());
        let mut exits = Exits::new(Output::new(usize::from(PORTS), 0), counters.clone(), punt);
        let mut sent = Vec::new();
        for port in 0..PORTS {
            let (sender, receiver) = ring(1024, doorbell());
            exits.set_path(PortId::new(port), Some(TransmitPath::Worker(sender)));
            sent.push(receiver);
        }
        Self {
            rib,
            state,
            flows,
            macs,
            steering,
            learned,
            punts,
            counters,
            now: HZ,
            pool,
            stacks: Stacks::default(),
            graph,
            exits,
            vector: Vector::new(),
            sent,
            _turn: turn,
        }
    }

    /// Three routed ports with [`routes`].
    pub(crate) fn routed() -> Self {
        Self::routed_with(SETTINGS)
    }

    pub(crate) fn routed_with(settings: Settings) -> Self {
        let mut router = Self::with(settings, Miss::Unreachable, interfaces());
        router.rib.apply(&routes()).unwrap();
        router
    }

    /// The same, and the hosts 10.0.n.99 and 2001:db8:n::99 are there.
    pub(crate) fn with_hosts() -> Self {
        Self::with_hosts_and(SETTINGS)
    }

    pub(crate) fn with_hosts_and(settings: Settings) -> Self {
        let mut router = Self::routed_with(settings);
        let hosts = (0..PORTS).flat_map(|port| {
            let prefixes = [format!("10.0.{port}.99/32"), format!("2001:db8:{port}::99/128")];
            prefixes.map(|prefix| {
                Change::Add(Route::of_static(
                    DEFAULT_VRF,
                    prefix_of(&prefix),
                    Target::Port(InterfaceId::new(port)),
                ))
            })
        });
        router.rib.apply(&hosts.collect::<Vec<_>>()).unwrap();
        router
    }

    /// Runs frames that came in by `port` through the graph; what left, in order of ports.
    pub(crate) fn receive(&mut self, port: u16, frames: &[&[u8]]) -> Vec<Sent> {
        self.receive_mixed(frames.iter().map(|frame| (port, *frame)))
    }

    /// The same for frames of several ports.
    pub(crate) fn receive_mixed<'a>(
        &mut self,
        frames: impl IntoIterator<Item = (u16, &'a [u8])>,
    ) -> Vec<Sent> {
        for (port, frame) in frames {
            let mut buffer = self.pool.alloc().unwrap();
            buffer.append(frame.len()).unwrap().copy_from_slice(frame);
            buffer.set_port(port);
            self.vector.push(buffer).unwrap();
        }
        let entry = self.graph.find(nodes::INPUT).unwrap();
        self.graph.enter(&self.vector, entry);
        self.run()
    }

    /// Lets a packet enter the graph at a node, as the control thread does it.
    pub(crate) fn inject(&mut self, packet: Handoff, node: &str) -> Vec<Sent> {
        let mut entry = Some(Entry { node: self.graph.find(node).unwrap(), packet });
        self.graph.admit(&mut self.vector, &mut self.exits, |_| entry.take());
        self.run()
    }

    fn run(&mut self) -> Vec<Sent> {
        self.now += 1_000_000;
        self.graph.run(&mut self.vector, &mut self.exits, self.now);
        self.stacks.deliver(&mut self.exits, self.now);
        self.sent()
    }

    /// Takes what stacks have sent, as a worker does in rounds until there is no more; what left.
    pub(crate) fn send_of_stacks(&mut self) -> Vec<Sent> {
        self.now += 1_000_000;
        let mut all = Vec::new();
        loop {
            let (graph, vector) = (&mut self.graph, &mut self.vector);
            let found = self.stacks.send(graph, vector, &mut self.exits, self.now);
            all.extend(self.sent());
            if found == 0 {
                return all;
            }
        }
    }

    fn sent(&mut self) -> Vec<Sent> {
        self.exits.output.flush(&self.counters);
        let mut all = Vec::new();
        for (port, ring) in self.sent.iter_mut().enumerate() {
            while let Ok(packet) = ring.pop() {
                all.push((port as u16, packet.data().to_vec()));
            }
        }
        all
    }

    /// The one frame that comes of a frame.
    pub(crate) fn forward(&mut self, port: u16, frame: &[u8]) -> Sent {
        let mut sent = self.receive(port, &[frame]);
        assert_eq!(sent.len(), 1, "one frame leaves; drops: {:?}", self.drops());
        sent.remove(0)
    }

    /// Asserts that the frame is dropped, for that reason alone.
    pub(crate) fn expect_drop(&mut self, port: u16, frame: &[u8], reason: Reason) {
        let total = |router: &Self| router.drops().iter().map(|(_, count)| count).sum::<u64>();
        let before = (self.dropped(reason), total(self));
        let sent = self.receive(port, &[frame]);
        assert_eq!(sent, [], "nothing leaves");
        let after = (self.dropped(reason), total(self));
        assert_eq!(after, (before.0 + 1, before.1 + 1), "{reason:?}; drops: {:?}", self.drops());
    }

    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        self.counters.drops[reason as usize].get()
    }

    /// Reasons that have counted.
    pub(crate) fn drops(&self) -> Vec<(&'static str, u64)> {
        let counted = Reason::ALL.iter().map(|reason| (reason.name(), self.dropped(*reason)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// What the router has learned of addresses goes into the table, as the control thread does it.
    pub(crate) fn learn(&mut self) {
        let second = (self.now / HZ) as u32;
        while let Ok(news) = self.learned.pop() {
            self.macs.learn(&news, 8, second);
        }
    }

    /// Asserts that every buffer is back in the pool.
    pub(crate) fn assert_no_buffer_is_out(&self) {
        assert_eq!(self.pool.available(), self.pool.capacity(), "a buffer is lost");
    }

    pub(crate) fn set_interfaces(&mut self, interfaces: Interfaces) {
        self.state.interfaces.store(Arc::new(interfaces));
    }

    /// Shows interfaces to the routes, too, and makes the VRFs that they name.
    pub(crate) fn show(&mut self, interfaces: Interfaces) {
        for id in interfaces.vrfs.keys() {
            self.rib.open_vrf(*id).unwrap();
        }
        self.rib.set_interfaces(&interfaces, &beyond());
        self.set_interfaces(interfaces);
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn prefix_of(text: &str) -> Prefix {
    if text.contains(':') {
        text.parse::<wire::Ipv6Prefix>().unwrap().into()
    } else {
        text.parse::<wire::Ipv4Prefix>().unwrap().into()
    }
}
