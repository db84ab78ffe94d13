//! The C border, by a C program: `tests/c/program.c`.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod program;
mod stub;

use program::{Installed, Running};
use shm::Meta;
use shm::attach::{Reference, Take, flag};
use stub::Stub;

#[test]
fn a_c_program_does_all_that_the_header_offers() {
    let mut stub = Stub::new(1);
    let installed = Installed::new();
    assert_eq!(installed.version(), millrace::VERSION);
    let source = program::root().join("crates/client/tests/c/program.c");
    let built = installed.compile(&source);
    let mut running = Running::start(&mut installed.command(&built, &stub.path()));

    assert_eq!(running.line(), "own");
    assert_eq!(stub.with(|queue| queue.asked.queue.clone().unwrap().queue), 3);
    (4..7).for_each(|place| stub.lend(place, &[place as u8 - 3; 60], 1));
    for place in [4, 5] {
        let (bytes, meta) = stub.next(0, 0);
        let reference = Reference::decode(&bytes).unwrap();
        assert_eq!((reference.place, meta.port, meta.flags), (place, 1, flag::REFERENCE));
        let start = if place == 4 { [1, 99] } else { [2, 2] };
        assert!(stub.see(reference).starts_with(&start));
    }
    assert_eq!(stub.next(0, 0), (vec![6, 0, 0, 0], Meta { port: 0, flags: flag::RETURN }));
    running.say("\n");

    assert_eq!(running.line(), "open");
    assert_eq!(stub.state.lock().unwrap().names, ["c program"]);
    stub.with(|queue| {
        let filter = &queue.asked.filter;
        assert_eq!((queue.asked.take, queue.asked.channels), (Take::Copy, 2));
        assert_eq!(filter.source, Some("2001:db8::1".parse().unwrap()));
        assert_eq!((filter.protocol.as_deref(), filter.destination_port), (Some("udp"), Some(53)));
        assert_eq!((filter.host, filter.ether_type, filter.source_port), (None, None, None));
    });
    let port = |port| Meta { port, flags: 0 };
    for first in 10..14 {
        stub.inject(0, 0, &[first; 60], port(1));
    }
    let long: Vec<u8> = (0..250).collect();
    stub.inject(0, 0, &long, port(1));
    let mut changed = vec![10; 60];
    changed[1] = 99;
    let graph = |port| Meta { port, flags: flag::GRAPH };
    assert_eq!(stub.next(0, 0), (changed, port(0)));
    assert_eq!(stub.next(0, 0), (vec![11; 60], port(1)));
    assert_eq!(stub.next(0, 0), (vec![12; 60], graph(1)));
    assert_eq!(stub.next(0, 0), (b"own bytes".to_vec(), port(1)));
    assert_eq!(stub.next(0, 0), (b"to graph".to_vec(), graph(0)));
    assert_eq!(stub.next(0, 0), (long, port(1)));
    assert_eq!(running.line(), "packets");
    for number in 0..16 {
        while !stub.with(|queue| queue.rings[0][0].to_client.has_room()) {
            std::thread::yield_now();
        }
        stub.with(|queue| queue.rings[0][0].from_client.sleeps().announce());
        stub.inject(0, 0, &[number; 60], port(1));
        if number % 2 == 0 {
            assert_eq!(stub.next(0, 0), (vec![number; 60], port(1)));
            assert!(stub.is_rung(0, 60), "the worker slept");
        }
    }
    running.say("\n");
    assert_eq!(running.line(), "full");
    stub.inject(0, 0, &[1; 60], port(1));
    assert_eq!(running.line(), "end");
    stub.stop();
    assert_eq!(running.line(), "done");
    assert!(running.succeeds());
}

/// What a forked child does with what it inherited the daemon must not notice.
#[test]
fn a_forked_child_leaves_its_parents_queues_alone() {
    let stub = Stub::new(1);
    let installed = Installed::new();
    let built = installed.compile(&program::root().join("crates/client/tests/c/fork.c"));
    let mut running = Running::start(&mut installed.command(&built, &stub.path()));
    assert_eq!(running.line(), "open");
    stub.with(|queue| queue.rings[0][0].from_client.sleeps().announce());
    stub.inject(0, 0, &[1; 60], Meta { port: 1, flags: 0 });
    stub.inject(0, 0, &[2; 60], Meta { port: 1, flags: 0 });
    assert_eq!(running.line(), "forked");
    stub.with(|queue| {
        assert!(!queue.closed, "the child closed its parent's queues");
        assert!(!queue.rings[0][0].to_client.is_drained(), "the child gave slots back");
        assert!(
            queue.rings[0][0].to_client.consumer_sleeps().claim_wake(),
            "the parent still waits"
        );
        queue.rings[0][0].to_client.consumer_sleeps().announce();
    });
    assert!(stub.take(0, 0).is_none(), "the child sent something");
    assert!(!stub.is_rung(0, 0), "the child rang");
    assert_eq!(stub.state.lock().unwrap().names, ["fork", "fork"], "the child attached anew");
    running.say("\n");
    assert_eq!(running.line(), "sent");
    assert_eq!(stub.next(0, 0), (vec![1; 60], Meta { port: 1, flags: 0 }));
    assert!(stub.with(|queue| queue.rings[0][0].to_client.is_drained()));
    assert!(stub.is_rung(0, 60));
    running.say("\n");
    assert_eq!(running.line(), "closed");
    assert!(stub.with(|queue| queue.closed));
    assert!(running.succeeds());
}

#[test]
fn the_header_is_for_cpp_too() {
    let header = program::root().join("crates/client/include/millrace.h");
    let mut compiler = std::process::Command::new("c++");
    compiler.args(["-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]).arg(header);
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
