//! Making sockets, and connecting them.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use host::{Errno, How, Id, Mask};
use libc::{sockaddr, socklen_t};
use shm::session::Routed;

use super::datagrams;
use crate::clock;
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::signals;
use crate::sleeping::{wait_for, wait_ready};
use crate::sockets::Sockets;
use crate::state::{Place, State, status_flags, word};
use crate::waiting::World;
use crate::{address, errno, real};

/// `socket(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: no memory is involved.
    let fd = unsafe { real::socket(domain, kind, protocol) };
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

/// `bind(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
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
    let known = process::attached().is_some_and(|shared| {
        let state = shared.lock();
        state.attachment.link.addresses().contains(&local.ip().to_canonical())
    });
    if known {
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
    let kind = process::kind(fd);
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
        let mut state = shared.lock();
        state.backlog = backlog;
        // Where the stack can't, the kernel listens nevertheless.
        let _ = state.listen(fd, backlog);
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

/// `accept(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(fd, from, length, 0) }
}

/// `accept4(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    if kind == Kind::Session {
        errno::set(Errno::INVAL);
        return -1;
    }
    let ours = kind == Kind::Listener || (kind == Kind::Kernel && is_listening(fd));
    let Some(shared) = ours.then(process::attached).flatten() else {
        // SAFETY: the caller's promise.
        let new = unsafe { real::accept4(fd, from, length, flags) };
        return kernels(new);
    };
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        errno::set(Errno::INVAL);
        return -1;
    }
    let accepted = take(shared, fd, flags);
    match accepted {
        Ok(Taken::Session(new, remote)) => {
            // SAFETY: the caller's promise.
            match unsafe { address::write(remote, from, length) } {
                Ok(()) => new,
                Err(error) => {
                    shared.lock().close_session(new);
                    errno::set(error);
                    -1
                }
            }
        }
        // SAFETY: the caller's promise.
        Ok(Taken::Kernels) => kernels(unsafe { real::accept4(fd, from, length, flags) }),
        Err(error) => {
            errno::set(error);
            -1
        }
    }
}

/// A connection of the kernel's.
fn kernels(fd: c_int) -> c_int {
    if fd >= 0 {
        kinds::set(fd, Kind::Kernel);
    }
    fd
}

/// Where a connection comes from.
enum Taken {
    Session(c_int, SocketAddr),
    Kernels,
}

/// A connection of the stack's; else it is the kernel's turn.
fn take(shared: &Shared, listener: c_int, flags: c_int) -> Result<Taken, Errno> {
    let mut state = shared.lock();
    if state.adopt(listener).is_err() {
        return Ok(Taken::Kernels);
    }
    state.serve(listener);
    let nonblocking = state.is_nonblocking(listener);
    let alarm = state.timeouts(listener).0;
    loop {
        match state.accept(listener, flags) {
            Ok((new, remote)) => return Ok(Taken::Session(new, remote)),
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if nonblocking {
            // It has the last word.
            return Ok(Taken::Kernels);
        }
        let file = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
        let mut files = vec![file];
        let waiter = state.waiters.take();
        let _ = state.watch(waiter, listener, Mask::IN);
        let mask = std::ptr::null();
        let (after, waited) = wait_for(shared, state, waiter, (&mut files, mask), alarm, |state| {
            state.is_ready(listener, Mask::IN)
        });
        state = after;
        state.unwatch(waiter, listener);
        let found = match waited {
            Err(Errno::INTR) if alarm.is_never() && signals::restart() => continue,
            waited => waited?,
        };
        if files.iter().any(|file| file.revents != 0) {
            return Ok(Taken::Kernels);
        }
        if !found {
            return Err(Errno::AGAIN);
        }
    }
}

/// `connect(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    if kind == Kind::Datagrams {
        // SAFETY: the caller's promise.
        if let Some(done) = unsafe { datagrams::connect(fd, to, length) } {
            return errno::int(done.map(|()| 0));
        }
        // SAFETY: the caller's promise.
        let done = unsafe { real::connect(fd, to, length) };
        if done == 0 {
            datagrams::connected(fd);
        }
        return done;
    }
    if !matches!(kind, Kind::Fresh | Kind::Session) {
        // SAFETY: the caller's promise.
        return unsafe { real::connect(fd, to, length) };
    }
    // SAFETY: the caller's promise.
    let remote = match unsafe { address::read(to, length) } {
        Ok(Some(remote)) => remote,
        Ok(None) if kind == Kind::Session => {
            let result = process::current().map_or(Err(Errno::BADF), |shared| {
                let mut state = shared.lock();
                let id = state.id_of(fd);
                state.sessions.disconnect(id)?;
                state.turn();
                Ok(0)
            });
            return errno::int(result);
        }
        Err(error) if kind == Kind::Session && !to.is_null() => {
            errno::set(error);
            return -1;
        }
        // SAFETY: the caller's promise.
        _ => return unsafe { real::connect(fd, to, length) },
    };
    let ours = kind == Kind::Session || !address::is_the_hosts(remote.ip());
    let Some(shared) = ours.then(process::attached).flatten() else {
        kinds::touch(fd);
        // SAFETY: the caller's promise.
        return unsafe { real::connect(fd, to, length) };
    };
    let mut state = shared.lock();
    let source = match state.route(SocketAddr::new(remote.ip().to_canonical(), remote.port())) {
        Routed::Millrace { source, .. } if kind == Kind::Session || state.can_leave_from(fd) => {
            source
        }
        _ if kind == Kind::Session => {
            errno::set(Errno::NETUNREACH);
            return -1;
        }
        _ => {
            drop(state);
            kinds::touch(fd);
            // SAFETY: the caller's promise.
            return unsafe { real::connect(fd, to, length) };
        }
    };
    if kind == Kind::Fresh {
        if let Err(error) = state.open_like_kernels(fd).and_then(|()| state.keep_name(fd)) {
            state.close_unborn(fd);
            errno::set(error);
            return -1;
        }
        let place = Place { flags: status_flags(fd), ..Place::default() };
        state.occupy(fd, place);
        state.take_over_watches(fd);
    }
    let begun = begin(&mut state, fd, source, remote);
    state.turn();
    let result = match begun {
        Err(Errno::INPROGRESS) if !state.is_nonblocking(fd) => {
            established(shared, state, fd, (source, remote))
        }
        other => other,
    };
    errno::int(result.map(|()| 0))
}

fn begin(state: &mut State, fd: c_int, source: IpAddr, remote: SocketAddr) -> Result<(), Errno> {
    let id = state.id_of(fd);
    loop {
        match state.sessions.connect(id, clock::now(), source, remote) {
            // The ports that it has are used up towards there.
            Err(Errno::ADDRNOTAVAIL) if state.lease() => {}
            Err(Errno::INPROGRESS) => {
                if let Some(path) = state.path_to(remote) {
                    state.sessions.take_path(id, path);
                }
                return Err(Errno::INPROGRESS);
            }
            other => return other,
        }
    }
}

/// Waits until a connection is established, or has failed.
fn established(
    shared: &Shared,
    state: Held<'_>,
    fd: c_int,
    (source, remote): (IpAddr, SocketAddr),
) -> Result<(), Errno> {
    let alarm = state.timeouts(fd).1;
    let (mut state, waited) = wait_ready(shared, state, fd, Mask::OUT, alarm)?;
    match waited {
        Err(error) => Err(error),
        // Its time-out is over: it goes on by itself.
        Ok(false) => Err(Errno::INPROGRESS),
        // How it ended.
        Ok(true) => begin(&mut state, fd, source, remote),
    }
}

/// `shutdown(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    let shared = match process::current() {
        Some(shared) if matches!(kind, Kind::Session | Kind::Listener | Kind::Datagrams) => shared,
        // SAFETY: no memory is involved.
        _ => return unsafe { real::shutdown(fd, how) },
    };
    let how = match how {
        libc::SHUT_RD => How::Read,
        libc::SHUT_WR => How::Write,
        libc::SHUT_RDWR => How::Both,
        _ => {
            errno::set(Errno::INVAL);
            return -1;
        }
    };
    let mut state = shared.lock();
    let id = state.id_of(fd);
    let done = state.sessions.shutdown(id, how);
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

/// Whether the stack alone knows a socket's addresses.
fn has_session_only(shared: &Shared, fd: c_int) -> bool {
    match process::kind(fd) {
        Kind::Session => true,
        Kind::Datagrams => shared.lock().peer_world(fd) == Some(World::Millrace),
        _ => false,
    }
}

/// One of a socket's two addresses: of a session `ours`, else what the kernel says.
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
    let shared = match process::current() {
        Some(shared) if has_session_only(shared, fd) => shared,
        // SAFETY: the caller's promise.
        _ => return unsafe { kernels(fd, target, length) },
    };
    let mut state = shared.lock();
    // Its peer may have gone.
    state.run();
    let id = state.id_of(fd);
    errno::int(ours(&mut state.sessions, id).and_then(|name| {
        if target.is_null() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the caller's promise.
        unsafe { address::write(name, target, length) }.map(|()| 0)
    }))
}
