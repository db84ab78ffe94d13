//! Making sockets, their addresses, and their end.

use std::ffi::c_int;
use std::net::SocketAddr;

use host::{Errno, How, Id};
use libc::{sockaddr, socklen_t};

use super::datagrams;
use crate::asking::change;
use crate::call::Call;
use crate::kinds::{self, Kind};
use crate::sockets::Sockets;
use crate::state::{listen_at, word};
use crate::waiting::World;
use crate::{address, errno, inherited, process, real, routes};

mod accept;
mod connect;

pub use accept::{accept, accept4};
pub use connect::connect;
pub(super) use connect::open_first;

/// `socket(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: no memory is involved.
    let fd = process::undisturbed(|| unsafe { real::socket(domain, kind, protocol) });
    let is_ip = matches!(domain, libc::AF_INET | libc::AF_INET6);
    if fd >= 0 {
        let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
        let kind = match (kind, protocol) {
            _ if !is_ip => Kind::Kernel,
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => Kind::Fresh,
            (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Kind::Datagrams,
            _ => Kind::Kernel,
        };
        kinds::set(fd, kind);
        if kind == Kind::Fresh {
            kinds::set_untouched(fd, domain == libc::AF_INET6);
            if let Some(shared) = process::current() {
                shared.lock().forget_early(fd);
            }
        }
    }
    fd
}

/// What `fd` is to a call that binds it: a connection that was dissolved is the kernel's socket again.
fn kind_to_bind(fd: c_int) -> Kind {
    let kind = process::kind(fd);
    let dissolves = kind == Kind::Session
        && process::current().is_some_and(|shared| shared.lock().dissolve(fd));
    if dissolves { Kind::Fresh } else { kind }
}

/// `bind(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = kind_to_bind(fd);
    match kind {
        Kind::Session | Kind::Listener => {
            errno::set(Errno::INVAL);
            return -1;
        }
        Kind::Fresh | Kind::Datagrams => kinds::touch(fd),
        // SAFETY: the caller's promise.
        _ => return unsafe { real::bind(fd, at, length) },
    }
    // SAFETY: the caller's promise.
    let done = unsafe { bind_by_kernel(fd, at, length) };
    if done == 0 && kind == Kind::Datagrams {
        datagrams::bound(fd);
    }
    done
}

/// # Safety
/// As for `bind`.
unsafe fn bind_by_kernel(fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { real::bind(fd, at, length) };
    if done == 0 || errno::get() != Errno::ADDRNOTAVAIL {
        return done;
    }
    // An address that the router has and the kernel has not.
    // SAFETY: the caller's promise.
    let Ok(Some(local)) = (unsafe { address::read(at, length) }) else {
        errno::set(Errno::ADDRNOTAVAIL);
        return -1;
    };
    let ip = local.ip().to_canonical();
    if process::attached().is_some_and(|shared| routes::has_address(shared, shared.lock(), ip).1) {
        let (level, name) = match local {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_FREEBIND),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, IPV6_FREEBIND),
        };
        let on: c_int = 1;
        // SAFETY: a word, and its length.
        unsafe { real::setsockopt(fd, level, name, (&raw const on).cast(), 4) };
        // SAFETY: the caller's promise.
        return unsafe { real::bind(fd, at, length) };
    }
    errno::set(Errno::ADDRNOTAVAIL);
    -1
}

/// `IPV6_FREEBIND` (`uapi/linux/in6.h`), which crate `libc` has not for every C library.
const IPV6_FREEBIND: c_int = 78;

/// `listen(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = kind_to_bind(fd);
    if kind == Kind::Session {
        errno::set(Errno::INVAL);
        return -1;
    }
    // SAFETY: no memory is involved.
    let done = unsafe { real::listen(fd, backlog) };
    if done < 0 || !(matches!(kind, Kind::Fresh | Kind::Listener) || is_listening(fd)) {
        return done;
    }
    if let Some(shared) = process::attached() {
        let state = shared.lock().await_others(shared, fd);
        let steps = |state| listen_at(state, fd);
        let (mut state, listened) = change(shared, state, (fd, kinds::get(fd)), steps);
        // Where the stack can't, the kernel listens nevertheless.
        if listened == Some(Ok(())) {
            state.share_watches(fd);
            if state.waiters.is_watched(state.id_of(fd)) {
                // Another thread has begun to wait for connections meanwhile.
                state.serve(fd);
            }
        }
        drop(state.tell(shared));
    }
    done
}

/// Whether `fd` is a TCP socket of the kernel's that listens: one that was inherited.
pub(super) fn is_listening(fd: c_int) -> bool {
    let domain = || word(fd, libc::SOL_SOCKET, libc::SO_DOMAIN);
    word(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Some(1)
        && matches!(domain(), Some(libc::AF_INET | libc::AF_INET6))
}

/// What a descriptor is of which nothing is known: one that another program has opened.
pub(super) fn inherited(fd: c_int) -> Kind {
    let socket = |name| word(fd, libc::SOL_SOCKET, name);
    let listens = match socket(libc::SO_ACCEPTCONN) {
        None => return Kind::Kernel,
        Some(listens) => listens == 1,
    };
    if !matches!(socket(libc::SO_DOMAIN), Some(libc::AF_INET | libc::AF_INET6)) {
        return Kind::Kernel;
    }
    if listens {
        return Kind::Listener;
    }
    if socket(libc::SO_PROTOCOL) == Some(libc::IPPROTO_UDP) {
        kinds::set(fd, Kind::Datagrams);
        return Kind::Datagrams;
    }
    Kind::Kernel
}

/// Before a call that waits: sockets among its files that the program was started with, as systemd passes them, become known.
pub(super) fn meet_inherited<I: Iterator<Item = c_int>>(files: impl FnOnce() -> I) {
    if !inherited::has_unknown() {
        return;
    }
    for fd in files().filter(|fd| inherited::take_unknown(*fd)) {
        let kind = if kinds::get(fd) == Kind::Kernel { inherited(fd) } else { Kind::Kernel };
        if kind != Kind::Kernel {
            kinds::set(fd, kind);
            let _ = process::attached();
        }
    }
}

/// `shutdown(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    let shared = process::current()
        .filter(|_| matches!(kind, Kind::Session | Kind::Listener | Kind::Datagrams));
    let how = match how {
        libc::SHUT_RD => How::Read,
        libc::SHUT_WR => How::Write,
        libc::SHUT_RDWR => How::Both,
        _ if shared.is_some() => {
            errno::set(Errno::INVAL);
            return -1;
        }
        // SAFETY: no memory is involved.
        _ => return unsafe { real::shutdown(fd, how) },
    };
    let Some(shared) = shared else {
        kinds::shut(fd, how);
        // SAFETY: no memory is involved.
        return unsafe { real::shutdown(fd, how as c_int) };
    };
    let call = Call::new(shared);
    let state = shared.lock().await_others(shared, fd);
    let id = state.id_of(fd);
    let (mut state, done) = call.ask(state, fd, |sessions| sessions.shutdown(id, how));
    state.turn();
    let both = kind == Kind::Datagrams && state.peer_world(fd) != Some(World::Millrace);
    if kind == Kind::Listener || both {
        // SAFETY: no memory is involved.
        return unsafe { real::shutdown(fd, how as c_int) };
    }
    errno::int(done.map(|()| 0))
}

/// `getsockname(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(
    fd: c_int,
    target: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { say(fd, (target, length), Sockets::name, real::getsockname) };
    // Who has inherited a listener, or was passed one, asks for its address: this process may have it for those that it forks.
    if done == 0 && process::known(fd) == Kind::Kernel && is_listening(fd) {
        kinds::set(fd, Kind::Listener);
    }
    done
}

/// `getpeername(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    fd: c_int,
    target: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { say(fd, (target, length), Sockets::peer, real::getpeername) }
}

/// One of a socket's two addresses: `ours` where the stack alone knows them, else what the kernel says.
///
/// # Safety
/// As for [`address::write`].
unsafe fn say(
    fd: c_int,
    (target, length): (*mut sockaddr, *mut socklen_t),
    ours: fn(&mut Sockets, Id) -> Result<SocketAddr, Errno>,
    kernels: unsafe fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int,
) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    let shared = match process::current() {
        Some(shared) if matches!(kind, Kind::Session | Kind::Datagrams) => shared,
        // SAFETY: the caller's promise.
        _ => return unsafe { kernels(fd, target, length) },
    };
    let call = Call::new(shared);
    let mut state = shared.lock().await_others(shared, fd);
    if kind == Kind::Datagrams && state.peer_world(fd) != Some(World::Millrace) {
        drop(state);
        // SAFETY: the caller's promise.
        return unsafe { kernels(fd, target, length) };
    }
    // Its peer may have gone.
    state.run();
    let id = state.id_of(fd);
    let (state, name) = call.ask(state, fd, |sessions| ours(sessions, id));
    drop(state);
    errno::int(name.and_then(|name| {
        if target.is_null() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the caller's promise.
        unsafe { address::write(name, target, length) }.map(|()| 0)
    }))
}
