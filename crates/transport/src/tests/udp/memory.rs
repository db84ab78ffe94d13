//! How much memory what waits in sockets takes, and may take.

use super::*;

/// So many sockets of the server's, from port 1000 on, and one of the client's.
fn hosts(count: u16) -> (Hosts, Vec<UdpId>, UdpId) {
    let mut hosts = Hosts::new();
    let ids = (0..count).map(|number| hosts.bind(SERVER, v4(SERVER, 1000 + number))).collect();
    let client = hosts.bind(CLIENT, v4(CLIENT, 7));
    (hosts, ids, client)
}

/// A thousand bytes for each socket.
fn send_to(hosts: &mut Hosts, client: UdpId, ids: &[UdpId]) {
    for id in ids {
        let (to, _) = hosts.stacks[SERVER].udp_ends(*id).unwrap();
        hosts.send(CLIENT, client, &Message::to(to, &[7; 1000])).unwrap();
    }
}

fn waiting(hosts: &Hosts) -> usize {
    hosts.stacks[SERVER].udp_memory()
}

#[test]
fn what_waits_counts_until_it_is_received_or_its_socket_is_closed() {
    let (mut hosts, ids, client) = hosts(3);
    (0..40).for_each(|_| send_to(&mut hosts, client, &ids));
    let each = waiting(&hosts) / 3;
    assert!((40_000..65_536).contains(&each), "{each}");
    while hosts.recv(SERVER, ids[0]).is_some() {}
    assert_eq!(waiting(&hosts), 2 * each);
    hosts.stacks[SERVER].udp_close(ids[1]);
    assert_eq!(waiting(&hosts), each);
    let mut target = [0; 3000];
    while hosts.stacks[SERVER].udp_recv_run(ids[2], &mut target).unwrap().is_some() {}
    assert_eq!(waiting(&hosts), 0);
}

#[test]
fn where_all_have_no_more_room_a_queue_is_full() {
    let (mut hosts, ids, client) = hosts(100);
    hosts.stacks[SERVER].limit_udp_memory(100_000);
    (0..2).for_each(|_| send_to(&mut hosts, client, &ids));
    assert!((90_000..=100_000).contains(&waiting(&hosts)), "{}", waiting(&hosts));
    let server = &hosts.stacks[SERVER];
    let dropped = |id: &UdpId| server.udp_glance(id.index()).unwrap().dropped;
    let all: u64 = ids.iter().map(dropped).sum();
    assert_eq!(server.counters().dropped(Reason::UdpQueue), all);
    assert_eq!(server.counters().datagrams_in + all, 200);
    let last = ids[99];
    while hosts.recv(SERVER, last).is_some() {}
    while hosts.recv(SERVER, ids[0]).is_some() {}
    send_to(&mut hosts, client, &[last]);
    assert!(hosts.recv(SERVER, last).is_some(), "there is room again");
    // What waits stays where it is.
    hosts.stacks[SERVER].limit_udp_memory(0);
    send_to(&mut hosts, client, &[last]);
    assert!(hosts.recv(SERVER, last).is_none() && hosts.recv(SERVER, ids[1]).is_some());
}

#[test]
fn reports_count_too() {
    let (mut hosts, ids, _) = hosts(1);
    let (server, id) = (&mut hosts.stacks[SERVER], ids[0]);
    let report = || UdpReport {
        trouble: UdpTrouble::TooBig(1000),
        to: v4(CLIENT, 9),
        message: None,
        info: 1000,
        data: vec![7; 100],
        at: 0,
    };
    assert!(server.udp_add_report(id, report()));
    assert_eq!(server.udp_memory(), 868);
    server.limit_udp_memory(1700);
    assert!(!server.udp_add_report(id, report()));
    server.limit_udp_memory(1800);
    assert!(server.udp_add_report(id, report()));
    assert!(server.udp_report(id).is_some());
    assert_eq!(server.udp_memory(), 868);
    server.udp_clear_reports(id);
    assert_eq!(server.udp_memory(), 0);
}

#[test]
fn datagrams_come_in_where_segments_do_not() {
    let (mut hosts, ids, client) = hosts(1);
    let (now, options) = (hosts.now, Options::default());
    hosts.stacks[SERVER].listen(v4(SERVER, 80), 1, &options).unwrap();
    let [sender, receiver] = &mut hosts.stacks;
    let mut list = PacketList::default();
    sender.connect(now, v4(CLIENT, 0).ip(), 0, v4(SERVER, 80), &options).unwrap();
    sender.flush(now, &mut list);
    sender.udp_send(now, client, &Message::to(v4(SERVER, 1000), b"data"), &mut list).unwrap();
    let packets: Vec<_> = list.packets.iter().map(|packet| Packet::new(packet)).collect();
    let mut answers = PacketList::default();
    receiver.input_datagrams(now, &packets, &mut answers);
    assert_eq!((packets.len(), receiver.connections(), answers.packets.len()), (2, 0, 0));
    assert_eq!(hosts.recv(SERVER, ids[0]).unwrap().0, b"data");
    hosts.stacks[SERVER].input(now, &packets, &mut answers);
    assert_eq!(hosts.stacks[SERVER].connections(), 1);
}
