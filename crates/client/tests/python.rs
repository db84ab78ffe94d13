//! The Python module and the examples in Python. `scripts/python --test` makes the module and runs these, with the
//! interpreter in MILLRACE_PYTHON.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod cases;
mod program;
mod stub;

use std::path::Path;
use std::process::{Command, Stdio};

use cases::CASES;
use program::{Running, root};
use shm::attach::{Reference, Take, flag};
use shm::{Meta, PushError};
use stub::Stub;

fn python(stub: &Stub, script: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("MILLRACE_PYTHON").unwrap());
    command.arg(script).env("MILLRACE_ATTACH", stub.path());
    command
}

#[test]
#[ignore = "needs the Python module: scripts/python --test"]
fn examples() {
    for case in CASES {
        let stub = Stub::new(1);
        let script = root().join(format!("examples/python/{}.py", case.name));
        case.run(python(&stub, &script), stub);
    }
}

#[test]
#[ignore = "needs the Python module: scripts/python --test"]
fn an_interrupt_ends_an_example_without_a_word() {
    let stub = Stub::new(1);
    let script = root().join("examples/python/reflector.py");
    // A test in the background of a shell would hand down that the signal is ignored.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(std::env::var_os("MILLRACE_PYTHON").unwrap());
    command.arg(&script).env("MILLRACE_ATTACH", stub.path()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    assert_eq!(running.line(), "reflecting");
    let killed = Command::new("kill").args(["-INT", &running.number().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(running.errors(), "");
    assert!(running.succeeds());
}

#[test]
#[ignore = "needs the Python module: scripts/python --test"]
fn module() {
    let mut stub = Stub::new(1);
    let script = root().join("crates/client/tests/python/program.py");
    let mut running = Running::start(&mut python(&stub, &script));
    assert_eq!(running.line(), "own");
    assert_eq!(stub.with(|queue| queue.asked.queue.clone().unwrap().queue), 3);
    (4..6).for_each(|place| stub.lend(place, &[place as u8 - 3; 60], 1));
    let reference = Reference::decode(&stub.next(0, 0).0).unwrap();
    assert_eq!(reference.place, 4);
    assert!(stub.see(reference).starts_with(&[1, 99]));
    // The other one was forgotten, so it goes back.
    assert_eq!(stub.next(0, 0), (vec![5, 0, 0, 0], Meta { port: 0, flags: flag::RETURN }));
    running.say("\n");

    assert_eq!(running.line(), "open");
    stub.with(|queue| {
        let filter = &queue.asked.filter;
        assert_eq!((queue.asked.take, queue.asked.channels), (Take::Copy, 2));
        assert_eq!(filter.source, Some("2001:db8::1".parse().unwrap()));
        assert_eq!((filter.protocol.as_deref(), filter.destination_port), (Some("udp"), Some(53)));
    });
    let port = |port| Meta { port, flags: 0 };
    let graph = |port| Meta { port, flags: flag::GRAPH };
    for first in 10..14 {
        stub.inject(0, 0, &[first; 60], port(1));
    }
    let long: Vec<u8> = (0..250).collect();
    stub.inject(0, 0, &long, port(1));
    let mut changed = vec![10; 60];
    changed[1] = 99;
    let sent = [
        (changed, port(0)),
        (vec![11; 60], port(1)),
        (vec![12; 60], graph(1)),
        (b"own bytes".to_vec(), port(1)),
        (b"to graph".to_vec(), graph(0)),
        (long, port(1)),
    ];
    for expected in sent {
        assert_eq!(stub.next(0, 0), expected);
    }
    assert_eq!(running.line(), "viewed");
    let full = |byte| {
        stub.with(|queue| queue.rings[0][0].to_client.push(&[byte; 60], port(1)))
            .is_err_and(|error| error == PushError::Full)
    };
    let drained = || stub.with(|queue| queue.rings[0][0].to_client.is_drained());
    stub.inject(0, 0, &[77; 60], port(1));
    assert!(full(1), "the next slot is that of the view");
    assert_eq!(running.line(), "sliced");
    assert!(full(1) && !drained(), "a part of the view lives");
    running.say("\n");
    assert_eq!(running.line(), "let go");
    assert!(drained());
    stub.inject(0, 0, &[78; 60], port(1));
    assert_eq!(running.line(), "released");
    assert!(!drained(), "a view of a released packet lives");
    running.say("\n");
    assert_eq!(running.line(), "packets");
    assert!(drained());
    for number in 0..16 {
        while !stub.with(|queue| queue.rings[0][0].to_client.has_room()) {
            std::thread::yield_now();
        }
        stub.inject(0, 0, &[number; 60], port(1));
    }
    assert_eq!(running.line(), "forgotten");
    assert_eq!(running.line(), "threads");
    for number in 0..24 {
        while !stub.with(|queue| queue.rings[0][0].to_client.has_room()) {
            std::thread::yield_now();
        }
        stub.inject(0, 0, &[number; 60], port(1));
    }
    running.say("\n");
    assert_eq!(running.line(), "full");
    stub.inject(0, 0, &[1; 60], port(1));
    assert_eq!(running.line(), "end");
    stub.stop();
    assert_eq!(running.line(), "done");
    assert!(running.succeeds());
}
