//! Urgent data (RFC 9293 3.8.5, RFC 6093), as Linux has it.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

const URGENT: Write = Write { more: false, end_of_record: false, urgent: true };

/// Segments with data that the client has sent: sequence number, URG and where it points behind.
fn sent(link: &Link) -> Vec<(u32, Option<u32>)> {
    let word =
        |packet: &[u8], at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    let data = |packet: &[u8]| packet.len() > 20 + usize::from(packet[32] >> 4) * 4;
    let of = link.seen.iter().filter(|(from, packet)| *from == CLIENT && data(packet));
    of.map(|(_, packet)| {
        let (seq, pointer) = (word(packet, 24), word(packet, 36) & 0xffff);
        (seq, (packet[33] & 0x20 != 0).then(|| seq.wrapping_add(pointer)))
    })
    .collect()
}

fn connected(inline: bool) -> (Link, [ConnectionId; 2]) {
    let mut link = Link::new();
    let options = Options { urgent_inline: inline, ..Options::default() };
    let ids = link.connect(&options, &options);
    (link.events, link.seen) = Default::default();
    (link, ids)
}

fn urge(link: &mut Link, id: ConnectionId, bytes: &[u8]) {
    assert_eq!(link.stacks[CLIENT].send_with(id, bytes, URGENT), Ok(bytes.len()));
    link.flush();
    link.run(SECOND);
}

#[test]
fn segments_point_behind_the_last_urgent_byte() {
    let (mut link, ids) = connected(true);
    link.stacks[CLIENT].send(ids[CLIENT], &[1; 3000]).unwrap();
    urge(&mut link, ids[CLIENT], b"abc");
    link.stacks[CLIENT].send(ids[CLIENT], b"later").unwrap();
    link.flush();
    let sent = sent(&link);
    let (first, end) = (sent[0].0, sent[0].0.wrapping_add(3003));
    let places: Vec<_> = sent.iter().map(|(seq, end)| (seq.wrapping_sub(first), *end)).collect();
    // What follows the urgent data says nothing of it.
    assert_eq!(places, [(0, Some(end)), (1448, Some(end)), (2896, Some(end)), (3003, None)]);
}

#[test]
fn urgent_data_does_not_wait_for_more() {
    let (mut link, ids) = connected(true);
    link.stacks[CLIENT].send(ids[CLIENT], b"one").unwrap();
    link.flush();
    link.stacks[CLIENT].send(ids[CLIENT], b"two").unwrap();
    link.flush();
    assert_eq!(sent(&link).len(), 1, "Nagle's algorithm");
    assert_eq!(link.stacks[CLIENT].send_with(ids[CLIENT], b"!", URGENT), Ok(1));
    link.flush();
    assert_eq!(sent(&link).len(), 2);
}

#[test]
fn what_is_sent_again_is_urgent_again() {
    let (mut link, ids) = connected(true);
    assert_eq!(link.stacks[CLIENT].send_with(ids[CLIENT], b"abc", URGENT), Ok(3));
    let mut is_first = true;
    link.fate = Box::new(move |_, _| (!std::mem::take(&mut is_first)).then_some(0));
    link.flush();
    link.run(2 * SECOND);
    let sent = sent(&link);
    assert!(sent.len() >= 2, "{sent:?}");
    assert!(sent.iter().all(|(seq, end)| *end == Some(seq.wrapping_add(3))), "{sent:?}");
}

#[test]
fn what_was_urgent_two_gigabytes_ago_hides_nothing() {
    let (mut link, ids) = connected(true);
    let (hot, cold) = link.stacks[SERVER].slab.get_mut(ids[SERVER]).unwrap();
    // Sequence numbers that far back look as if they were ahead.
    cold.urgent = hot.rcv_nxt.sub((1 << 31) + 1000);
    urge(&mut link, ids[CLIENT], b"!");
    assert!(link.events[SERVER].contains(&Event::Urgent(ids[SERVER])));
    assert_eq!(link.stacks[SERVER].urgent(ids[SERVER]).unwrap().ahead, 0);
}

#[test]
fn reading_stops_ahead_of_urgent_data_and_passes_over_it() {
    let (mut link, ids) = connected(false);
    let (id, mut buffer) = (ids[SERVER], [0; 10]);
    link.stacks[CLIENT].send(ids[CLIENT], b"before").unwrap();
    urge(&mut link, ids[CLIENT], b"x!");
    link.stacks[CLIENT].send(ids[CLIENT], b"after").unwrap();
    link.flush();
    link.run(SECOND);
    let stack = &mut link.stacks[SERVER];
    assert_eq!(stack.urgent(id), Some(UrgentMark { ahead: 7, readable: 13, taken: false }));
    assert!(stack.readiness(id).urgent);
    assert_eq!(stack.take_urgent(id, true), Ok(Some(b'!')));
    assert_eq!(stack.take_urgent(id, false), Ok(Some(b'!')));
    assert_eq!(stack.take_urgent(id, false), Err(SocketError::NoUrgent));
    assert!(!stack.readiness(id).urgent);
    assert_eq!((stack.recv(id, &mut buffer), &buffer[..7]), (Ok(7), &b"beforex"[..]));
    assert_eq!(stack.urgent(id).unwrap().ahead, 0);
    assert_eq!((stack.recv(id, &mut buffer), &buffer[..5]), (Ok(5), &b"after"[..]));
    assert_eq!(stack.urgent(id), None);
    assert_eq!(stack.recv(id, &mut buffer), Ok(0));
}

#[test]
fn inline_it_stays_where_it_is() {
    let (mut link, ids) = connected(true);
    let (id, mut buffer) = (ids[SERVER], [0; 10]);
    urge(&mut link, ids[CLIENT], b"ab!");
    link.stacks[CLIENT].send(ids[CLIENT], b"after").unwrap();
    link.flush();
    link.run(SECOND);
    let stack = &mut link.stacks[SERVER];
    assert_eq!(stack.take_urgent(id, false), Err(SocketError::NoUrgent));
    assert_eq!((stack.recv(id, &mut buffer), &buffer[..2]), (Ok(2), &b"ab"[..]));
    assert_eq!((stack.recv(id, &mut buffer), &buffer[..6]), (Ok(6), &b"!after"[..]));
    assert_eq!(stack.urgent(id), None);
}

#[test]
fn only_the_urgent_byte_is_nothing_to_read() {
    let (mut link, ids) = connected(false);
    let (id, mut buffer) = (ids[SERVER], [0; 10]);
    urge(&mut link, ids[CLIENT], b"!");
    assert!(link.events[SERVER].contains(&Event::Urgent(id)));
    let stack = &mut link.stacks[SERVER];
    let now = stack.readiness(id);
    assert_eq!((now.readable, now.urgent), (false, true));
    // A newer one takes its place, which is passed then.
    urge(&mut link, ids[CLIENT], b"?");
    let stack = &mut link.stacks[SERVER];
    assert_eq!(stack.take_urgent(id, false), Ok(Some(b'?')));
    assert_eq!((stack.recv(id, &mut buffer), buffer[0]), (Ok(1), b'!'));
    assert_eq!(stack.recv(id, &mut buffer), Ok(0));
    link.stacks[CLIENT].shutdown(ids[CLIENT]).unwrap();
    link.flush();
    link.run(SECOND);
    assert_eq!(link.stacks[SERVER].recv(id, &mut buffer), Ok(0));
    assert!(link.stacks[SERVER].is_finished(id));
}
