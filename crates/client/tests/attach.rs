//! Meeting the daemon, and losing it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod stub;

use millrace::{Client, Error, Filter, Options, PortQueue, RefusalKind, Spread, Take};
use shm::attach::{Reply, Request};
use stub::{Stub, nowhere, ports};

#[test]
fn attaches_by_its_name_and_sees_ports() {
    let stub = Stub::new(1);
    let client = Client::attach(Some(&stub.path()), "looker").unwrap();
    assert_eq!(stub.state.lock().unwrap().names, ["looker"]);
    assert_eq!((client.number(), client.daemon_version()), (7, millrace::VERSION));
    assert_eq!(client.ports().unwrap(), ports());
    assert!(!client.is_gone());
}

#[test]
fn asks_for_what_the_options_say() {
    let stub = Stub::new(2);
    let filter = Filter { ether_type: Some(0x86dd), source_port: Some(53), ..Filter::default() };
    let options = Options {
        ports: vec!["right".into()],
        take: Take::Copy,
        spread: Spread::RoundRobin,
        filter: filter.clone(),
        channels: 3,
        slots: 64,
        capacity: 1000,
        queue: Some(PortQueue { port: "left".into(), queue: 2 }),
    };
    stub.state.lock().unwrap().lends = false;
    let queues = stub.client().open(&options).unwrap();
    assert_eq!((queues.number, queues.channels.len()), (1, 3));
    stub.with(|queue| {
        let asked = &queue.asked;
        assert_eq!((asked.take, asked.spread), (Take::Copy, Spread::RoundRobin));
        assert_eq!((asked.ports.as_slice(), &asked.filter), (&["right".to_owned()][..], &filter));
        assert_eq!((asked.channels, asked.slots, asked.capacity), (3, 64, 1000));
        assert_eq!(asked.queue, options.queue);
    });
}

#[test]
fn nobody_at_the_socket_is_told_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let error = Client::attach(Some(&nowhere(folder.path())), "test").unwrap_err();
    assert!(matches!(error, Error::NoDaemon { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("nobody.sock") && text.contains("MILLRACE_ATTACH"), "{text}");
    // A path longer than a socket's address holds is no panic either.
    let long = folder.path().join("x".repeat(200));
    assert!(matches!(Client::attach(Some(&long), "test"), Err(Error::NoDaemon { .. })));
}

#[test]
fn refusals_carry_the_daemons_words() {
    let stub = Stub::new(1);
    let options = Options { ports: vec!["middle".into()], ..Options::default() };
    let error = stub.client().open(&options).unwrap_err();
    let Error::Refused(refusal) = &error else { panic!("{error}") };
    assert_eq!(refusal.kind, RefusalKind::Unknown);
    assert!(error.to_string().contains("there are left and right"), "{error}");
    let odd = Options { slots: 1000, ..Options::default() };
    assert!(matches!(stub.client().open(&odd), Err(Error::Refused(_))));
}

#[test]
fn another_version_is_refused_with_both_named() {
    let stub = Stub::new(1);
    stub.on_answer(|_, reply, _| {
        if let Reply::Welcome(welcome) = reply {
            welcome.protocol = 99;
            welcome.daemon = "9.9.9".into();
        }
    });
    let error = Client::attach(Some(&stub.path()), "test").unwrap_err();
    assert!(matches!(error, Error::Version { .. }));
    let text = error.to_string();
    let ours = format!("protocol {}", millrace::PROTOCOL);
    for part in [millrace::VERSION, &ours, "9.9.9", "protocol 99"] {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
    // The daemon may see it first.
    stub.on_answer(|_, reply, _| {
        *reply = Reply::Refused(shm::attach::Refusal::new(RefusalKind::Version, "I am 8.8.8"));
    });
    let error = Client::attach(Some(&stub.path()), "test").unwrap_err();
    assert!(matches!(error, Error::Version { .. }));
    assert!(error.to_string().contains("8.8.8") && error.to_string().contains(&ours));
}

#[test]
fn queues_are_given_back_with_their_last_channel() {
    let stub = Stub::new(1);
    let client = stub.client();
    let options = Options { channels: 2, ..Options::default() };
    let mut queues = client.open(&options).unwrap();
    let second = queues.channels.pop();
    drop(queues);
    stub.with(|queue| assert!(!queue.closed, "one channel lives"));
    drop(second);
    stub.with(|queue| assert!(queue.closed));
    // Questions and answers still belong together.
    assert_eq!(client.ports().unwrap(), ports());
}

#[test]
fn channels_outlive_their_client() {
    let stub = Stub::new(1);
    let mut queues = stub.client().open(&Options::default()).unwrap();
    stub.inject(0, 0, &[5; 60], shm::Meta::default());
    let mut packets = Vec::new();
    assert_eq!(queues.channels[0].receive(&mut packets, 8).unwrap(), 1);
    queues.channels[0].release_burst(&mut packets);
}

#[test]
fn a_daemon_that_comes_back_is_attached_again() {
    let mut stub = Stub::new(1);
    let mut client = stub.client();
    let old = client.open(&Options::default()).unwrap();
    stub.stop();
    assert!(client.is_gone());
    assert!(matches!(client.ports(), Err(Error::DaemonGone)));
    assert!(matches!(client.open(&Options::default()), Err(Error::DaemonGone)));
    assert!(matches!(client.reattach(), Err(Error::NoDaemon { .. })));
    stub.start();
    client.reattach().unwrap();
    let mut new = client.open(&Options::default()).unwrap();
    drop(old);
    stub.inject(0, 0, &[9; 60], shm::Meta::default());
    let mut packets = Vec::new();
    assert_eq!(new.channels[0].receive(&mut packets, 8).unwrap(), 1);
    assert_eq!(new.channels[0].bytes(&packets[0]), [9; 60]);
    new.channels[0].release_burst(&mut packets);
}

#[test]
fn an_answer_to_another_question_is_refused() {
    let stub = Stub::new(1);
    let client = stub.client();
    stub.on_answer(|request, reply, _| {
        if matches!(request, Request::Ports) {
            *reply = Reply::Closed(3);
        }
    });
    assert!(matches!(client.ports(), Err(Error::Nonsense(_))));
    stub.on_answer(|_, reply, _| *reply = Reply::Ports(Vec::new()));
    assert!(matches!(client.open(&Options::default()), Err(Error::Nonsense(_))));
    assert!(matches!(Client::attach(Some(&stub.path()), "x"), Err(Error::Nonsense(_))));
}
