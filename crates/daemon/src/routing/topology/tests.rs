//! Configurations and the interfaces that the nodes see.

use super::*;
use crate::ports::{Attachment, Needs};
use crate::testing;

const PORTS_ABC: &str = r#"
[[port]]
name = "a"
device = "null"
addresses = ["10.0.1.1/24", "2001:db8:1::1/64"]
[[port]]
name = "b"
device = "null"
mtu = 9000
[[port]]
name = "c"
device = "null"
"#;

fn attached(names: &[(&str, Option<PortId>)]) -> Attachments {
    let mac = |n: usize| MacAddr::new([2, 0, 0, 0, 0, u8::try_from(n).unwrap()]);
    let with = |(n, (name, id)): (usize, &(&str, Option<PortId>))| {
        ((*name).to_owned(), Attachment { id: *id, mac: mac(n + 1), up: id.is_some() })
    };
    names.iter().enumerate().map(with).collect()
}

fn interfaces(config: &Config) -> (Topology, Interfaces) {
    let mut topology = Topology::default();
    topology.renumber(config, &InUse::default()).unwrap();
    let ports = attached(&[
        ("a", Some(PortId::new(7))),
        ("b", Some(PortId::new(3))),
        ("c", Some(PortId::new(0))),
    ]);
    let all = topology.interfaces(config, &ports);
    (topology, all)
}

fn find<'a>(all: &'a Interfaces, name: &str) -> &'a Interface {
    all.list.iter().flatten().find(|interface| interface.name == name).unwrap()
}

#[test]
fn ports_and_vlans_take_the_frames_of_their_device() {
    let vlan = "[[vlan]]\nname = \"b.5\"\nport = \"b\"\nid = 5\naddresses = [\"10.0.5.1/24\"]\n";
    let config = testing::config(&format!("{PORTS_ABC}{vlan}"));
    let (topology, all) = interfaces(&config);
    let a = topology.interface("a").unwrap();
    let tagged = topology.interface("b.5").unwrap();
    assert_eq!(all.of_frame(PortId::new(7), None), Some(a));
    assert_eq!(all.of_frame(PortId::new(3), Some(5)), Some(tagged));
    assert_eq!(all.of_frame(PortId::new(3), Some(6)), None);
    let vlan = find(&all, "b.5");
    assert_eq!((vlan.port, vlan.vlan), (Some(PortId::new(3)), Some(5)));
    assert_eq!(vlan.mac, find(&all, "b").mac, "a sub-interface has its port's address");
}

#[test]
fn a_link_local_address_is_added_where_there_is_ipv6() {
    let config = testing::config(PORTS_ABC);
    let (_, all) = interfaces(&config);
    let expected: Ipv6Addr = "fe80::ff:fe00:1".parse().unwrap();
    assert!(find(&all, "a").addresses6.contains(&(expected, 64)));
    assert!(find(&all, "b").addresses6.is_empty());
}

#[test]
fn a_port_that_is_gone_keeps_its_interface_but_no_way_out() {
    let config = testing::config(PORTS_ABC);
    let mut topology = Topology::default();
    topology.renumber(&config, &InUse::default()).unwrap();
    let ports = attached(&[("a", None), ("b", Some(PortId::new(3))), ("c", Some(PortId::new(0)))]);
    let all = topology.interfaces(&config, &ports);
    assert_eq!(find(&all, "a").port, Some(PortId::NONE));
    assert_eq!(all.of_frame(PortId::new(7), None), None);
}

#[test]
fn a_bridge_is_up_while_one_of_its_members_is() {
    let more = "[[vlan]]\nname = \"c.5\"\nport = \"c\"\nid = 5\n\
                [[bridge]]\nname = \"br\"\nmembers = [\"b\", \"c.5\"]\naddresses = [\"10.0.9.1/24\"]\n";
    let config = testing::config(&format!("{PORTS_ABC}{more}"));
    let mut topology = Topology::default();
    topology.renumber(&config, &InUse::default()).unwrap();
    for (b, c) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut ports = attached(&[
            ("a", Some(PortId::new(7))),
            ("b", Some(PortId::new(3))),
            ("c", Some(PortId::new(0))),
        ]);
        ports.get_mut("b").unwrap().up = b;
        ports.get_mut("c").unwrap().up = c;
        let all = topology.interfaces(&config, &ports);
        let up = ["a", "b", "c", "c.5", "br"].map(|name| find(&all, name).up);
        assert_eq!(up, [true, b, c, c, b || c], "a sub-interface is up with its port");
    }
}

#[test]
fn bridges_and_cross_connects_set_the_mode() {
    let bridge =
        "[[bridge]]\nname = \"br\"\nmembers = [\"b\", \"c\"]\naddresses = [\"10.0.9.1/24\"]\n";
    let config = testing::config(&format!("{PORTS_ABC}{bridge}"));
    let (topology, all) = interfaces(&config);
    let number = topology.bridges.number("br").unwrap();
    assert_eq!(find(&all, "b").mode, Mode::Member { bridge: number, member: 0 });
    assert_eq!(find(&all, "c").mode, Mode::Member { bridge: number, member: 1 });
    let ip = find(&all, "br");
    assert_eq!((ip.mode, ip.port), (Mode::BridgeIp(number), None));
    assert_eq!(ip.mac, find(&all, "b").mac, "the first member's address");
    let promiscuous = |name| Needs::of(&config, name).promiscuous;
    assert_eq!(["a", "b", "c"].map(promiscuous), [false, true, true]);

    let connect = "[[cross-connect]]\nfrom = \"b\"\nto = \"c\"\nboth-ways = false\n";
    let config = testing::config(&format!("{PORTS_ABC}{connect}"));
    let (topology, all) = interfaces(&config);
    let c = topology.interface("c").unwrap();
    assert_eq!(find(&all, "b").mode, Mode::CrossConnect(c));
    assert_eq!(find(&all, "c").mode, Mode::Routed, "one way only");
}

#[test]
fn ports_without_addresses_route_only_in_the_variant_with_fixed_macs() {
    let (_, plain) = interfaces(&testing::config(PORTS_ABC));
    assert!(!find(&plain, "b").takes_ip4());
    let reflect = testing::config(&format!("[forwarding]\nmiss = \"reflect\"\n{PORTS_ABC}"));
    let (_, all) = interfaces(&reflect);
    assert!(find(&all, "b").takes_ip4() && find(&all, "b").any_mac);
    assert!(!find(&all, "a").any_mac, "a port with an address has its own MAC");
    assert!(Needs::of(&reflect, "b").promiscuous);
}

#[test]
fn interfaces_are_in_vrfs_whose_numbers_stay() {
    let vrfs = |names: &[&str]| {
        let vrfs = names.iter().map(|name| format!("[[vrf]]\nname = \"{name}\"\n"));
        let vlan = "[[vlan]]\nname = \"b.5\"\nport = \"b\"\nid = 5\nvrf = \"red\"\n";
        testing::config(&format!("{}{PORTS_ABC}{vlan}", vrfs.collect::<String>()))
    };
    let (mut topology, all) = interfaces(&vrfs(&["blue", "red"]));
    assert_eq!(topology.vrf(None), Some(DEFAULT_VRF));
    assert_eq!(topology.vrf(Some("default")), Some(DEFAULT_VRF));
    let [blue, red] = ["blue", "red"].map(|name| topology.vrf(Some(name)).unwrap());
    assert!(blue != red && ![blue, red].contains(&DEFAULT_VRF));
    assert_eq!((find(&all, "b.5").vrf, find(&all, "b").vrf), (red, DEFAULT_VRF));
    assert_eq!(all.vrfs, [(blue, "blue".to_owned()), (red, "red".to_owned())].into());
    // What routes name stays reserved, and what nothing names is given out again later.
    let in_use = InUse { vrfs: HashSet::from([blue]), ..InUse::default() };
    topology.renumber(&vrfs(&["red", "green"]), &in_use).unwrap();
    assert_eq!((topology.vrf(Some("blue")), topology.vrf_name(blue)), (Some(blue), Some("blue")));
    assert_eq!(topology.vrf(Some("red")), Some(red));
    let green = topology.vrf(Some("green")).unwrap();
    assert!(![blue, red, DEFAULT_VRF].contains(&green));
    topology.renumber(&vrfs(&["red"]), &InUse::default()).unwrap();
    assert_eq!((topology.vrf(Some("blue")), topology.vrf_name(blue)), (None, None));
    assert_eq!(topology.vrfs().collect::<Vec<_>>(), [red]);
}
