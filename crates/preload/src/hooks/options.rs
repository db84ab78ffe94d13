//! Socket options.

use std::ffi::{c_int, c_void};
use std::slice;

use host::{Errno, Mask};
use libc::socklen_t;

use crate::call::Call;
use crate::kinds::{self, Kind};
use crate::state::{State, decides};
use crate::waiting::World;
use crate::{errno, memory, process, real};

mod refused;

/// Longest value of an option that is looked at: bytes.
const LONGEST: u32 = 4096;
/// What a value that is not there stands for at `IPPROTO_IPV6` (`do_ipv6_setsockopt`).
static ZEROS: [u8; LONGEST as usize] = [0; LONGEST as usize];

/// Whether the kernel looks at lengths and pointers before names. It doesn't at `IPPROTO_IPV6`, and at levels that streams lack.
fn looks_first(level: c_int) -> bool {
    matches!(level, libc::SOL_SOCKET | libc::IPPROTO_TCP | libc::IPPROTO_IP)
}

/// `setsockopt(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    kinds::touch(fd);
    let shared = match process::current() {
        Some(shared) if matches!(kind, Kind::Session | Kind::Listener | Kind::Datagrams) => shared,
        // SAFETY: the caller's promise.
        _ => return unsafe { set_kernels((fd, kind), level, name, value, length) },
    };
    if kind != Kind::Session {
        // What connects by the kernel has it too, and a forked process finds it there.
        // SAFETY: the caller's promise.
        let done = unsafe { set_kernels((fd, kind), level, name, value, length) };
        if done < 0 {
            return done;
        }
        if decides(level, name) {
            shared.lock().await_others(shared, fd).decide(fd, kind);
            return done;
        }
    }
    if i32::try_from(length).is_err() {
        errno::set(Errno::INVAL);
        return -1;
    }
    if !value.is_null() && memory::readable(value, length as usize).is_err() {
        errno::set(Errno::FAULT);
        return -1;
    }
    if value.is_null() && length > 0 && kind == Kind::Session && looks_first(level) {
        errno::set(Errno::FAULT);
        return -1;
    }
    let count = length.min(LONGEST) as usize;
    let value = if value.is_null() {
        let zeros = if level == libc::IPPROTO_IPV6 { count } else { 0 };
        ZEROS.get(..zeros).unwrap_or(&[])
    } else {
        // SAFETY: so many bytes, as the application says.
        unsafe { slice::from_raw_parts(value.cast::<u8>(), count) }
    };
    let call = Call::new(shared);
    let state = shared.lock().await_others(shared, fd);
    let id = state.id_of(fd);
    let (mut state, done) =
        call.ask(state, fd, |sessions| sessions.set_option(id, level, name, value));
    state.settle();
    match kind {
        // The kernel has said yes: it keeps hints, and does what is only its own, as multicast.
        Kind::Listener | Kind::Datagrams => 0,
        _ => errno::int(done.map(|()| 0)),
    }
}

/// Sets an option of the kernel's socket, unless it is refused.
///
/// # Safety
/// As for `setsockopt`.
unsafe fn set_kernels(
    (fd, kind): (c_int, Kind),
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    if let Some(refused) = unsafe { refused::why((fd, kind), (level, name), value, length) } {
        errno::set(refused);
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { real::setsockopt(fd, level, name, value, length) }
}

/// Whether the stack says what an option is like: of a UDP socket, whose options the kernel keeps, only what happened to it.
fn says(state: &mut State, (fd, kind): (c_int, Kind), (level, name): (c_int, c_int)) -> bool {
    if kind == Kind::Session {
        return true;
    }
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let has_failed = state.is_ready(fd, Mask::ERR);
            has_failed && state.peer_world(fd) != Some(World::Kernel)
        }
        (libc::IPPROTO_IP, libc::IP_MTU)
        | (libc::IPPROTO_IPV6, libc::IPV6_MTU | libc::IPV6_PATHMTU) => {
            state.peer_world(fd) == Some(World::Millrace)
        }
        _ => false,
    }
}

/// `getsockopt(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    let kind = process::kind(fd);
    let shared = match process::current() {
        Some(shared) if matches!(kind, Kind::Session | Kind::Datagrams) => shared,
        // SAFETY: the caller's promise.
        _ => return unsafe { real::getsockopt(fd, level, name, value, length) },
    };
    let call = Call::new(shared);
    let mut state = shared.lock().await_others(shared, fd);
    if !says(&mut state, (fd, kind), (level, name)) {
        drop(state);
        // SAFETY: the caller's promise.
        return unsafe { real::getsockopt(fd, level, name, value, length) };
    }
    if memory::writable(length, 1).is_err() || memory::writable(value, 1).is_err() {
        errno::set(Errno::FAULT);
        return -1;
    }
    // SAFETY: a length, as the application says.
    let room = unsafe { length.read() };
    if i32::try_from(room).is_err() && looks_first(level) {
        errno::set(Errno::INVAL);
        return -1;
    }
    let room = room as usize;
    let id = state.id_of(fd);
    // An error may have come.
    state.run();
    let (state, got) = call.ask(state, fd, |sessions| sessions.option(id, level, name, room));
    drop(state);
    errno::int(got.map(|got| {
        let bytes: &[u8] = &got;
        let count = bytes.len().min(room);
        // SAFETY: no more than there is room for.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast::<u8>(), count);
            length.write(count as socklen_t);
        }
        0
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{descriptors, sockets};

    #[test]
    fn signatures_that_the_stack_does_not_make_are_refused() {
        // A `struct tcp_md5sig`: the peer's address, the key's length, and the key.
        let mut key = [0_u8; 216];
        key[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        key[4..8].copy_from_slice(&[192, 0, 2, 1]);
        key[130..132].copy_from_slice(&4_u16.to_ne_bytes());
        key[136..140].copy_from_slice(b"word");
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_MD5SIG);
        let length = key.len() as socklen_t;
        // SAFETY: as many bytes as are said.
        let (fd, done, error) = unsafe {
            let fd = sockets::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
            let done = setsockopt(fd, level, name, key.as_ptr().cast(), length);
            (fd, done, errno::get())
        };
        assert_eq!((done, error), (-1, Errno::NOPROTOOPT));
        // A key without bytes takes the address's key away.
        key[130..132].fill(0);
        // SAFETY: as above.
        let taken_away = unsafe {
            let taken_away = real::setsockopt(fd, level, name, key.as_ptr().cast(), length);
            descriptors::close(fd);
            taken_away
        };
        assert_eq!(taken_away, -1, "the kernel's socket has no key either");
    }
}
