//! Receives, examines and closes what a user's processes hand over to `millraced`: whoever lets that wait for ever keeps this
//! process, and not the daemon ([`shm::session::judge()`]). The daemon starts one for each such user, with its orders at the
//! standard input and their version as its argument; it ends with them.
#![forbid(unsafe_code)]

use std::env;
use std::fmt;
use std::io::{self, Write as _, stderr};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use shm::session::{ORDERS, OTHER_ORDERS, judge};

fn main() -> ExitCode {
    let version = env::args_os().nth(1);
    if version.is_none_or(|version| version != *ORDERS.to_string()) {
        return failed(OTHER_ORDERS, &format!("it knows version {ORDERS} of its orders"));
    }
    give_up_what_is_not_needed();
    let orders = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(orders) => orders,
        Err(error) => return failed(1, &error),
    };
    match judge(orders) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(1, &error),
    }
}

/// It needs no file of any folder, and no privilege. It stays the daemon's user, so that no other may stop or trace it.
fn give_up_what_is_not_needed() {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    let _ = env::set_current_dir("/");
    let _ = set_no_new_privs(true);
    let _ = set_capabilities(None, sets);
}

fn failed(status: u8, why: &dyn fmt::Display) -> ExitCode {
    let _ = writeln!(stderr(), "millrace-judge is run by millraced only: {why}");
    ExitCode::from(status)
}
