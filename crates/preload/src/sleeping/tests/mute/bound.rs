//! A socket that was bound before it is connected, while the worker or the daemon does not answer.

use std::ffi::c_int;

use host::{Domain, Errno};

use super::ask;
use crate::address::{self, id};
use crate::asking::Lending;
use crate::process::Shared;
use crate::state::bound::keep_name;

#[test]
fn while_one_thread_connects_from_an_address_other_threads_send_and_receive() {
    ask("name");
}

#[test]
fn while_one_thread_connects_from_a_port_other_threads_send_and_receive() {
    ask("port");
}

/// A stream on the worker's stack, and a socket of the kernel's at its descriptor, with an address, and with a port or without.
pub(super) fn open(shared: &Shared, has_port: bool) -> c_int {
    let (level, option) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
    let no_port = c_int::from(!has_port);
    let length = size_of::<c_int>() as libc::socklen_t;
    let (name, name_length) = address::encode("127.0.0.1:0".parse().unwrap());
    // SAFETY: a word and an address, with their lengths.
    let fd = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        assert_eq!(libc::setsockopt(fd, level, option, (&raw const no_port).cast(), length), 0);
        assert_eq!(libc::bind(fd, (&raw const name).cast(), name_length), 0);
        fd
    };
    shared.lock().sessions.open_with(id(fd), Domain::V4, &[]).unwrap();
    fd
}

/// Gives the session the address, for which the worker is asked, or the daemon, which is shown the port.
pub(super) fn keep(shared: &Shared, fd: c_int) {
    let (state, named) = keep_name(Lending { shared, state: shared.lock() }, fd);
    drop(state);
    assert!(!matches!(named, Err(Errno::NETDOWN | Errno::ADDRINUSE)), "{named:?}");
}
