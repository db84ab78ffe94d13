//! From and to files: `sendfile` and `splice`.

use std::ffi::{c_int, c_uint};

use host::Errno;
use libc::{iovec, off_t, size_t, ssize_t};

use super::send::send;
use crate::kinds::Kind;
use crate::{errno, process, real};

/// Bytes that are read of a file at once.
const PIECE: usize = 64 * 1024;

/// `sendfile(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    out: c_int,
    input: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    if process::kind(out) != Kind::Session {
        // SAFETY: the caller's promise.
        return unsafe { real::sendfile(out, input, offset, count) };
    }
    let refused = match mode(input) {
        Err(error) => Some(error),
        // Linux: what can't be mapped can't be sent.
        Ok(libc::S_IFDIR | libc::S_IFSOCK) => Some(Errno::INVAL),
        Ok(_) => None,
    };
    if let Some(error) = refused {
        errno::set(error);
        return -1;
    }
    // SAFETY: null, or an offset as the application says.
    let start = unsafe { offset.as_ref() }.copied();
    let moved = transfer(out, input, start, count);
    if let (Ok(moved), Some(start)) = (&moved, start) {
        // SAFETY: as above.
        unsafe { offset.write(start + *moved as off_t) };
    }
    errno::size(moved)
}

/// `sendfile(2)`, as programs with large files call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    out: c_int,
    input: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { sendfile(out, input, offset, count) }
}

/// Sends of a file from `start` on, or from where it is, which moves.
fn transfer(out: c_int, input: c_int, start: Option<off_t>, count: usize) -> Result<usize, Errno> {
    let mut buffer = vec![0_u8; PIECE.min(count)];
    let mut moved = 0;
    while moved < count {
        let piece = buffer.len().min(count - moved);
        let place = match start {
            Some(start) => start + moved as off_t,
            // SAFETY: no memory is involved.
            None => unsafe { libc::lseek(input, 0, libc::SEEK_CUR) },
        };
        let target = buffer.as_mut_ptr().cast();
        // SAFETY: room for so many bytes.
        let read = unsafe { libc::pread(input, target, piece, place) };
        let Ok(read) = usize::try_from(read) else {
            return if moved > 0 { Ok(moved) } else { Err(errno::get()) };
        };
        let Some(data) = buffer.get(..read).filter(|data| !data.is_empty()) else { break };
        let sent = match send(out, &mut [std::io::IoSlice::new(data)], 0, None) {
            Ok(sent) => sent,
            Err(_) if moved > 0 => break,
            Err(error) => return Err(error),
        };
        moved += sent;
        if start.is_none() {
            // SAFETY: no memory is involved.
            unsafe { libc::lseek(input, place + sent as off_t, libc::SEEK_SET) };
        }
        if sent < read {
            break;
        }
    }
    Ok(moved)
}

/// `splice(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    input: c_int,
    input_offset: *mut i64,
    out: c_int,
    out_offset: *mut i64,
    count: size_t,
    flags: c_uint,
) -> ssize_t {
    let ours = [input, out].map(|fd| process::kind(fd) == Kind::Session);
    if ours == [false, false] {
        // SAFETY: the caller's promise.
        return unsafe { real::splice(input, input_offset, out, out_offset, count, flags) };
    }
    let (session_offset, pipe_offset, pipe) = if ours == [true, false] {
        (input_offset, out_offset, out)
    } else {
        (out_offset, input_offset, input)
    };
    let wrong = match mode(pipe) {
        Err(error) => Some(error),
        Ok(libc::S_IFIFO) if !pipe_offset.is_null() => Some(Errno(libc::ESPIPE)),
        Ok(libc::S_IFIFO) if session_offset.is_null() => None,
        Ok(_) => Some(Errno::INVAL),
    };
    if let Some(error) = wrong {
        errno::set(error);
        return -1;
    }
    let mut waiting = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
    let gentle = flags & libc::SPLICE_F_NONBLOCK != 0;
    // SAFETY: one file, and no time.
    if gentle && pipe == input && unsafe { super::poll::poll(&raw mut waiting, 1, 0) } == 0 {
        errno::set(Errno::AGAIN);
        return -1;
    }
    let mut buffer = vec![0_u8; PIECE.min(count)];
    let piece = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let moved = if ours == [true, false] {
        from_session(input, out, &piece, if gentle { libc::MSG_DONTWAIT } else { 0 })
    } else {
        // SAFETY: the bytes of the buffer.
        let read = unsafe { super::data::read(input, piece.iov_base, piece.iov_len) };
        match usize::try_from(read) {
            Ok(read) => {
                let data = buffer.get(..read).unwrap_or_default();
                send(out, &mut [std::io::IoSlice::new(data)], 0, None)
            }
            Err(_) => Err(errno::get()),
        }
    };
    errno::size(moved)
}

/// What kind of file a descriptor is of.
fn mode(fd: c_int) -> Result<libc::mode_t, Errno> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for the answer.
    errno::of(unsafe { libc::fstat(fd, found.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded.
    Ok(unsafe { found.assume_init() }.st_mode & libc::S_IFMT)
}

/// Only what the pipe takes is taken out of the session.
fn from_session(input: c_int, out: c_int, piece: &iovec, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: the bytes of the caller's buffer.
    let seen =
        unsafe { super::data::recv(input, piece.iov_base, piece.iov_len, flags | libc::MSG_PEEK) };
    let seen = usize::try_from(seen).map_err(|_| errno::get())?;
    // SAFETY: the bytes just read.
    let written = unsafe { real::write(out, piece.iov_base, seen) };
    let written = usize::try_from(written).map_err(|_| errno::get())?;
    if written > 0 {
        // SAFETY: nothing is written anywhere: bytes are taken without being copied.
        unsafe { super::data::recv(input, piece.iov_base, written, libc::MSG_DONTWAIT) };
    }
    Ok(written)
}
