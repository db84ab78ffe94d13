//! Stations, and members that come and go.

use graph::{InterfaceId, PortId};
use std::collections::HashMap;

use control::net::MacAddr;
use forward::bridge::{Learn, LearnSender, MacKey, learn_ring};
use tables::Epoch;

use super::*;
use crate::ports::Attachment;
use crate::routing::{InUse, Topology};
use crate::testing;

/// The ports of that list, all of them members of a bridge.
fn members(topology: &mut Topology, bridge: &str, list: &[&str]) -> Interfaces {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndevice = \"null\"\n");
    let ports: String = list.iter().copied().map(port).collect();
    let text = format!("{ports}[[bridge]]\nname = \"{bridge}\"\nmembers = {list:?}\n");
    let config = testing::config(&text);
    topology.renumber(&config, &InUse::default()).unwrap();
    let attachment = |name: &&str| {
        let mac = MacAddr::new([2, 0, 0, 0, 0, 1]);
        ((*name).to_owned(), Attachment { id: Some(PortId::new(0)), mac, up: true })
    };
    topology.interfaces(&config, &list.iter().map(attachment).collect())
}

fn see(ring: &mut LearnSender, bridge: u16, interface: u16, last: u8) {
    let mac = wire::MacAddr::new([2, 0, 0, 0, 1, last]);
    ring.push(Learn {
        key: MacKey { bridge, vlan: 0, mac },
        interface: InterfaceId::new(interface),
    })
    .unwrap();
}

/// Names of the interfaces by the last bytes of the stations that are behind them.
fn known(bridges: &Bridges, interfaces: &Interfaces) -> HashMap<u8, String> {
    let entries = (0..8).flat_map(|bridge| bridges.learned_by(bridge));
    let named = entries.map(|entry| {
        let name = interfaces.get(entry.interface).map_or("?", |interface| &interface.name);
        (entry.key.mac.octets()[5], name.to_owned())
    });
    named.collect()
}

fn stations(list: &[(u8, &str)]) -> HashMap<u8, String> {
    list.iter().map(|(last, name)| (*last, (*name).to_owned())).collect()
}

#[test]
fn stations_stay_behind_their_interface_and_go_with_it() {
    // Seconds are DPDK's.
    testing::pool();
    let (mut ring, learned) = learn_ring(16);
    let mut bridges =
        Bridges::new(MacTable::new(16, &Epoch::new()).unwrap(), Inbox::new(vec![learned]));
    let mut topology = Topology::default();
    let all = members(&mut topology, "br", &["a", "b", "c"]);
    (0..3).for_each(|id| see(&mut ring, 0, id, id as u8));
    bridges.learn(&all);
    assert_eq!(known(&bridges, &all), stations(&[(0, "a"), (1, "b"), (2, "c")]));

    // b goes, and what was seen of it last comes in after that.
    let all = members(&mut topology, "br", &["a", "c"]);
    bridges.show_interfaces(&all);
    see(&mut ring, 0, 1, 7);
    bridges.learn(&all);
    assert_eq!(known(&bridges, &all), stations(&[(0, "a"), (2, "c")]));
    // Its number is another's.
    let all = members(&mut topology, "br", &["a", "c", "d"]);
    assert_eq!(topology.interface("d"), Some(InterfaceId::with_generation(1, 1)));
    bridges.show_interfaces(&all);
    assert_eq!(known(&bridges, &all), stations(&[(0, "a"), (2, "c")]));

    // The bridge goes, and its number is another's.
    for (name, number) in [("other", 1), ("third", 0)] {
        let all = members(&mut topology, name, &["a", "c", "d"]);
        assert_eq!(topology.bridges.number(name), Some(number));
        bridges.show_interfaces(&all);
        assert_eq!(known(&bridges, &all), stations(&[]));
    }
}
