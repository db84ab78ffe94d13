//! Receiving, looking, releasing.

use std::ffi::{c_int, c_void};

use super::fault::{at, count, items, place, room, shown};
use super::{ChannelHandle, Fault, PacketView, guard};

/// Takes up to `limit` packets. Never waits, and makes no system call but for a look at the daemon every 20 ms while
/// nothing comes.
///
/// Gives how many packets were written to `packets`; or a status: MILLRACE_DAEMON_GONE when nothing is left to receive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_receive(
    channel: *mut ChannelHandle,
    packets: *mut PacketView,
    limit: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers, see the module.
        let (handle, room) = unsafe { (at(channel, "channel")?, room(packets, limit, "packets")?) };
        let ChannelHandle { channel, held, burst } = handle;
        let taken = channel.receive(burst, room.len().min(c_int::MAX as usize))?;
        for (target, mut packet) in room.iter_mut().zip(burst.drain(..)) {
            let (total, pieces) = (packet.length() as u32, packet.pieces());
            let (port, copy) = (packet.port(), u8::from(packet.is_copy()));
            let bytes = channel.bytes_mut(&mut packet);
            let (data, length) = (bytes.as_mut_ptr(), bytes.len() as u32);
            let handle = held.put(packet);
            target.write(PacketView { data, length, total, pieces, port, copy, handle });
        }
        Ok(count(taken))
    })
}

/// A piece of a packet that is longer than a slot, 0 being the first: `data` is set to its bytes.
///
/// Gives how many bytes it has, 0 beyond the last piece; or MILLRACE_STALE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_piece(
    channel: *mut ChannelHandle,
    packet: *const PacketView,
    piece: u32,
    data: *mut *mut u8,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (handle, packet, target) =
            unsafe { (at(channel, "channel")?, shown(packet, "packet")?, place(data, "data")?) };
        let ChannelHandle { channel, held, .. } = handle;
        let packet = held.get(packet.handle).ok_or(Fault::Stale)?;
        let bytes = channel.piece_mut(packet, piece).unwrap_or_default();
        target.write(bytes.as_mut_ptr());
        Ok(count(bytes.len()))
    })
}

/// Copies a packet, however many pieces it has, as much as `room` bytes hold.
///
/// Gives bytes copied; or MILLRACE_STALE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_copy(
    channel: *mut ChannelHandle,
    packet: *const PacketView,
    buffer: *mut c_void,
    room: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (handle, packet, target) = unsafe {
            let target = self::room(buffer.cast::<u8>(), room, "buffer")?;
            (at(channel, "channel")?, shown(packet, "packet")?, target)
        };
        let packet = handle.held.get(packet.handle).ok_or(Fault::Stale)?;
        Ok(count(handle.channel.copy_into(packet, target)))
    })
}

/// Drops packets: their slots go back to the daemon.
///
/// Gives `number`; or MILLRACE_STALE when one of them is not the caller's any more: those before it were released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_release(
    channel: *mut ChannelHandle,
    packets: *const PacketView,
    number: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (handle, packets) =
            unsafe { (at(channel, "channel")?, items(packets, number, "packets")?) };
        for packet in packets {
            let packet = handle.held.take(packet.handle).ok_or(Fault::Stale)?;
            handle.channel.release(packet);
        }
        Ok(count(packets.len()))
    })
}
