use shm::Segment;
use shm::connections::{ConnectionsWriter, bytes};

use super::*;

/// A stack with these UDP sockets.
fn subject(number: u32, sockets: &[(&str, Option<&str>)]) -> Subject {
    let length = bytes(64).unwrap();
    let segment = Arc::new(Segment::create("connections", length).unwrap());
    let region = segment.region(0, length).unwrap();
    let mut writer = ConnectionsWriter::new(region.clone(), 64).unwrap();
    for (place, (local, remote)) in (0..).zip(sockets) {
        let (local, queues) = (local.parse().unwrap(), (7, 8));
        let remote = remote.map(|remote| remote.parse().unwrap());
        let record = SocketRecord { local, remote, at: 0, queues, dropped: 9 };
        assert!(writer.write_socket(place, &record));
    }
    writer.count(Count::UnlistedSockets, 5);
    let connections = Arc::new(ConnectionsReader::new(region, 64).unwrap());
    Subject { number, name: format!("name-{number}"), pid: number as i32, uid: 33, connections }
}

fn look() -> Look {
    let one = subject(1, &[("0.0.0.0:53", None), ("192.0.2.1:10240", Some("198.51.100.7:53"))]);
    let two = subject(2, &[("[2001:db8::1]:443", None)]);
    Look { subjects: vec![one, two], own: None }
}

#[test]
fn udp_sockets_are_found_by_what_is_wanted_of_them() {
    let look = look();
    let found = |wanted: Wanted| -> Vec<u16> {
        let page = look.page(&Wanted { limit: 10, ..wanted });
        assert_eq!(page.udp_total, page.udp_sockets.len() as u64);
        assert!(page.connections.is_empty() && page.total == 0);
        page.udp_sockets.iter().map(|socket| socket.local.port()).collect()
    };
    let all = Wanted::default;
    assert_eq!(found(all()), [53, 10_240, 443]);
    assert_eq!(found(Wanted { protocol: Some(Transport::Udp), ..all() }), [53, 10_240, 443]);
    assert!(found(Wanted { protocol: Some(Transport::Tcp), ..all() }).is_empty());
    assert_eq!(found(Wanted { port: Some(53), ..all() }), [53, 10_240], "of either end");
    let address = Some("198.51.100.0/24".parse().unwrap());
    assert_eq!(found(Wanted { address, ..all() }), [10_240]);
    let states = |state| Wanted { states: vec![state], ..all() };
    assert_eq!(found(states(ConnectionState::Established)), [10_240]);
    assert_eq!(found(states(ConnectionState::Unconnected)), [53, 443]);
    assert!(found(states(ConnectionState::Closed)).is_empty());
    assert_eq!(found(Wanted { process: Some("name-2".to_owned()), ..all() }), [443]);
    assert_eq!(found(Wanted { process: Some("1".to_owned()), ..all() }), [53, 10_240]);
    assert_eq!(found(Wanted { stack: Some(2), ..all() }), [443]);
}

#[test]
fn a_page_has_no_more_udp_sockets_than_are_wanted_and_counts_all() {
    let page = look().page(&Wanted { limit: 1, ..Wanted::default() });
    assert_eq!((page.udp_total, page.udp_unlisted), (3, 10));
    let [socket] = &page.udp_sockets[..] else { panic!("{:?}", page.udp_sockets) };
    assert_eq!((socket.stack, &socket.name[..], socket.pid, socket.uid), (1, "name-1", 1, 33));
    assert_eq!((socket.remote, socket.state), (None, ConnectionState::Unconnected));
    assert_eq!((socket.receive_queue, socket.send_queue, socket.dropped), (7, 8, 9));
    let tcp = Wanted { protocol: Some(Transport::Tcp), limit: 1, ..Wanted::default() };
    assert_eq!(look().page(&tcp).udp_unlisted, 0);
}

#[test]
fn udp_sockets_are_no_connections_to_metrics() {
    for (_, _, states) in look().states() {
        assert!(states.iter().all(|(name, count)| *name != "unconnected" && *count == 0));
    }
}
