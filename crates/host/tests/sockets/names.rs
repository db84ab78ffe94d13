//! `SO_PEERNAME`: the peer as `getsockopt` tells it.

use std::net::{IpAddr, SocketAddr};

use millrace_host::{Domain, Errno, Id, Kind, Sessions};

use crate::pair::{CLIENT, LISTENER, Pair, SERVER, at, reset, v4, v6};

const SOCKET: i32 = 1;
const PEERNAME: i32 = 28;

fn peer_name(sessions: &mut Sessions, id: Id, room: usize) -> Result<Vec<u8>, Errno> {
    sessions.option(id, SOCKET, PEERNAME, room).map(|value| value.to_vec())
}

/// `struct sockaddr_in` or `struct sockaddr_in6`.
fn bytes(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&2_u16.to_ne_bytes()[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => {
            [&10_u16.to_ne_bytes()[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat()
        }
    }
}

#[test]
fn the_peer_of_a_stream_is_told_in_every_state_as_the_kernel_tells_it() {
    let mut pair = Pair::default();
    let server = at(v4(1), 80);
    pair.listen(LISTENER, server);
    assert_eq!(peer_name(pair.server(), LISTENER, 16), Err(Errno::NOTCONN));
    pair.client().open(Id(9), Domain::V4, Kind::Stream).unwrap();
    assert_eq!(peer_name(pair.client(), Id(9), 16), Err(Errno::NOTCONN));
    assert_eq!(pair.connect(CLIENT, server), Err(Errno::INPROGRESS));
    assert_eq!(pair.client().peer(CLIENT), Err(Errno::NOTCONN));
    assert_eq!(peer_name(pair.client(), CLIENT, 16), Ok(bytes(server)), "before it is connected");
    pair.settle();
    pair.server().accept(LISTENER, SERVER).unwrap();
    let client = pair.client().name(CLIENT).unwrap();
    assert_eq!(peer_name(pair.server(), SERVER, 16), Ok(bytes(client)));
    // Less room cuts it, more is refused: but not of one that has no peer.
    assert_eq!(peer_name(pair.client(), CLIENT, 4), Ok(bytes(server)[..4].to_vec()));
    assert_eq!(peer_name(pair.client(), CLIENT, 0), Ok(vec![]));
    assert_eq!(peer_name(pair.client(), CLIENT, 17), Err(Errno::INVAL));
    assert_eq!(peer_name(pair.client(), Id(9), 17), Err(Errno::NOTCONN));
    let set = pair.client().set_option(CLIENT, SOCKET, PEERNAME, &bytes(server));
    assert_eq!(set, Err(Errno::NOPROTOOPT));
    reset(pair.server(), SERVER);
    pair.settle();
    assert_eq!(pair.client().peer(CLIENT), Err(Errno::NOTCONN));
    assert_eq!(peer_name(pair.client(), CLIENT, 16), Ok(bytes(server)), "after it was reset");
}

#[test]
fn an_ipv6_socket_tells_ipv4_peers_as_mapped_and_datagrams_have_peers_too() {
    let mut pair = Pair::default();
    let server = at(v6(1), 80);
    pair.listen(LISTENER, server);
    assert_eq!(pair.connect(CLIENT, server), Err(Errno::INPROGRESS));
    assert_eq!(peer_name(pair.client(), CLIENT, 28), Ok(bytes(server)));
    assert_eq!(peer_name(pair.client(), CLIENT, 29), Err(Errno::INVAL));
    let client = pair.client();
    client.open(Id(7), Domain::V6, Kind::Datagram).unwrap();
    assert_eq!(peer_name(client, Id(7), 28), Err(Errno::NOTCONN));
    assert!(!client.has_port(Id(7)));
    let IpAddr::V4(plain) = v4(1) else { panic!("an IPv4 address") };
    let mapped = at(plain.to_ipv6_mapped().into(), 53);
    client.connect(Id(7), 1, v4(0), mapped).unwrap();
    assert_eq!(peer_name(client, Id(7), 28), Ok(bytes(mapped)));
    assert!(client.has_port(Id(7)));
}
