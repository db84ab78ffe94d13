//! The programs of `examples/` in Rust and C, against a stub of the daemon. `tests/python.rs` has those in Python.

mod cases;
mod program;
mod stub;

use std::process::Command;

use cases::CASES;
use program::{Installed, root};
use stub::Stub;

#[test]
fn in_rust() {
    for case in CASES {
        let stub = Stub::new(1);
        let mut command = Command::new(Installed::example(case.name));
        command.env("MILLRACE_ATTACH", stub.path());
        case.run(command, stub);
    }
}

#[test]
fn in_c() {
    let installed = Installed::new();
    for case in CASES {
        let stub = Stub::new(1);
        let program = installed.compile(&root().join(format!("examples/c/{}.c", case.name)));
        case.run(installed.command(&program, &stub.path()), stub);
    }
}
