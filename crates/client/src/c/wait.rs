//! Waiting.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use super::fault::at;
use super::{ChannelHandle, guard};

/// Waits until a packet comes, at most `milliseconds`; a negative number waits for ever. A signal may end it early.
///
/// Gives 1 when a packet waits, else 0; or MILLRACE_DAEMON_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_wait(channel: *mut ChannelHandle, milliseconds: c_int) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointer, see the module.
        let handle = unsafe { at(channel, "channel")? };
        let longest = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        Ok(handle.channel.wait(longest)?.into())
    })
}

/// Waits until a packet to be sent finds room again, at most `milliseconds`; a negative number waits for ever: after
/// MILLRACE_FULL. Who waits for packets too has to call millrace_arm() again.
///
/// Gives 1 when there is room, else 0; or MILLRACE_DAEMON_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_wait_for_room(
    channel: *mut ChannelHandle,
    milliseconds: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointer.
        let handle = unsafe { at(channel, "channel")? };
        let longest = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        Ok(handle.channel.wait_for_room(longest)?.into())
    })
}

/// A file descriptor for poll() or epoll: readable when packets came after millrace_arm(), or when the daemon is gone. It
/// is the channel's: do not close it, do not read it.
///
/// Gives it; or MILLRACE_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_fd(channel: *mut ChannelHandle) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointer.
        let handle = unsafe { at(channel, "channel")? };
        Ok(handle.channel.as_fd().as_raw_fd())
    })
}

/// Before waiting for millrace_fd(): tells the daemon to ring. millrace_receive() takes it back.
///
/// Gives 1; or 0 when a packet is there already: do not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_arm(channel: *mut ChannelHandle) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointer.
        let handle = unsafe { at(channel, "channel")? };
        Ok(handle.channel.arm().into())
    })
}

/// Waits until the daemon has taken all that was sent, at most `milliseconds`.
///
/// Gives 1 when it has, else 0; or MILLRACE_DAEMON_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_flush(channel: *mut ChannelHandle, milliseconds: c_int) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointer.
        let handle = unsafe { at(channel, "channel")? };
        let longest = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
        Ok(handle.channel.flush(longest)?.into())
    })
}
