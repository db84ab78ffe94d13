use super::*;

fn interface(name: &str, generation: u16) -> Interface {
    Interface {
        name: name.to_owned(),
        generation,
        port: Some(PortId::new(0)),
        up: true,
        vlan: None,
        mac: MacAddr::new([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        addresses4: vec![(Ipv4Addr::new(192, 0, 2, 1), 24)],
        addresses6: Vec::new(),
        any_mac: false,
        unnumbered: false,
        mode: Mode::Routed,
        vrf: DEFAULT_VRF,
        features: Features::default(),
    }
}

#[test]
fn an_id_does_not_find_what_has_its_number_next() {
    let id = InterfaceId::with_generation;
    let list = vec![Some(interface("a", 0)), None, Some(interface("c", 7))];
    let all = Interfaces { list, ..Interfaces::default() };
    let name = |id| all.get(id).map(|interface| interface.name.as_str());
    assert_eq!([id(0, 0), id(2, 7)].map(name), [Some("a"), Some("c")]);
    let others = [id(0, 1), id(1, 0), id(2, 0), id(2, 6), id(3, 0), InterfaceId::NONE];
    assert_eq!(others.map(name), [None; 6]);
    assert!(all.is_own(id(0, 0), Ipv4Addr::new(192, 0, 2, 1).into()));
    assert_eq!(all.iter().map(|(id, _)| id).collect::<Vec<_>>(), [id(0, 0), id(2, 7)]);
}

#[test]
fn frames_of_a_port_find_no_interface_of_another_with_its_number() {
    let here = PortId::with_generation(1, 4);
    let untagged = Some(InterfaceId::new(0));
    let entry = PortEntry { id: here, untagged, vlans: vec![(5, InterfaceId::new(1))] };
    let ports = vec![PortEntry::default(), entry];
    let all = Interfaces { ports, ..Interfaces::default() };
    assert_eq!(all.of_frame(here, None), untagged);
    assert_eq!(all.of_frame(here, Some(5)), Some(InterfaceId::new(1)));
    for other in [PortId::new(1), PortId::with_generation(1, 3), PortId::new(0), PortId::NONE] {
        assert_eq!([None, Some(5)].map(|vlan| all.of_frame(other, vlan)), [None; 2], "{other:?}");
    }
}

#[test]
fn the_address_of_all_routers_is_that_of_the_vrf() {
    let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    let with = |own: &str, length, vrf| {
        Some(Interface { addresses6: vec![(v6(own), length)], vrf, ..interface("a", 0) })
    };
    let list = vec![with("2001:db8::1", 64, DEFAULT_VRF), with("2001:db8::", 128, 1)];
    let all = Interfaces { list, ..Interfaces::default() };
    let answers = |id| {
        let [asked, to] = ["2001:db8::", "2001:db8::9"].map(|text| IpAddr::V6(v6(text)));
        all.answers_from(InterfaceId::new(id), asked, to)
    };
    assert_eq!(answers(0), Some(IpAddr::V6(v6("2001:db8::1"))));
    assert_eq!(answers(1), Some(IpAddr::V6(v6("2001:db8::"))), "its own there");
}

#[test]
fn a_link_local_address_speaks_to_its_link_where_there_is_another() {
    let with = |own: [u8; 4], length| {
        Some(Interface { addresses4: vec![(own.into(), length)], ..interface("a", 0) })
    };
    let mut list = vec![with([169, 254, 0, 1], 16), with([192, 0, 2, 1], 24)];
    let source = |list: &[Option<Interface>], id, to: [u8; 4]| {
        let all = Interfaces { list: list.to_vec(), ..Interfaces::default() };
        match all.source(InterfaceId::new(id), IpAddr::V4(to.into())) {
            Some(IpAddr::V4(own)) => Some(own.octets()),
            _ => None,
        }
    };
    let (near, far) = ([169, 254, 0, 9], [198, 51, 100, 1]);
    assert_eq!(source(&list, 0, near), Some([169, 254, 0, 1]));
    assert_eq!(source(&list, 0, far), Some([192, 0, 2, 1]));
    assert_eq!(source(&list, 1, near), Some([192, 0, 2, 1]), "never that of another link");
    list.truncate(1);
    assert_eq!(source(&list, 0, far), Some([169, 254, 0, 1]), "there is no other");
}

#[test]
fn a_broadcast_address_is_that_of_a_network_of_the_vrf() {
    let with = |own: [u8; 4], length, vrf| {
        Some(Interface { addresses4: vec![(own.into(), length)], vrf, ..interface("a", 0) })
    };
    let list = vec![
        with([192, 0, 2, 1], 24, DEFAULT_VRF),
        with([198, 51, 100, 0], 31, DEFAULT_VRF),
        with([203, 0, 113, 1], 25, 1),
        // What ends the network of the next is an own address.
        with([192, 0, 2, 255], 32, 2),
        with([192, 0, 2, 1], 24, 2),
    ];
    let all = Interfaces { list, ..Interfaces::default() };
    let all_hosts = |number, address: [u8; 4]| {
        let id = InterfaceId::new(number);
        all.is_directed_broadcast(id, IpAddr::V4(address.into()))
    };
    for (id, address) in [
        (0, [192, 0, 2, 255]),
        (0, [192, 0, 2, 0]),
        (1, [192, 0, 2, 255]),
        (2, [203, 0, 113, 127]),
        (4, [192, 0, 2, 0]),
    ] {
        assert!(all_hosts(id, address), "{address:?} on {id}");
    }
    for (id, address) in [
        (0, [192, 0, 2, 1]),
        (0, [192, 0, 2, 127]),
        (0, [192, 0, 3, 255]),
        (0, [198, 51, 100, 0]),
        (0, [198, 51, 100, 1]),
        (0, [203, 0, 113, 127]),
        (4, [192, 0, 2, 255]),
    ] {
        assert!(!all_hosts(id, address), "{address:?} on {id}");
    }
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert!(!all.is_directed_broadcast(InterfaceId::new(0), group.into()));
}
