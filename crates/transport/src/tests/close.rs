//! Ends of connections.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

/// The end of a connection whose data was all acknowledged.
const ALL: End = End { acknowledged: true, failure: None };

fn connected() -> (Link, [ConnectionId; 2]) {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.events = [Vec::new(), Vec::new()];
    (link, ids)
}

#[test]
fn one_side_after_the_other() {
    let (mut link, ids) = connected();
    link.stacks[CLIENT].send(ids[CLIENT], b"last words").unwrap();
    link.stacks[CLIENT].shutdown(ids[CLIENT]).unwrap();
    link.run(SECOND);
    assert!(link.events[SERVER].contains(&Event::PeerClosed(ids[SERVER])));
    assert_eq!(link.stacks[CLIENT].info(ids[CLIENT]).unwrap().state, State::FinWait2);
    // The other direction is open.
    assert_eq!(link.transfer(ids, SERVER, &pattern(5000), SECOND), pattern(5000));
    let mut buffer = [0; 100];
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut buffer).unwrap(), 10);
    assert!(link.stacks[SERVER].is_finished(ids[SERVER]));
    link.stacks[SERVER].close(ids[SERVER]);
    link.run(SECOND);
    assert_eq!(link.stacks[SERVER].connections(), 0);
    assert!(link.events[SERVER].contains(&Event::Gone(ids[SERVER], ALL)));
    assert_eq!(link.stacks[CLIENT].info(ids[CLIENT]).unwrap().state, State::TimeWait);
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(61 * SECOND);
    assert_eq!(link.stacks[CLIENT].connections(), 0);
}

#[test]
fn both_at_once() {
    let (mut link, ids) = connected();
    for side in [CLIENT, SERVER] {
        link.stacks[side].close(ids[side]);
    }
    link.run(SECOND);
    for side in [CLIENT, SERVER] {
        assert!(link.events[side].contains(&Event::Gone(ids[side], ALL)), "{:?}", link.events);
        assert_eq!(link.stacks[side].connections(), 1, "in TIME-WAIT");
    }
    link.run(61 * SECOND);
    assert_eq!(link.stacks.each_ref().map(Stack::connections), [0, 0]);
}

#[test]
fn fins_are_repeated_until_they_arrive() {
    let (mut link, ids) = connected();
    let mut number = random(3);
    link.fate = Box::new(move |_, _| (number() % 3 != 0).then_some(0));
    for side in [CLIENT, SERVER] {
        link.stacks[side].close(ids[side]);
    }
    link.run(200 * SECOND);
    assert_eq!(link.stacks.each_ref().map(Stack::connections), [0, 0]);
}

#[test]
fn an_abort_resets_the_peer() {
    let (mut link, ids) = connected();
    link.stacks[CLIENT].abort(ids[CLIENT]);
    link.run(SECOND);
    assert_eq!(link.events[SERVER], [Event::Failed(ids[SERVER], Failure::Reset)]);
    assert_eq!(link.stacks[CLIENT].connections(), 0);
    assert_eq!(
        link.stacks[SERVER].send(ids[SERVER], b"x"),
        Err(SocketError::Failed(Failure::Reset))
    );
    link.stacks[SERVER].close(ids[SERVER]);
    assert_eq!(link.stacks[SERVER].connections(), 0);
}

#[test]
fn unread_data_makes_close_a_reset() {
    let (mut link, ids) = connected();
    link.stacks[CLIENT].send(ids[CLIENT], b"never read").unwrap();
    link.run(SECOND);
    link.stacks[SERVER].close(ids[SERVER]);
    link.run(SECOND);
    assert!(link.events[CLIENT].contains(&Event::Failed(ids[CLIENT], Failure::Reset)));
    assert_eq!(link.stacks[SERVER].connections(), 0);
}

#[test]
fn data_after_close_is_answered_with_a_reset() {
    let (mut link, ids) = connected();
    link.stacks[SERVER].close(ids[SERVER]);
    link.run(SECOND);
    link.stacks[CLIENT].send(ids[CLIENT], b"too late").unwrap();
    link.run(SECOND);
    // The client had the server's FIN before.
    assert!(link.events[CLIENT].contains(&Event::Failed(ids[CLIENT], Failure::BrokenPipe)));
    assert_eq!(link.stacks[SERVER].connections(), 0);
    assert_eq!(link.stacks[SERVER].counters().dropped(Reason::AfterClose), 1);
}

#[test]
fn a_peer_that_never_closes_is_not_waited_for() {
    let (mut link, ids) = connected();
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(61 * SECOND);
    assert_eq!(link.stacks[CLIENT].connections(), 0);
}

#[test]
fn a_port_in_time_wait_is_used_again() {
    let mut link = Link::new();
    let address: std::net::SocketAddr = (ADDRESSES[SERVER], 80).into();
    let listener = link.stacks[SERVER].listen(address, 5, &Options::default()).unwrap();
    for round in 0..3 {
        let id = link.stacks[CLIENT]
            .connect(link.now, ADDRESSES[CLIENT].into(), 4000, address, &Options::default())
            .unwrap();
        link.run(SECOND);
        let accepted =
            link.stacks[SERVER].accept(listener).unwrap_or_else(|| panic!("round {round}"));
        // The server closes first, so that TIME-WAIT is its own.
        link.stacks[SERVER].close(accepted);
        link.run(SECOND);
        link.stacks[CLIENT].close(id);
        link.run(SECOND);
        assert_eq!(link.stacks[CLIENT].connections(), 0);
        assert_eq!(link.stacks[SERVER].connections(), 1);
    }
}

#[test]
fn a_reset_is_no_end_of_the_stream() {
    let (mut link, ids) = connected();
    link.stacks[SERVER].send(ids[SERVER], b"half of it").unwrap();
    link.run(SECOND);
    link.stacks[SERVER].abort(ids[SERVER]);
    link.run(SECOND);
    let mut buffer = [0; 100];
    assert_eq!(link.stacks[CLIENT].recv(ids[CLIENT], &mut buffer), Ok(10));
    assert!(!link.stacks[CLIENT].is_finished(ids[CLIENT]));
    let failed = Err(SocketError::Failed(Failure::Reset));
    assert_eq!(link.stacks[CLIENT].recv(ids[CLIENT], &mut buffer), failed);
}

#[test]
fn without_discovery_nothing_larger_than_the_least_path_is_sent() {
    let [client, server] = [1, 2].map(|n| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
    let mut link = Link::new();
    let options = Options { mtu_discovery: false, ..Options::default() };
    let address = (server, 80).into();
    let listener = link.stacks[SERVER].listen(address, 5, &Options::default()).unwrap();
    let id = link.stacks[CLIENT].connect(link.now, client.into(), 0, address, &options).unwrap();
    link.run(SECOND);
    let taken = link.stacks[SERVER].accept(listener).unwrap();
    let data = pattern(20_000);
    assert!(link.transfer([id, taken], CLIENT, &data, SECOND) == data);
    // RFC 8201 1
    assert_eq!(link.seen.iter().map(|(_, packet)| packet.len()).max(), Some(1280));
}

#[test]
fn the_end_says_whether_all_was_acknowledged() {
    let lost = |failure| End { acknowledged: false, failure };
    // The peer takes its time to close: the end is when all is acknowledged.
    let (mut link, ids) = connected();
    link.stacks[CLIENT].send(ids[CLIENT], b"last words").unwrap();
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(9_000_000);
    assert_eq!(link.events[CLIENT], []);
    link.run(SECOND);
    assert_eq!(link.events[CLIENT], [Event::Gone(ids[CLIENT], ALL)]);
    assert_eq!(link.stacks[CLIENT].connections(), 1, "in FIN-WAIT-2");
    link.stacks[SERVER].close(ids[SERVER]);
    link.run(100 * SECOND);
    assert_eq!(link.events[CLIENT].len(), 1, "told once");
    // The peer resets the connection, or does not answer any more, or it is aborted.
    let (mut link, ids) = connected();
    link.stacks[CLIENT].send(ids[CLIENT], b"last words").unwrap();
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.stacks[SERVER].abort(ids[SERVER]);
    link.run(SECOND);
    assert_eq!(link.events[CLIENT], [Event::Gone(ids[CLIENT], lost(Some(Failure::Reset)))]);
    let (mut link, ids) = connected();
    link.fate = Box::new(|_, _| None);
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(2000 * SECOND);
    assert_eq!(link.events[CLIENT], [Event::Gone(ids[CLIENT], lost(Some(Failure::TimedOut)))]);
    let (mut link, ids) = connected();
    link.stacks[CLIENT].abort(ids[CLIENT]);
    link.run(SECOND);
    assert_eq!(link.events[CLIENT], [Event::Gone(ids[CLIENT], lost(None))]);
}
