//! The application's files have the numbers that the kernel gives them without this library.

use std::thread;
use std::time::Duration;

use crate::hooks::{descriptors, epoll};
use crate::process::Shared;

/// None is made while another thread may be making one of this library's.
pub(super) fn files_are_made_in_turn(shared: &Shared) {
    let state = shared.lock();
    // SAFETY: no memory is involved.
    let socket = || unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    // SAFETY: no memory is involved.
    let copy = || unsafe { descriptors::dup(libc::STDERR_FILENO) };
    let (command, lowest) = (libc::F_DUPFD_CLOEXEC, 3);
    // SAFETY: no memory is involved.
    let other_copy = move || unsafe { descriptors::fcntl(libc::STDERR_FILENO, command, lowest) };
    // SAFETY: no memory is involved.
    let instance = || unsafe { epoll::epoll_create1(0) };
    let all = [
        thread::spawn(socket),
        thread::spawn(copy),
        thread::spawn(other_copy),
        thread::spawn(instance),
    ];
    thread::sleep(Duration::from_millis(20));
    assert!(all.iter().all(|made| !made.is_finished()));
    drop(state);
    for made in all {
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { descriptors::close(made.join().unwrap()) }, 0);
    }
}
