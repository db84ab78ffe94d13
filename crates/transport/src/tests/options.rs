//! Socket options and what calls say, as Linux has them.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

fn connected() -> (Link, [ConnectionId; 2]) {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    (link.events, link.seen) = Default::default();
    (link, ids)
}

fn set(link: &mut Link, id: ConnectionId, change: impl FnOnce(&mut Options)) {
    let mut options = link.stacks[CLIENT].options(id).unwrap().clone();
    change(&mut options);
    link.stacks[CLIENT].set_options(id, options).unwrap();
}

fn write(link: &mut Link, id: ConnectionId, length: usize, write: Write) {
    assert_eq!(link.stacks[CLIENT].send_with(id, &vec![7; length], write), Ok(length));
    link.flush();
}

/// Bytes of data of what the client has sent.
fn sizes(link: &Link) -> Vec<usize> {
    let data = |packet: &[u8]| packet.len() - 20 - usize::from(packet[32] >> 4) * 4;
    let sent = link.seen.iter().filter(|(from, _)| *from == CLIENT);
    sent.map(|(_, packet)| data(packet)).filter(|size| *size > 0).collect()
}

const MORE: Write = Write { more: true, end_of_record: false, urgent: false };
const RECORD: Write = Write { more: false, end_of_record: true, urgent: false };

#[test]
fn a_cork_holds_for_200_ms() {
    for by_option in [true, false] {
        let (mut link, ids) = connected();
        set(&mut link, ids[CLIENT], |options| {
            (options.cork, options.no_delay) = (by_option, true);
            options.user_timeout = 50 * MILLISECOND;
        });
        link.run(SECOND);
        write(&mut link, ids[CLIENT], 100, MORE);
        link.run(150 * MILLISECOND);
        // What comes meanwhile does not put it off, neither does another write.
        link.stacks[SERVER].send(ids[SERVER], b"hello").unwrap();
        write(&mut link, ids[CLIENT], 100, MORE);
        link.run(49 * MILLISECOND);
        assert_eq!(sizes(&link), []);
        link.run(2 * MILLISECOND);
        assert_eq!(sizes(&link), [200]);
        // What follows waits anew; without the cork, or with a whole segment, it does not.
        link.run(SECOND);
        write(&mut link, ids[CLIENT], 100, MORE);
        link.run(100 * MILLISECOND);
        write(&mut link, ids[CLIENT], 1500, MORE);
        assert_eq!(sizes(&link), [200, 1448]);
        if by_option {
            set(&mut link, ids[CLIENT], |options| options.cork = false);
        }
        write(&mut link, ids[CLIENT], 0, Write::default());
        assert_eq!(sizes(&link), [200, 1448, 152]);
        link.run(SECOND);
        assert_eq!(link.stacks[CLIENT].info(ids[CLIENT]).unwrap().failure, None);
    }
}

#[test]
fn records_do_not_share_segments() {
    let (mut link, ids) = connected();
    set(&mut link, ids[CLIENT], |options| options.no_delay = true);
    for length in [100, 3000, 200] {
        link.stacks[CLIENT].send_with(ids[CLIENT], &vec![1; length], RECORD).unwrap();
    }
    link.stacks[CLIENT].send(ids[CLIENT], &[2; 50]).unwrap();
    link.stacks[CLIENT].send(ids[CLIENT], &[3; 60]).unwrap();
    link.flush();
    assert_eq!(sizes(&link), [100, 1448, 1448, 104, 200, 110]);
    // A record that ends a segment is pushed.
    let pushed = link.seen.iter().filter(|(from, packet)| *from == CLIENT && packet[33] & 8 != 0);
    assert_eq!(pushed.count(), 4);
}

#[test]
fn little_waits_unsent_when_asked() {
    let (mut link, ids) = connected();
    set(&mut link, ids[CLIENT], |options| options.not_sent_low_water = 20_000);
    let stack = &mut link.stacks[CLIENT];
    let data = vec![0; 200_000];
    // One write goes on to a whole step beyond what is free.
    assert_eq!(stack.send(ids[CLIENT], &data), Ok(65_536));
    assert_eq!(stack.send(ids[CLIENT], &data), Ok(0));
    assert!(!stack.readiness(ids[CLIENT]).writable);
    link.flush();
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert_eq!((info.queued, info.unsent), (65_536, 65_536 - 14_480));
    link.run(11 * MILLISECOND);
    assert_eq!(link.events[CLIENT], []);
    let mut unsent = 0;
    while !link.events[CLIENT].contains(&Event::Writable(ids[CLIENT])) {
        let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
        unsent = info.unsent;
        assert!(link.step(link.now + SECOND));
    }
    assert!(unsent >= 10_000, "{unsent}");
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert!(info.unsent < 10_000 && link.stacks[CLIENT].readiness(ids[CLIENT]).writable);
}

#[test]
fn receiving_is_shut_down_as_in_linux() {
    let (mut link, ids) = connected();
    link.stacks[SERVER].send(ids[SERVER], b"before").unwrap();
    link.run(SECOND);
    link.stacks[CLIENT].shutdown_receive(ids[CLIENT]).unwrap();
    link.events[CLIENT].clear();
    let mut buffer = [0; 10];
    let client = &mut link.stacks[CLIENT];
    assert!(!client.is_finished(ids[CLIENT]), "there is something to read");
    assert_eq!(client.recv(ids[CLIENT], &mut buffer), Ok(6));
    assert!(client.is_finished(ids[CLIENT]));
    let ready = client.readiness(ids[CLIENT]);
    assert!(ready.readable && ready.peer_closed && ready.writable && !ready.hung_up);
    // The peer knows nothing of it, and what it sends can still be read.
    link.stacks[SERVER].send(ids[SERVER], b"after").unwrap();
    link.run(SECOND);
    assert_eq!(link.stacks[CLIENT].recv(ids[CLIENT], &mut buffer), Ok(5));
    // Until both directions are shut down.
    link.stacks[CLIENT].shutdown(ids[CLIENT]).unwrap();
    link.run(SECOND);
    assert!(link.stacks[CLIENT].readiness(ids[CLIENT]).hung_up);
    link.stacks[SERVER].send(ids[SERVER], b"too late").unwrap();
    link.run(SECOND);
    assert!(link.events[SERVER].contains(&Event::Failed(ids[SERVER], Failure::BrokenPipe)));
}

#[test]
fn a_failure_is_said_once() {
    for first in 0..3 {
        let (mut link, ids) = connected();
        link.stacks[SERVER].abort(ids[SERVER]);
        link.run(SECOND);
        let (client, id) = (&mut link.stacks[CLIENT], ids[CLIENT]);
        let ready = client.readiness(id);
        assert!(ready.error && ready.hung_up && ready.readable && ready.writable);
        assert!(!client.is_finished(id));
        let failed = SocketError::Failed(Failure::Reset);
        match first {
            0 => assert_eq!(client.take_error(id), Some(Failure::Reset)),
            1 => assert_eq!(client.recv(id, &mut [0; 1]), Err(failed)),
            _ => assert_eq!(client.send(id, b"x"), Err(failed)),
        }
        assert_eq!(client.take_error(id), None);
        assert_eq!(client.recv(id, &mut [0; 1]), Ok(0));
        assert_eq!(client.send(id, b"x"), Err(SocketError::Shutdown));
        assert_eq!(client.shutdown(id), Err(SocketError::NotConnected));
        assert!(client.is_finished(id) && !client.readiness(id).error);
        assert_eq!(client.info(id).unwrap().failure, Some(Failure::Reset), "as `info` keeps");
        assert_eq!((failed.errno(), SocketError::Shutdown.errno()), (104, 32));
    }
}

#[test]
fn what_is_received_can_be_looked_at() {
    let (mut link, ids) = connected();
    link.stacks[SERVER].send(ids[SERVER], b"hello").unwrap();
    link.run(SECOND);
    let (client, id) = (&mut link.stacks[CLIENT], ids[CLIENT]);
    let mut buffer = [0; 3];
    assert_eq!((client.peek(id, 0, &mut buffer), &buffer), (Ok(3), b"hel"));
    assert_eq!((client.peek(id, 2, &mut buffer), &buffer), (Ok(3), b"llo"));
    assert_eq!((client.recv(id, &mut buffer), &buffer), (Ok(3), b"hel"));
    assert_eq!(client.peek(id, 2, &mut buffer), Ok(0));
}

#[test]
fn buffers_and_congestion_control_change_while_data_flows() {
    let (mut link, ids) = connected();
    link.delay = 20 * MILLISECOND;
    let data = pattern(2_000_000);
    let mut expected = Vec::new();
    for (round, congestion) in
        [Algorithm::Bbr, Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr]
            .into_iter()
            .enumerate()
    {
        let before = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
        set(&mut link, ids[CLIENT], |options| options.congestion = congestion);
        let after = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
        assert_eq!((before.window, after.congestion), (after.window, congestion.name()));
        if congestion != Algorithm::Bbr && before.congestion != "bbr" {
            assert_eq!(before.threshold, after.threshold);
        }
        let mut loss = round == 1;
        link.fate = Box::new(move |_, packet| {
            // One lost segment, so that there is a threshold.
            let lost = packet.len() > 1000 && std::mem::take(&mut loss);
            (!lost).then_some(0)
        });
        expected = link.transfer(ids, CLIENT, &data, 60 * SECOND);
        assert!(expected == data, "{congestion:?}");
        // What the flow leaves in flight is acknowledged before the next.
        link.run(SECOND);
    }
    drop(expected);
    let mut options = link.stacks[SERVER].options(ids[SERVER]).unwrap().clone();
    (options.receive_buffer, options.receive_buffer_limit) = (9_000_000, 9_000_000);
    link.stacks[SERVER].set_options(ids[SERVER], options).unwrap();
    link.run(SECOND);
    let peer_window = link.stacks[CLIENT].info(ids[CLIENT]).unwrap().peer_window;
    // As far as the scale of the handshake can say it.
    assert!(peer_window > 8_000_000, "{peer_window}");
    // A ring keeps what memory it has; one that holds little takes no more than it may.
    let (mut link, ids) = connected();
    set(&mut link, ids[CLIENT], |options| options.transmit_buffer = 1000);
    assert_eq!(link.stacks[CLIENT].send(ids[CLIENT], &data), Ok(1000));
    set(&mut link, ids[CLIENT], |options| options.transmit_buffer = 3000);
    assert_eq!(link.stacks[CLIENT].send(ids[CLIENT], &data), Ok(2000));
}

#[test]
fn a_lingering_close_of_zero_resets() {
    let (mut link, ids) = connected();
    set(&mut link, ids[CLIENT], |options| options.linger = Some(0));
    link.stacks[CLIENT].send(ids[CLIENT], b"never sent").unwrap();
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(SECOND);
    let lost = End { acknowledged: false, failure: None };
    assert_eq!(link.events[CLIENT], [Event::Gone(ids[CLIENT], lost)]);
    assert_eq!(link.events[SERVER], [Event::Failed(ids[SERVER], Failure::Reset)]);
}

#[test]
fn fin_wait_2_has_its_own_time() {
    let (mut link, ids) = connected();
    set(&mut link, ids[CLIENT], |options| options.fin_wait_2 = 3 * SECOND);
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(2 * SECOND);
    assert_eq!(link.stacks[CLIENT].connections(), 1);
    link.run(2 * SECOND);
    assert_eq!(link.stacks[CLIENT].connections(), 0);
}
