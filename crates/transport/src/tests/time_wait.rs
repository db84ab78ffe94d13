//! TIME-WAIT: what it costs, and who comes after.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

/// Opens a connection from `port` (0: any), exchanges a word, and closes it from `first`.
fn short(
    link: &mut Link,
    listener: ListenerId,
    port: u16,
    first: usize,
) -> Result<(), ConnectError> {
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    let id = link.stacks[CLIENT].connect(link.now, from, port, to, &Options::default())?;
    link.run(20_000_000);
    let accepted = link.stacks[SERVER].accept(listener).unwrap();
    let ids = [id, accepted];
    assert_eq!(link.transfer(ids, CLIENT, b"word", SECOND), b"word");
    link.stacks[first].close(ids[first]);
    link.run(20_000_000);
    link.stacks[1 - first].close(ids[1 - first]);
    link.run(20_000_000);
    assert_eq!(link.stacks[1 - first].connections(), 0);
    Ok(())
}

fn link(server: Config) -> (Link, ListenerId) {
    let mut link = Link::new();
    link.stacks[SERVER] = Stack::new(server, Rings).unwrap();
    let address = (ADDRESSES[SERVER], 80).into();
    let listener = link.stacks[SERVER].listen(address, 10, &Options::default()).unwrap();
    (link, listener)
}

#[test]
fn it_costs_no_place_and_nobody_is_refused() {
    let config = Config { connections_v4: 3, time_waits: 50, ..Config::default() };
    let (mut link, listener) = link(config);
    for _ in 0..200 {
        short(&mut link, listener, 0, SERVER).unwrap();
    }
    let server = &link.stacks[SERVER];
    assert_eq!((server.connections(), server.counters().time_waits_evicted), (50, 150));
    assert_eq!(server.counters().dropped(Reason::NoSlot), 0);
    link.run(61 * SECOND);
    assert_eq!(link.stacks[SERVER].connections(), 0);
}

#[test]
fn without_room_of_their_own_they_count_as_others() {
    let config = Config { connections_v4: 3, time_waits: 0, ..Config::default() };
    let (mut link, listener) = link(config);
    for _ in 0..3 {
        short(&mut link, listener, 0, SERVER).unwrap();
    }
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    link.stacks[CLIENT].connect(link.now, from, 0, to, &Options::default()).unwrap();
    link.run(20_000_000);
    assert_eq!(link.stacks[SERVER].counters().dropped(Reason::NoSlot), 1);
}

#[test]
fn a_port_of_ours_is_used_again_after_a_second() {
    let (mut link, listener) = link(Config::default());
    short(&mut link, listener, 4000, CLIENT).unwrap();
    assert_eq!(short(&mut link, listener, 4000, CLIENT), Err(ConnectError::InUse));
    link.run(SECOND);
    short(&mut link, listener, 4000, CLIENT).unwrap();
    // Without time stamps the peer could not tell them apart.
    link.run(2 * SECOND);
    let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
    let plain = Options { timestamps: false, ..Options::default() };
    let refused = link.stacks[CLIENT].connect(link.now, from, 4000, to, &plain);
    assert_eq!(refused, Err(ConnectError::InUse));
}

#[test]
fn more_short_connections_than_ports() {
    let (mut link, listener) = link(Config::default());
    let config = Config { ephemeral_ports: 40_000..=40_009, ..Config::default() };
    link.stacks[CLIENT] = Stack::new(config, Rings).unwrap();
    for round in 0..100 {
        short(&mut link, listener, 0, CLIENT).unwrap_or_else(|why| panic!("{round}: {why}"));
        link.run(100_000_000);
    }
    assert_eq!(link.stacks[CLIENT].connections(), 10);
}
