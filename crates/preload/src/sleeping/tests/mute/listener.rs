//! A socket that begins to listen while the worker does not answer: who closes it waits, too.

use std::thread;

use super::{Steps, ask};
use crate::address::{self, id};
use crate::hooks::descriptors;
use crate::process::Shared;

#[test]
fn while_a_socket_begins_to_listen_other_threads_send_and_receive() {
    ask("listen");
}

/// Has a socket listen, for which the worker is asked. Another thread closes it meanwhile.
pub(super) fn listen_and_close(shared: &Shared, steps: &Steps) {
    let (name, length) = address::encode("127.0.0.1:0".parse().unwrap());
    // SAFETY: an address, with its length.
    let fd = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        assert_eq!(libc::bind(fd, (&raw const name).cast(), length), 0);
        fd
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            steps.wait_for("asked");
            // SAFETY: no memory is involved.
            assert_eq!(unsafe { descriptors::close(fd) }, 0);
        });
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { libc::listen(fd, 8) }, 0);
    });
    assert!(!shared.lock().sessions.has(id(fd)));
}
