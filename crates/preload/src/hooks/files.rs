//! From and to files: `sendfile` and `splice`.

use std::ffi::{c_int, c_short, c_uint, c_ulong};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use host::Errno;
use libc::{off_t, size_t, ssize_t};

use super::data::receive_into;
use super::poll::poll_for;
use super::send::send;
use crate::internal::Hidden;
use crate::kinds::Kind;
use crate::{errno, memory, process, real};

/// Bytes that are read of a file at once.
const PIECE: usize = 64 * 1024;
/// What `splice` can be told (`SPLICE_F_ALL`).
const FLAGS: c_uint =
    libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MORE | libc::SPLICE_F_GIFT;

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
    // SAFETY: the caller's promise.
    errno::size(unsafe { send_file(out, input, offset, count) })
}

/// # Safety
/// As for `sendfile`.
unsafe fn send_file(
    out: c_int,
    input: c_int,
    offset: *mut off_t,
    count: usize,
) -> Result<usize, Errno> {
    if !offset.is_null() {
        memory::writable(offset, size_of::<off_t>())?;
    }
    // SAFETY: null, or an offset as the application says.
    let start = unsafe { offset.as_ref() }.copied();
    // Linux: a socket has no offset, and what can't be mapped can't be sent.
    match mode(input)? {
        libc::S_IFSOCK if start.is_some() => return Err(Errno(libc::ESPIPE)),
        libc::S_IFDIR | libc::S_IFSOCK => return Err(Errno::INVAL),
        _ => {}
    }
    // rw_verify_area
    if start.is_some_and(off_t::is_negative) || isize::try_from(count).is_err() {
        return Err(Errno::INVAL);
    }
    let moved = transfer(out, input, start, count)?;
    if let Some(start) = start {
        // SAFETY: as above.
        unsafe { offset.write(start + moved as off_t) };
    }
    Ok(moved)
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
        let read = unsafe { real::pread(input, target, piece, place) };
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
    // The kernel says what is wrong with flags that nobody knows.
    if ours == [false, false] || count == 0 || flags & !FLAGS != 0 {
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
    errno::size(if ours == [true, false] {
        from_session(input, out, count, flags)
    } else {
        into_session(input, out, count, flags)
    })
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
fn from_session(input: c_int, out: c_int, count: usize, flags: c_uint) -> Result<usize, Errno> {
    let room = await_room(out, flags)?;
    let mut buffer = vec![0_u8; PIECE.min(count).min(room)];
    let (target, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // Linux: `SPLICE_F_NONBLOCK` is about the pipe; whether the socket waits is its own affair (`tcp_splice_read`).
    // SAFETY: the bytes of the buffer.
    let seen = unsafe { receive_into(input, target, length, libc::MSG_PEEK)? }.bytes;
    // SAFETY: the bytes just read.
    let written = unsafe { real::write(out, target, seen) };
    let written = usize::try_from(written).map_err(|_| errno::get())?;
    if written > 0 {
        // SAFETY: no more bytes than the buffer has; they were in the session a moment ago.
        let _ = unsafe { receive_into(input, target, written, libc::MSG_DONTWAIT) };
    }
    Ok(written)
}

/// Waits for room in a pipe, unless the call or the pipe forbids it. Gives how many bytes the pipe takes without waiting for
/// whoever reads it, which may be this thread.
///
/// # Errors
/// `EPIPE`, with its signal, when nobody reads it: whatever the socket has (`wait_for_space`). `EBADF`: it is an end to read
/// from. `EAGAIN`, `EINTR`.
fn await_room(pipe: c_int, flags: c_uint) -> Result<usize, Errno> {
    // SAFETY: no memory is involved.
    let mode = errno::of(unsafe { real::fcntl(pipe, libc::F_GETFL, 0) })?;
    if mode & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(Errno::BADF);
    }
    let mut file = libc::pollfd { fd: pipe, events: libc::POLLOUT, revents: 0 };
    let mut wait = |time| -> Result<c_short, Errno> {
        // SAFETY: one file.
        errno::of(unsafe { poll_for(&raw mut file, 1, time) })?;
        Ok(file.revents)
    };
    let mut ready = wait(0)?;
    let waits = flags & libc::SPLICE_F_NONBLOCK == 0 && mode & libc::O_NONBLOCK == 0;
    if ready == 0 && waits {
        ready = wait(-1)?;
    }
    if ready & libc::POLLERR != 0 {
        // SAFETY: the signal goes to this thread.
        unsafe { libc::raise(libc::SIGPIPE) };
        return Err(Errno::PIPE);
    }
    if ready == 0 {
        return Err(Errno::AGAIN);
    }
    let mut held: c_int = 0;
    // SAFETY: a word to write to.
    let asked = unsafe { real::ioctl(pipe, libc::FIONREAD as c_ulong, (&raw mut held).cast()) };
    if asked == 0 && held == 0 {
        // SAFETY: no memory is involved.
        let all = errno::of(unsafe { real::fcntl(pipe, libc::F_GETPIPE_SZ, 0) })?;
        return Ok(all.unsigned_abs() as usize);
    }
    // As much as fits for certain where anything does (`poll(2)`).
    Ok(libc::PIPE_BUF)
}

/// Only what the session takes is taken out of the pipe: what it sends is a copy.
fn into_session(input: c_int, out: c_int, count: usize, flags: c_uint) -> Result<usize, Errno> {
    let [copied, copy] = pipe()?;
    let flags = flags & libc::SPLICE_F_NONBLOCK;
    // Waits for data as `splice` does.
    // SAFETY: no memory is involved.
    let seen = unsafe { real::tee(input, copy.as_raw_fd(), PIECE.min(count), flags) };
    let seen = usize::try_from(seen).map_err(|_| errno::get())?;
    if seen == 0 {
        return Ok(0);
    }
    let mut buffer = vec![0_u8; seen];
    // SAFETY: the bytes of the buffer.
    let read = unsafe { real::read(copied.as_raw_fd(), buffer.as_mut_ptr().cast(), seen) };
    let read = usize::try_from(read).map_err(|_| errno::get())?;
    let data = buffer.get(..read).unwrap_or_default();
    let sent = send(out, &mut [std::io::IoSlice::new(data)], 0, None)?;
    // SAFETY: no more bytes than the buffer has; they were in the pipe a moment ago.
    unsafe { real::read(input, buffer.as_mut_ptr().cast(), sent) };
    Ok(sent)
}

/// A pipe of this library's own: the end to read from, and the one to write to.
fn pipe() -> Result<[Hidden; 2], Errno> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    errno::of(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: just made, and nobody else knows them.
    Ok(ends.map(|end| Hidden::of(unsafe { OwnedFd::from_raw_fd(end) })))
}
