//! What a stack gets: rings with each worker, and its routes.

use std::net::TcpListener;

use shm::attach::RefusalKind;
use shm::session::{Reply, Request, Routed};

use crate::instance::Instance;
use crate::{
    ASKED, ask, config, connect, daemon, hello, listen, listening, open, refused, route, stacks,
    with_stack,
};

#[test]
fn a_stack_has_rings_with_each_worker() {
    let daemon = Instance::start(&format!("[workers]\ncores = [0, 1]\n{}", config("")));
    let channel = connect(&daemon);
    assert!(matches!(hello(&channel), Reply::Welcome(_)));
    let (reply, files) = ask(&channel, &Request::OpenStack(ASKED));
    let Reply::StackOpened(opened) = reply else { panic!("{reply:?}") };
    // The segment, a bell to sleep on, one for each worker.
    assert_eq!((opened.rings.rings.len(), files.len()), (2, 4));
    let mut files = files.into_iter();
    let segment = std::sync::Arc::new(shm::Segment::from_file(files.next().unwrap()).unwrap());
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for ring in opened.rings.rings.iter().flatten() {
        taken.push((ring.offset, ring.offset + ring.layout().unwrap().bytes() as u64));
    }
    let claims = shm::claims::bytes(opened.claims.places).unwrap() as u64;
    taken.push((opened.claims.offset, opened.claims.offset + claims));
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0), "they overlap: {taken:?}");
    assert!(taken.iter().all(|(_, end)| *end <= segment.length() as u64), "{taken:?}");
    // It is not served before it has begun.
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let early = refused(listen(&channel, opened.stack, 1, &socket));
    assert!(early.message.contains("has not been started"), "{early}");
    let started = ask(&channel, &Request::StartStack(opened.stack)).0;
    assert_eq!(started, Reply::StackStarted(opened.stack));
    let again = refused(ask(&channel, &Request::StartStack(opened.stack)).0);
    assert_eq!(again.kind, RefusalKind::Invalid);
    listening(listen(&channel, opened.stack, 1, &socket));
    drop(segment);
    let other = open(&channel);
    assert_ne!(other, opened.stack);
    assert_eq!(stacks(&daemon).iter().find(|one| one["number"] == other).unwrap()["rings"], 2);
}

#[test]
fn routes_lead_through_millrace_or_the_kernel() {
    let daemon = daemon("");
    let (channel, stack) = with_stack(&daemon);
    let route_to = |destination| match ask(&channel, &route(destination)).0 {
        Reply::Routed(routed) => routed,
        other => panic!("{other:?}"),
    };
    let route = |address: &str| route_to((address.parse().unwrap(), 80));
    let source = "192.0.2.1".parse().unwrap();
    assert_eq!(route("192.0.2.77"), Routed::Millrace { source, mtu: 1500 });
    for kernel in ["127.0.0.1", "::1", "8.8.8.8", "224.0.0.1", "192.0.2.255", "0.0.0.0", "fe80::1"]
    {
        assert_eq!(route(kernel), Routed::Kernel, "{kernel}");
    }
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    listening(listen(&channel, stack, 1, &socket));
    assert_eq!(route_to((source, port)), Routed::Millrace { source, mtu: 1500 });
    let refused = route_to((source, port ^ 1));
    assert_eq!(refused, Routed::Millrace { source, mtu: 1500 }, "the kernel has not the address");
    assert_eq!(route_to(("127.0.0.1".parse().unwrap(), port)), Routed::Kernel);
}
