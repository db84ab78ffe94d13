//! Who may have stacks, and how many.

use std::net::TcpListener;

use shm::attach::RefusalKind;
use shm::session::{OpenStack, Reply, Request};

use crate::{
    ASKED, ask, config, connect, daemon, hello, lease, listen, listening, open, refused, stacks,
    until, with_stack,
};

#[test]
fn bounds_are_those_of_a_user() {
    let daemon = daemon("stacks = 2\nlisteners = 1\nleases = 1\nmemory = 2\n");
    let (one, stack) = with_stack(&daemon);
    let (two, _) = with_stack(&daemon);
    let part = |reply: Reply, part: &str| {
        let refusal = refused(reply);
        assert_eq!(refusal.kind, RefusalKind::Resources);
        assert!(refusal.message.contains(part), "{refusal}");
    };
    part(ask(&two, &Request::OpenStack(ASKED)).0, "sessions.stacks allows one user 2");
    assert_eq!(ask(&one, &Request::CloseStack(stack)).0, Reply::StackClosed(stack));
    let large = OpenStack { slots: 1024, ..ASKED };
    part(ask(&one, &Request::OpenStack(large)).0, "sessions.memory allows one user 2");
    let stack = open(&one);
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let first = listening(listen(&one, stack, 1, &sockets[0]));
    part(listen(&one, stack, 1, &sockets[1]), "sessions.listeners allows one user 1");
    // Another weight is no other listener.
    assert_eq!(listening(listen(&one, stack, 2, &sockets[0])).listener, first.listener);
    assert!(matches!(ask(&one, &lease(stack)).0, Reply::Leased(_)));
    part(ask(&one, &lease(stack)).0, "sessions.leases allows one user 1");
    for asked in [
        OpenStack { slots: 63, ..ASKED },
        OpenStack { capacity: 0, ..ASKED },
        OpenStack { claims: 1000, ..ASKED },
        OpenStack { connections: 0, ..ASKED },
        OpenStack { connections: u32::MAX, ..ASKED },
        OpenStack { claims: u32::MAX, slots: u32::MAX, capacity: u32::MAX, connections: u32::MAX },
    ] {
        assert_eq!(refused(ask(&one, &Request::OpenStack(asked)).0).kind, RefusalKind::Invalid);
    }
}

#[test]
fn a_reload_applies_who_may_and_how_many() {
    let daemon = daemon("stacks = 1\n");
    let (channel, _) = with_stack(&daemon);
    refused(ask(&channel, &Request::OpenStack(ASKED)).0);
    let reload = |sessions: &str| {
        daemon.write_config(&config(sessions));
        let answer = daemon.request("POST", "/v1/reload", "{}");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    };
    assert!(reload("stacks = 2\n").contains("[sessions] changed"));
    open(&channel);
    assert!(reload("socket = \"/run/elsewhere.sock\"\n").contains("[sessions] differs"));
    assert!(reload("enabled = false\n").contains("[sessions] changed"));
    until("it is told to go", || stacks(&daemon).is_empty());
    let late = connect(&daemon);
    let refusal = refused(hello(&late));
    assert_eq!(refusal.kind, RefusalKind::Permission);
    assert!(refusal.message.contains("sessions.enabled is false"), "{refusal}");
    reload("");
    let (_again, _) = with_stack(&daemon);
}
