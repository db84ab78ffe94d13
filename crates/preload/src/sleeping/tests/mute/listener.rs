//! A socket that begins to listen while the worker does not answer: who closes it waits, too. Sockets that share a port.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use shm::attach::{Channel, Received};
use shm::session::{Listen, Request};

use super::{PATIENCE, Steps, ask, listening, open_listener};
use crate::address::{self, id};
use crate::hooks::{descriptors, epoll};
use crate::kinds::{self, Kind};
use crate::process::Shared;

#[test]
fn while_a_socket_begins_to_listen_other_threads_send_and_receive() {
    ask("listen");
}

#[test]
fn a_socket_listens_with_the_next_daemon_when_one_goes_meanwhile() {
    ask("leave");
}

#[test]
fn while_a_listener_ends_other_threads_send_and_receive() {
    ask("end");
}

#[test]
fn sockets_that_share_a_port_serve_as_long_as_one_of_them_does() {
    ask("share");
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

/// Has a socket listen while the worker and its daemon go: it is one of those that the next daemon is shown.
pub(super) fn listen_at_last() {
    assert_eq!(kinds::get(open_listener()), Kind::Listener);
}

/// A socket that listens at a port, which it shares.
fn listen_sharing(at: SocketAddr) -> c_int {
    let (name, length) = address::encode(at);
    let (on, size): (c_int, _) = (1, size_of::<c_int>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_REUSEPORT);
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    // SAFETY: a word and an address, with their lengths.
    unsafe {
        let fd = libc::socket(libc::AF_INET, kind, 0);
        assert_eq!(libc::setsockopt(fd, level, option, (&raw const on).cast(), size), 0);
        assert_eq!(libc::bind(fd, (&raw const name).cast(), length), 0);
        assert_eq!(libc::listen(fd, 8), 0);
        fd
    }
}

/// Two sockets that listen at the same port, so that the daemon need not hear of the end of one.
pub(super) fn open_two() -> c_int {
    let first = listen_sharing("127.0.0.1:0".parse().unwrap());
    listen_sharing(address::bound(first).unwrap().unwrap());
    first
}

/// Closes the first, about whose handshakes the worker is asked. Whoever waits for the state finds nothing there that it could have
/// the stack listen for.
pub(super) fn end(shared: &Shared, fd: c_int) {
    let is_closing = || shared.lock().is_changing(fd);
    thread::scope(|scope| {
        scope.spawn(|| {
            while kinds::get(fd) == Kind::Listener && !is_closing() {
                thread::yield_now();
            }
            let state = loop {
                let state = shared.lock();
                if !state.is_changing(fd) {
                    break state;
                }
                drop(state);
                thread::yield_now();
            };
            assert!(kinds::get(fd) == Kind::Kernel && address::bound(fd).is_err());
            drop(state);
        });
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { descriptors::close(fd) }, 0);
    });
    assert!(!shared.lock().sessions.has(id(fd)));
}

/// Looks for a connection, of which there is none.
fn accept(fd: c_int) {
    let nowhere = std::ptr::null_mut();
    // SAFETY: nobody asks for the peer's address.
    let accepted = unsafe { libc::accept4(fd, nowhere, std::ptr::null_mut(), 0) };
    assert_eq!(accepted, -1);
}

/// The first of two sockets serves before the second listens; that is watched for a while only.
pub(super) fn share() {
    let first = listen_sharing("127.0.0.1:0".parse().unwrap());
    accept(first);
    let second = listen_sharing(address::bound(first).unwrap().unwrap());
    // SAFETY: an event that lives until the calls return.
    unsafe {
        let instance = epoll::epoll_create1(0);
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        for operation in [libc::EPOLL_CTL_ADD, libc::EPOLL_CTL_DEL] {
            assert_eq!(epoll::epoll_ctl(instance, operation, second, &raw mut event), 0);
        }
    }
    // A listener is not told to rest more often than every 10 ms.
    thread::sleep(Duration::from_millis(30));
    accept(first);
}

/// The daemon's answers, until the process has ended; the last that it hears is that the port is served.
pub(super) fn answer(session: &Channel, steps: &Steps) {
    steps.wait_for("ready");
    steps.come_to("mute");
    steps.come_to("asked");
    let (end, mut weights) = (Instant::now() + Duration::from_secs(PATIENCE), Vec::new());
    while !session.is_closed() {
        assert!(Instant::now() < end, "the process does not end");
        let heard = session.receive_now::<Request>();
        if let Ok(Some(Received { message: Request::Listen(Listen { weight, .. }), .. })) = heard {
            weights.push(weight);
            session.send(&listening(), &[]).unwrap();
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(weights, [0, 1, 0, 1]);
}
