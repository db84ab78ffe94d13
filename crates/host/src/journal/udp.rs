//! UDP sockets in the table, written when somebody looks: nobody has to hear of one whose process is gone.

use shm::connections::{ConnectionsWriter, SocketRecord};
use tables::PagedArray;
use transport::{Buffers, Stack, UdpGlance, UdpId};

use super::Beside;

/// A socket as it was written last, and what waited for it where the stack does not see it.
type Seen = (UdpGlance, Beside);

/// What was written last, by place.
#[derive(Debug, Default)]
pub(super) struct UdpSockets(PagedArray<Option<Seen>>);

impl UdpSockets {
    /// Writes those that are not as they were written last; `anew`: all.
    pub(super) fn show<B: Buffers>(
        &mut self,
        writer: &mut ConnectionsWriter,
        (now, anew): (u64, bool),
        stack: &Stack<B>,
        mut beside: impl FnMut(UdpId) -> Beside,
    ) {
        for place in 0..stack.udp_places().min(writer.sockets()) {
            let socket = stack.udp_glance(place).map(|socket| (socket, beside(socket.id)));
            let seen = self.0.get(place as usize).copied().flatten();
            if seen == socket && !(anew && socket.is_some()) {
                continue;
            }
            match &socket {
                Some(socket) => {
                    writer.write_socket(place, &record(socket, now));
                }
                None => writer.clear_socket(place),
            }
            self.0.put(place as usize, socket);
        }
    }
}

fn record((socket, beside): &Seen, now: u64) -> SocketRecord {
    let bytes = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    SocketRecord {
        local: socket.local,
        remote: socket.remote,
        at: now,
        queues: (bytes(socket.waiting.saturating_add(beside.0)), bytes(beside.1)),
        dropped: socket.dropped,
    }
}
