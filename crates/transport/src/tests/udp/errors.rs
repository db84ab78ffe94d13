//! What the network says about datagrams, kept for who wants all of it.

use super::*;

fn wants(errors_v4: bool, errors_v6: bool) -> UdpOptions {
    UdpOptions { errors_v4, errors_v6, ..UdpOptions::default() }
}

#[test]
fn a_report_says_who_said_what_about_which_data() {
    let mut hosts = Hosts::new();
    for (local, remote, kind, code, ttl) in
        [(v4(CLIENT, 7), v4(SERVER, 9), 3, 3, 64), (v6(CLIENT, 7), v6(SERVER, 9), 1, 4, 64)]
    {
        let id = hosts.stacks[CLIENT].udp_bind(local, &wants(true, true)).unwrap();
        for data in [&b"first"[..], b"", b"third"] {
            hosts.send(CLIENT, id, &Message::to(remote, data)).unwrap();
        }
        let stack = &mut hosts.stacks[CLIENT];
        assert_eq!(stack.udp_first_report(id).unwrap().data, b"first");
        for data in [&b"first"[..], b"", b"third"] {
            let report = stack.udp_report(id).unwrap();
            let message = report.message.unwrap();
            assert_eq!((&report.data[..], report.to, report.info), (data, remote, 0));
            assert_eq!(report.trouble, UdpTrouble::Failed(Failure::Refused));
            assert_eq!((message.kind, message.code, message.ttl), (kind, code, ttl));
            assert_eq!((message.from, message.to), (remote.ip(), local.ip()));
        }
        assert_eq!(stack.udp_report(id), None);
    }
}

#[test]
fn each_version_is_asked_for_apart() {
    let mut hosts = Hosts::new();
    for (four, six) in [(false, false), (true, false), (false, true)] {
        let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
        let id = hosts.stacks[CLIENT].udp_bind(any, &wants(four, six)).unwrap();
        for (from, to) in [(v4(CLIENT, 0), v4(SERVER, 9)), (v6(CLIENT, 0), v6(SERVER, 9))] {
            let message = Message { from: Some(from.ip()), ..Message::to(to, b"?") };
            hosts.send(CLIENT, id, &message).unwrap();
        }
        let stack = &mut hosts.stacks[CLIENT];
        let told: Vec<bool> =
            std::iter::from_fn(|| stack.udp_report(id)).map(|report| report.to.is_ipv4()).collect();
        let expected: Vec<bool> =
            [(four, true), (six, false)].into_iter().filter(|one| one.0).map(|one| one.1).collect();
        assert_eq!(told, expected);
        assert_eq!(stack.udp_trouble(id).is_some(), four || six);
    }
}

#[test]
fn reports_count_in_the_receive_buffer() {
    let mut hosts = Hosts::new();
    let options = UdpOptions { receive_buffer: 2000, ..wants(true, true) };
    let id = hosts.stacks[CLIENT].udp_bind(v4(CLIENT, 7), &options).unwrap();
    for _ in 0..5 {
        hosts.send(CLIENT, id, &Message::to(v4(SERVER, 9), b"?")).unwrap();
    }
    let stack = &mut hosts.stacks[CLIENT];
    assert_eq!(std::iter::from_fn(|| stack.udp_report(id)).count(), 2);
    // What is said here is kept alike.
    let local = UdpReport {
        trouble: UdpTrouble::TooBig(1400),
        to: v4(SERVER, 9),
        message: None,
        info: 1400,
        data: Vec::new(),
        at: 1,
    };
    assert!(stack.udp_add_report(id, local.clone()));
    assert_eq!(stack.udp_first_report(id), Some(&local));
    stack.udp_clear_reports(id);
    assert_eq!(stack.udp_report(id), None);
}
