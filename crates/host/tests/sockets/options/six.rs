//! Options of IPv6 connections (as Linux 6.18 has them).

use millrace_host::{Domain, Errno, Id, Kind};

use super::{IP, IPV6, get, set};
use crate::pair::{CLIENT, LISTENER, Pair, SERVER, at, v6};

/// A connection over IPv6.
fn connected() -> Pair {
    let mut pair = Pair::default();
    pair.listen(LISTENER, at(v6(1), 80));
    assert_eq!(pair.connect(CLIENT, at(v6(1), 80)), Err(Errno::INPROGRESS));
    pair.settle();
    pair.server().accept(LISTENER, SERVER).unwrap();
    pair
}

#[test]
fn a_connection_tells_the_form_of_its_addresses_and_keeps_it() {
    let mut pair = connected();
    let (form, ipv4, ipv6) = ((IPV6, 1), 2, 10);
    assert_eq!(get(pair.client(), CLIENT, IPV6, 1), Ok(ipv6));
    assert_eq!(set(pair.client(), CLIENT, form, ipv4), Err(Errno::ADDRNOTAVAIL));
    assert_eq!(set(pair.client(), CLIENT, form, ipv6), Err(Errno::INVAL));
    assert_eq!(get(pair.server(), LISTENER, IPV6, 1), Err(Errno::NOTCONN));
    assert_eq!(set(pair.server(), LISTENER, form, ipv4), Err(Errno::NOTCONN));
    assert_eq!(set(pair.server(), LISTENER, form, ipv6), Err(Errno::INVAL));
}

#[test]
fn the_paths_mtu_comes_in_a_struct_that_needs_its_room() {
    let mut pair = connected();
    let client = pair.client();
    let mtu = get(client, CLIENT, IPV6, 24).unwrap();
    assert!(mtu >= 1280, "{mtu}");
    let told = client.option(CLIENT, IPV6, 61, 64).unwrap();
    assert_eq!(told.to_vec(), [vec![0; 28], mtu.to_ne_bytes().to_vec()].concat());
    assert_eq!(client.option(CLIENT, IPV6, 61, 31), Err(Errno::INVAL));
    for length in [0, 1, 4, 32] {
        let said = client.set_option(CLIENT, IPV6, 61, &[0; 32][..length]);
        assert_eq!(said, Err(Errno::NOPROTOOPT), "{length}");
    }
    let server = pair.server();
    assert_eq!(server.option(LISTENER, IPV6, 61, 31), Err(Errno::INVAL));
    assert_eq!(server.option(LISTENER, IPV6, 61, 32), Err(Errno::NOTCONN));
}

#[test]
fn what_changes_nothing_of_a_connection_can_be_set_and_the_rest_is_refused() {
    let mut pair = connected();
    let client = pair.client();
    let refused = Err(Errno::INVAL);
    for (name, value, said) in [
        // IPV6_MTU: of fragments, which segments do not have.
        (24, 0, Ok(())),
        (24, 1279, refused),
        (24, 1280, Ok(())),
        (24, 70_000, Ok(())),
        (24, -1, refused),
        // IPV6_ADDR_PREFERENCES.
        (72, 0, Ok(())),
        (72, 0x500, Ok(())),
        (72, 0x800, Ok(())),
        (72, 0x808, refused),
        (72, 1, refused),
        (72, 2, refused),
        (72, 4, refused),
        // IPV6_FLOWLABEL_MGR, IPV6_PKTINFO, IPV6_IPSEC_POLICY, IPV6_XFRM_POLICY.
        (32, 0, refused),
        (50, 0, refused),
        (34, 0, Err(Errno::PERM)),
        (35, 0, Err(Errno::PERM)),
    ] {
        assert_eq!(set(client, CLIENT, (IPV6, name), value), said, "{name}: {value}");
    }
    assert_eq!(get(client, CLIENT, IPV6, 32), Err(Errno::INVAL));
    assert_eq!(get(client, CLIENT, IPV6, 72), Ok(0x500));
    // IP_IPSEC_POLICY, IP_XFRM_POLICY.
    for name in [16, 17] {
        assert_eq!(set(client, CLIENT, (IP, name), 0), Err(Errno::PERM), "{name}");
    }
    // Datagrams have fragments.
    client.open(Id(1), Domain::V6, Kind::Datagram).unwrap();
    assert_eq!(set(client, Id(1), (IPV6, 24), 1280), Err(Errno::NOPROTOOPT));
}

#[test]
fn lengths_count_where_linux_counts_them() {
    let mut pair = connected();
    let client = pair.client();
    // IPV6_UNICAST_IF: a number and nothing else.
    for (length, said) in [(4, Ok(())), (8, Err(Errno::INVAL)), (3, Err(Errno::INVAL))] {
        let zeros = &[0; 8][..length];
        assert_eq!(client.set_option(CLIENT, IPV6, 76, zeros), said, "{length}");
    }
    // IPV6_DONTFRAG: less than a number is 0.
    for length in [0, 1, 3] {
        set(client, CLIENT, (IPV6, 62), 1).unwrap();
        assert_eq!(client.set_option(CLIENT, IPV6, 62, &[1; 3][..length]), Ok(()), "{length}");
        assert_eq!(get(client, CLIENT, IPV6, 62), Ok(0), "{length}");
    }
}

#[test]
fn ipv6_sockets_begin_without_ip_multicast_all() {
    let mut pair = connected();
    // IP_MULTICAST_ALL.
    for value in [1, 0, 1] {
        set(pair.client(), CLIENT, (IP, 49), value).unwrap();
        assert_eq!(get(pair.client(), CLIENT, IP, 49), Ok(value));
    }
    assert_eq!(get(pair.server(), SERVER, IP, 49), Ok(0));
    assert_eq!(set(pair.client(), CLIENT, (IP, 49), 2), Err(Errno::INVAL));
}
