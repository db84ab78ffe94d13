//! Packets that wait for a neighbour, and the workers that they come from.

use std::net::Ipv4Addr;
use std::sync::Arc;

use control::Config;
use control::net::MacAddr;
use forward::neighbor::Packet as _;
use forward::rib::{Change, Prefix, Rib, Route, Target, Via};
use forward::state::{DEFAULT_VRF, reserved};
use graph::{Doorbell, Entry, HandoffReceiver, HandoffSender, PortId};
use tables::Epoch;

use super::*;
use crate::ports::Attachment;
use crate::workers::{Inbox, Injector};
use crate::{settings, testing};

const WORKERS: usize = 3;
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// Routing with a port on 10.0.1.1/24, and the ends of its workers' rings.
struct Bench {
    config: Config,
    routing: Routing,
    up: Vec<HandoffSender<Punt>>,
    down: Vec<HandoffReceiver<Entry>>,
}

impl Bench {
    fn new(room: usize) -> Self {
        let port = "[[port]]\nname = \"left\"\ndevice = \"null\"\naddresses = [\"10.0.1.1/24\"]\n";
        let config = testing::config(port);
        let (injector, down) = Injector::bench(WORKERS, room);
        let ring = |_| graph::ring(64, Arc::new(Doorbell::new().unwrap()));
        let (up, punts) = (0..WORKERS).map(ring).unzip();
        let limits = settings::limits(&config);
        let switches = settings::settings(&config, 0);
        let (rib, state) =
            Rib::new(limits, settings::miss(&config), switches, &Epoch::new()).unwrap();
        let routing =
            Routing::new(&config, (rib, state, 0), (injector, Inbox::new(punts))).unwrap();
        let mut bench = Self { config, routing, up, down };
        bench.set_link(true);
        bench
    }

    fn set_link(&mut self, up: bool) {
        let (id, mac) = (Some(PortId::new(0)), MacAddr::new([2, 0, 0, 0, 0, 1]));
        let left = Attachment { id, mac, up };
        self.routing.show_interfaces(&self.config, &[("left".to_owned(), left)].into());
    }

    fn punt(&mut self, worker: usize, cause: Cause, bytes: &[u8]) {
        let mut buffer = testing::pool().alloc().unwrap();
        buffer.append(bytes.len()).unwrap().copy_from_slice(bytes);
        let mut packet = Handoff { interface: InterfaceId::new(0), ..Handoff::of(buffer) };
        packet.next_hop = self.routing.state.routes4.lookup(Ipv4Addr::new(10, 0, 1, 9).to_bits());
        assert!(self.up[worker].push(Punt { cause: cause as u16, packet }).is_ok());
    }

    /// A packet to 10.0.1.9 that is known by its last byte.
    fn forward(&mut self, worker: usize, number: u8) {
        let mut packet = [0; 21];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[10, 0, 1, 9]);
        packet[20] = number;
        self.punt(worker, Cause::Glean, &packet);
    }

    /// 10.0.1.9 answers.
    fn answer(&mut self, worker: usize) {
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 2];
        arp.extend(PEER);
        arp.extend([10, 0, 1, 9, 2, 0, 0, 0, 0, 1, 10, 0, 1, 1]);
        self.punt(worker, Cause::Arp, &arp);
    }

    /// Numbers of the packets that each worker has got back.
    fn released(&mut self) -> Vec<Vec<u8>> {
        let number = |Entry { node, packet }| {
            assert_eq!(node, Injector::RELEASED);
            packet.network().last().copied().unwrap()
        };
        let taken = |ring: &mut HandoffReceiver<Entry>| {
            std::iter::from_fn(|| ring.pop().ok()).map(number).collect()
        };
        self.down.iter_mut().map(taken).collect()
    }
}

#[test]
fn packets_that_waited_go_back_to_their_worker_in_order() {
    let mut bench = Bench::new(64);
    for (worker, numbers) in [(1, [10, 11]), (0, [1, 2]), (1, [12, 13]), (0, [3, 4])] {
        numbers.into_iter().for_each(|number| bench.forward(worker, number));
        bench.routing.turn();
    }
    assert_eq!(bench.released(), [[0; 0]; WORKERS], "the neighbour has not answered");
    // One more that was handed up before its worker saw the answer.
    bench.forward(1, 14);
    bench.answer(0);
    bench.forward(0, 5);
    bench.routing.turn();
    assert_eq!(bench.released(), [vec![1, 2, 3, 4, 5], vec![10, 11, 12, 13, 14], vec![]]);
}

#[test]
fn a_worker_that_takes_nothing_back_keeps_no_other_waiting() {
    let mut bench = Bench::new(2);
    for number in 0..4 {
        bench.forward(0, number);
        bench.forward(2, 10 + number);
    }
    bench.answer(1);
    bench.routing.turn();
    bench.forward(2, 20);
    bench.routing.turn();
    assert_eq!(bench.released(), [vec![0, 1], vec![], vec![10, 11]]);
    assert_eq!(bench.routing.dropped(Reason::HandoffFull), 5);
}

#[test]
fn many_routes_follow_their_link_in_several_turns() {
    const COUNT: u32 = 5000;
    let mut bench = Bench::new(64);
    let via = Via { address: Ipv4Addr::new(10, 0, 1, 9).into(), interface: None, weight: 1 };
    let host = |n: u32| Ipv4Addr::from_bits(0x1400_0000 + n);
    let route = |n: u32| {
        let target = Target::Via(vec![via]);
        Change::Add(Route::of_static(DEFAULT_VRF, Prefix::host(host(n).into()), target))
    };
    bench.routing.change_routes(&(0..COUNT).map(route).collect::<Vec<_>>()).unwrap();
    for (up, misses) in [(false, COUNT as usize), (true, 0)] {
        bench.set_link(up);
        let mut turns = 1;
        while bench.routing.turn().more {
            turns += 1;
        }
        assert!(turns >= COUNT as usize / ROUTES, "{turns} turns");
        let found = (0..COUNT).map(|n| bench.routing.state.routes4.lookup(host(n).to_bits()));
        assert_eq!(found.filter(|value| *value == reserved::MISS).count(), misses);
    }
}
