//! Settings travel with their socket.

use transport::{carried, carried_as};

use crate::session::{Domain, Progress, Rare};
use crate::settings::{DELACK_MAX, Settings};

carried!(Settings {
    stream,
    // Those of a stream say nothing.
    datagrams @ local,
    flags,
    buffers,
    receive_low_water in 1..=u32::MAX,
    timeouts,
    linger,
    priority,
    pacing_rate,
    keepalive,
    linger2,
    longest_ack_delay in 8000..=DELACK_MAX,
    defer_accept,
    fast_open_queue,
    window_clamp,
    not_sent_low_water,
    segment,
    timestamping @ local,
    ttls,
    multicast_ttls,
    services,
    mtu_discover,
});

carried!(Rare {
    bound,
    port_before,
    peek_offset,
    // Of datagrams, which do not travel.
    source @ local,
    corked @ local,
    deferred @ local,
});

carried_as!(Domain {
    Self::V4 => 4 => Self::V4,
    Self::V6 => 6 => Self::V6,
});

carried_as!(Progress {
    Self::Unconnected => 0 => Self::Unconnected,
    Self::Connecting => 1 => Self::Connecting,
    Self::Connected => 2 => Self::Connected,
    Self::Disconnecting => 3 => Self::Disconnecting,
});
