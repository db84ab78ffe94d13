//! UDP sockets that are connected, or sent from, while the worker does not answer: who wants something of the same socket waits, too.

use std::ffi::c_int;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use super::{Steps, ask};
use crate::address::{self, id};
use crate::errno;
use crate::hooks::descriptors;
use crate::process::Shared;
use crate::state::open_datagrams;
use crate::waiting::World;

#[test]
fn while_a_udp_socket_is_connected_and_closed_other_threads_send_and_receive() {
    ask("udp-close");
}

#[test]
fn while_two_threads_connect_a_udp_socket_others_send_and_receive() {
    ask("udp-connect");
}

#[test]
fn while_a_udp_socket_gets_a_peer_other_threads_send_and_receive() {
    ask("udp-peer");
}

#[test]
fn while_a_udp_socket_gets_a_port_other_threads_send_and_receive() {
    ask("udp-send");
}

/// Another host, encoded. The way there is known from now on.
fn remote(shared: &Shared) -> (libc::sockaddr_storage, libc::socklen_t) {
    let remote: SocketAddr = "192.0.2.9:9".parse().unwrap();
    shared.lock().came_from(remote, [192, 0, 2, 1].into());
    address::encode(remote)
}

/// What is done with a UDP socket, about which the worker is asked.
pub(super) fn act(shared: &'static Shared, call: &str, steps: &Steps) -> Box<dyn FnOnce() + Send> {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) };
    if matches!(call, "udp-peer" | "udp-send") {
        assert_eq!(open_datagrams(&mut *shared.lock(), fd).1, Ok(()));
    }
    let steps = steps.clone();
    match call {
        "udp-close" => Box::new(move || connect_and_close(shared, fd, &steps)),
        "udp-connect" => Box::new(move || connect_twice(shared, fd, &steps)),
        "udp-peer" => Box::new(move || connect_and_look(shared, fd, &steps)),
        _ => Box::new(move || send(shared, fd)),
    }
}

fn connect(shared: &Shared, fd: c_int) {
    let (name, length) = remote(shared);
    // SAFETY: an address, with its length.
    let done = unsafe { libc::connect(fd, (&raw const name).cast(), length) };
    assert_eq!(done, 0, "{:?}", errno::get());
    let peer = shared.lock().peer_world(fd);
    assert!(peer.is_none_or(|peer| peer == World::Millrace), "the kernel has connected it");
}

/// Another thread looks at its address as soon as the worker has been asked to connect it, and is told the one that it has then.
fn connect_and_look(shared: &Shared, fd: c_int, steps: &Steps) {
    thread::scope(|scope| {
        scope.spawn(|| {
            steps.wait_for("asked");
            let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            // SAFETY: room for every kind of address, and what was written there.
            let name = unsafe {
                let mut name: libc::sockaddr_storage = std::mem::zeroed();
                let target = (&raw mut name).cast();
                assert_eq!(libc::getsockname(fd, target, &raw mut length), 0);
                address::read(target, length)
            };
            let ip = name.unwrap().map(|name| name.ip());
            assert_eq!(ip, Some(Ipv4Addr::new(192, 0, 2, 1).into()));
        });
        connect(shared, fd);
    });
}

fn close(fd: c_int) {
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { descriptors::close(fd) }, 0);
}

/// Another thread closes it as soon as the worker has been asked to open it.
fn connect_and_close(shared: &Shared, fd: c_int, steps: &Steps) {
    thread::scope(|scope| {
        scope.spawn(|| {
            steps.wait_for("asked");
            close(fd);
        });
        connect(shared, fd);
    });
    assert!(!shared.lock().sessions.has(id(fd)));
}

/// Another thread connects it, too.
fn connect_twice(shared: &Shared, fd: c_int, steps: &Steps) {
    thread::scope(|scope| {
        scope.spawn(|| {
            steps.wait_for("asked");
            connect(shared, fd);
        });
        connect(shared, fd);
    });
    assert_eq!(shared.lock().peer_world(fd), Some(World::Millrace));
    close(fd);
}

/// Sends to the other host, and so from a port.
fn send(shared: &Shared, fd: c_int) {
    let (name, length) = remote(shared);
    let target = (&raw const name).cast();
    // SAFETY: a byte, and an address, with its length.
    let sent = unsafe { libc::sendto(fd, [7_u8].as_ptr().cast(), 1, 0, target, length) };
    assert_eq!(sent, 1, "{:?}", errno::get());
    let leased = shared.lock().sessions.name(id(fd)).map(|name| name.port());
    let bound = address::bound(fd).map(|name| name.map(|name| name.port()));
    assert_eq!(bound, leased.map(Some), "the kernel's half has another port");
    close(fd);
}
