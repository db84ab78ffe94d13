//! Sending and returning.

use std::ffi::{c_int, c_void};

use shm::attach::flag;

use super::fault::{at, count, items};
use super::{ChannelHandle, Fault, PacketView, guard};

/// Sends packets, each by its `port`: that where it came in, unless it was changed. They go to the worker from which they
/// came, so that a flow stays in order.
///
/// Gives how many of the first were sent; the rest found no room and is still the caller's. MILLRACE_FULL when there was
/// room for none; MILLRACE_STALE when the first one is not the caller's any more; MILLRACE_DAEMON_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_send(
    channel: *mut ChannelHandle,
    packets: *const PacketView,
    number: usize,
) -> c_int {
    // SAFETY: the caller's pointers, see the module.
    guard(|| unsafe { forward(channel, packets, number, 0) })
}

/// Gives packets back to the daemon's graph, as if each had just come in by its `port`: what a function does not want.
///
/// Gives what millrace_send() gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_return(
    channel: *mut ChannelHandle,
    packets: *const PacketView,
    number: usize,
) -> c_int {
    // SAFETY: the caller's pointers.
    guard(|| unsafe { forward(channel, packets, number, flag::GRAPH) })
}

/// # Safety
/// As for `millrace_send`.
unsafe fn forward(
    channel: *mut ChannelHandle,
    packets: *const PacketView,
    number: usize,
    flags: u8,
) -> Result<c_int, Fault> {
    // SAFETY: as the caller says.
    let (handle, packets) =
        unsafe { (at(channel, "channel")?, items(packets, number, "packets")?) };
    let ChannelHandle { channel, held, burst } = handle;
    channel.look_for_daemon()?;
    burst.clear();
    for view in packets {
        let Some(mut packet) = held.take(view.handle) else { break };
        packet.set_port(view.port);
        burst.push(packet);
    }
    let valid = burst.len();
    let mut end = channel.forward_first(burst, flags).map_err(Fault::from);
    channel.ring();
    let sent = valid - burst.len();
    // The last one that was taken goes back first.
    let unsent = packets.get(sent..valid).unwrap_or_default();
    for (view, packet) in unsent.iter().zip(burst.drain(..)).rev() {
        held.put_back(view.handle, packet);
    }
    if end.is_ok() && valid < packets.len() {
        end = Err(Fault::Stale);
    }
    if sent == 0 { end.map(|()| 0) } else { Ok(count(sent)) }
}

/// Sends a packet of the caller's own making by a port; the bytes are copied.
///
/// Gives 0; or MILLRACE_FULL, MILLRACE_UNSENDABLE, MILLRACE_DAEMON_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_send_bytes(
    channel: *mut ChannelHandle,
    bytes: *const c_void,
    length: usize,
    port: u8,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (handle, bytes) =
            unsafe { (at(channel, "channel")?, items(bytes.cast::<u8>(), length, "bytes")?) };
        handle.channel.send_bytes(bytes, port)?;
        Ok(0)
    })
}

/// Gives a packet of the caller's own making to the daemon's graph, as if it had come in by the port.
///
/// Gives what millrace_send_bytes() gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_return_bytes(
    channel: *mut ChannelHandle,
    bytes: *const c_void,
    length: usize,
    port: u8,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (handle, bytes) =
            unsafe { (at(channel, "channel")?, items(bytes.cast::<u8>(), length, "bytes")?) };
        handle.channel.return_bytes(bytes, port)?;
        Ok(0)
    })
}
