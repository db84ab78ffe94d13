//! Opening and closing channels.

use std::ffi::c_int;

use super::client::ClientHandle;
use super::fault::{at, count, place, room, shown};
use super::held::Held;
use super::options::{OpenOptions, read};
use super::{ChannelHandle, Fault, guard};
use crate::Counters;

/// What a channel has done.
#[repr(C)]
#[derive(Debug)]
pub struct CountersView {
    /// Packets received.
    pub received: u64,
    /// Packets sent to a port or returned to the graph.
    pub sent: u64,
    /// Packets that were not sent because the queue was full: once for each try.
    pub full: u64,
    /// Packets dropped because their marks made no sense.
    pub malformed: u64,
}

/// Opens queues: as many channels as the options say (NULL: one channel, all packets), of which `channels` has room for
/// `room`. A channel belongs to one thread at a time; the queues are closed with their last channel.
///
/// Gives how many channels were opened; or a status: MILLRACE_REFUSED, MILLRACE_INVALID, MILLRACE_DAEMON_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_open(
    client: *const ClientHandle,
    options: *const OpenOptions,
    channels: *mut *mut ChannelHandle,
    room: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers, see the module.
        let (client, options, targets) = unsafe {
            (shown(client, "client")?, read(options)?, self::room(channels, room, "channels")?)
        };
        if room < usize::from(options.channels) {
            return Err(Fault::Room { room, channels: options.channels });
        }
        let opened = client.0.open(&options)?;
        let total = opened.channels.len();
        for (target, channel) in targets.iter_mut().zip(opened.channels) {
            let handle = ChannelHandle { channel, held: Held::default(), burst: Vec::new() };
            target.write(Box::into_raw(Box::new(handle)));
        }
        Ok(count(total))
    })
}

/// Closes a channel. Packets that it received are gone with it. NULL is well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_close(channel: *mut ChannelHandle) {
    guard(|| {
        if !channel.is_null() {
            // SAFETY: `millrace_open` made it, and the caller does not use it again.
            drop(unsafe { Box::from_raw(channel) });
        }
        Ok(0)
    });
}

/// What a channel has done so far. Gives 0 or MILLRACE_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millrace_read_counters(
    channel: *mut ChannelHandle,
    counters: *mut CountersView,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's pointers.
        let (channel, target) = unsafe { (at(channel, "channel")?, place(counters, "counters")?) };
        let Counters { received, sent, full, malformed } = channel.channel.counters();
        target.write(CountersView { received, sent, full, malformed });
        Ok(0)
    })
}
