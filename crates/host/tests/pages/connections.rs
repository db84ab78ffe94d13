//! A hundred thousand connections: sessions, places, queues, timers, listeners, TIME-WAIT.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use millrace_host::{Domain, Errno, Id, Incoming, Kind, Outgoing, Sessions};
use transport::Config;

use crate::allocator::{PAGE, largest, watch};
use crate::wire::Link;

const CONNECTIONS: u32 = 100_000;
/// Opened at a time.
const BATCH: u32 = 2000;
/// Each has a port of its own: a client has 65,536 at most towards one.
const LISTENERS: u32 = 4;
/// The sessions of both hosts.
const FIRST: u32 = 100;

fn host(number: u64) -> Sessions {
    let config = Config {
        seed: [number, 5],
        connections_v4: CONNECTIONS as usize + 100,
        time_waits: CONNECTIONS as usize,
        ..Config::default()
    };
    let mut sessions = Sessions::new(config).unwrap();
    sessions.add_ports(1024, 64_000);
    sessions
}

fn ip(host: u8) -> IpAddr {
    [10, 0, 0, 1 + host].into()
}

#[test]
fn neither_a_packet_nor_a_call_allocates_more_than_a_page() {
    let mut link = Link::new([host(1), host(2)], 2 * BATCH as usize, 200);
    for number in 0..LISTENERS {
        let server = &mut link.hosts[1];
        let address = SocketAddr::new(ip(1), 80 + number as u16);
        watch(|| {
            server.open(Id(number), Domain::V4, Kind::Stream).unwrap();
            server.bind(Id(number), address).unwrap();
            server.listen(Id(number), 4096).unwrap();
        });
    }
    let all = || FIRST..FIRST + CONNECTIONS;
    for first in all().step_by(BATCH as usize) {
        let now = link.now;
        for id in first..first + BATCH {
            let remote = SocketAddr::new(ip(1), 80 + (id % LISTENERS) as u16);
            let client = &mut link.hosts[0];
            let begun = watch(|| {
                client.open(Id(id), Domain::V4, Kind::Stream).unwrap();
                client.connect(Id(id), now, ip(0), remote)
            });
            assert_eq!(begun, Err(Errno::INPROGRESS));
        }
        link.settle();
        let server = &mut link.hosts[1];
        for id in first..first + BATCH {
            watch(|| server.accept(Id(id % LISTENERS), Id(id)).unwrap());
        }
    }
    // All have something to say in one turn, and to hear.
    for id in all() {
        let client = &mut link.hosts[0];
        let sent = watch(|| client.send(Id(id), &[IoSlice::new(b"hello")], Outgoing::default()));
        assert_eq!(sent, Ok(5));
    }
    link.settle();
    let ready = watch(|| std::iter::from_fn(|| link.hosts[1].next_ready()).count());
    assert!(ready >= CONNECTIONS as usize, "{ready}");
    for id in all() {
        let (server, mut bytes) = (&mut link.hosts[1], [0; 8]);
        let mut targets = [IoSliceMut::new(&mut bytes)];
        let got = watch(|| server.recv(Id(id), &mut targets, Incoming::default()).unwrap());
        assert_eq!(got.bytes, 5);
    }
    for side in 0..2 {
        for id in all() {
            let host = &mut link.hosts[side];
            watch(|| host.close(Id(id)));
        }
        link.settle();
    }
    assert!(largest() <= PAGE, "{} bytes at once", largest());
}
