//! `struct iovec` as slices.

use std::ffi::{c_int, c_void};

use host::Errno;
use libc::iovec;

use crate::memory;

/// Pieces of one call at most (`UIO_MAXIOV`).
const MOST: usize = 1024;

/// No program's memory is as high.
const BEYOND: usize = 1 << 56;

/// Bytes of one call at most (`MAX_RW_COUNT`).
pub(crate) const LONGEST: usize = 0x7fff_f000;

/// Whether so many bytes can't be anywhere (`access_ok`).
pub(crate) fn is_beyond(start: *const c_void, bytes: usize) -> bool {
    start.addr().checked_add(bytes).is_none_or(|end| end > BEYOND)
}

/// The pieces, all of which are to be read or, if `writes`, to be written.
///
/// # Safety
/// `count` pieces can be read there, each names memory that may be written, and none overlap.
pub(crate) unsafe fn pieces<'a>(
    vector: *const iovec,
    count: usize,
    writes: bool,
) -> Result<&'a [iovec], Errno> {
    if count > MOST {
        return Err(Errno::MSGSIZE);
    }
    if count == 0 {
        return Ok(&[]);
    }
    memory::readable(vector, size_of::<iovec>())?;
    // SAFETY: the caller's promise.
    let vector = unsafe { std::slice::from_raw_parts(vector, count) };
    // copy_iovec_from_user, then access_ok.
    if vector.iter().any(|piece| isize::try_from(piece.iov_len).is_err()) {
        return Err(Errno::INVAL);
    }
    // One alone is cut first (`import_ubuf`).
    let longest = if count == 1 { LONGEST } else { usize::MAX };
    let lies = |piece: &iovec| is_beyond(piece.iov_base, piece.iov_len.min(longest));
    if vector.iter().any(lies) {
        return Err(Errno::FAULT);
    }
    for piece in vector {
        let Some(last) = piece.iov_len.min(longest).checked_sub(1) else { continue };
        if writes {
            memory::writable(piece.iov_base, 1)?;
        } else {
            memory::readable(piece.iov_base, 1)?;
            memory::readable(piece.iov_base.wrapping_byte_add(last), 1)?;
        }
    }
    Ok(vector)
}

/// A count as `readv` takes it.
pub(crate) fn count(count: c_int) -> Result<usize, Errno> {
    usize::try_from(count).ok().filter(|count| *count <= MOST).ok_or(Errno::INVAL)
}

/// A piece to write to.
///
/// # Safety
/// As for [`pieces`], and nobody else uses the piece while the slice lives.
pub(crate) unsafe fn target<'a>(piece: &iovec) -> &'a mut [u8] {
    if piece.iov_len == 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(piece.iov_base.cast(), piece.iov_len.min(LONGEST)) }
}

/// A piece to read from.
///
/// # Safety
/// As for [`pieces`].
pub(crate) unsafe fn source<'a>(piece: &iovec) -> &'a [u8] {
    if piece.iov_len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len.min(LONGEST)) }
}
