//! Options of `SOL_SOCKET`.

mod get;
mod set;
mod stamps;

use crate::errno::Errno;

pub use stamps::Stamps;

use super::level;
use super::value::Fixed;

/// Names (`asm-generic/socket.h`).
mod name {
    pub(super) const REUSEADDR: i32 = 2;
    pub(super) const TYPE: i32 = 3;
    pub(super) const ERROR: i32 = 4;
    pub(super) const BROADCAST: i32 = 6;
    pub(super) const SNDBUF: i32 = 7;
    pub(super) const RCVBUF: i32 = 8;
    pub(super) const KEEPALIVE: i32 = 9;
    pub(super) const OOBINLINE: i32 = 10;
    pub(super) const PRIORITY: i32 = 12;
    pub(super) const LINGER: i32 = 13;
    pub(super) const BSDCOMPAT: i32 = 14;
    pub(super) const REUSEPORT: i32 = 15;
    pub(super) const PASSCRED: i32 = 16;
    pub(super) const PEERCRED: i32 = 17;
    pub(super) const RCVLOWAT: i32 = 18;
    pub(super) const SNDLOWAT: i32 = 19;
    pub(super) const RCVTIMEO: i32 = 20;
    pub(super) const SNDTIMEO: i32 = 21;
    pub(super) const BINDTODEVICE: i32 = 25;
    pub(super) const ATTACH_FILTER: i32 = 26;
    pub(super) const DETACH_FILTER: i32 = 27;
    pub(super) const PEERNAME: i32 = 28;
    pub(super) const TIMESTAMP: i32 = 29;
    pub(super) const ACCEPTCONN: i32 = 30;
    pub(super) const SNDBUFFORCE: i32 = 32;
    pub(super) const RCVBUFFORCE: i32 = 33;
    pub(super) const PASSSEC: i32 = 34;
    pub(super) const TIMESTAMPNS: i32 = 35;
    pub(super) const TIMESTAMPING: i32 = 37;
    pub(super) const PROTOCOL: i32 = 38;
    pub(super) const PEEK_OFF: i32 = 42;
    pub(super) const DOMAIN: i32 = 39;
    pub(super) const MAX_PACING_RATE: i32 = 47;
    pub(super) const BPF_EXTENSIONS: i32 = 48;
    pub(super) const ATTACH_BPF: i32 = 50;
    pub(super) const ATTACH_REUSEPORT_EBPF: i32 = 52;
    pub(super) const CNX_ADVICE: i32 = 53;
    pub(super) const MEMINFO: i32 = 55;
    pub(super) const INCOMING_NAPI_ID: i32 = 56;
    pub(super) const PEERGROUPS: i32 = 59;
    pub(super) const TXTIME: i32 = 61;
    pub(super) const TIMESTAMP_NEW: i32 = 63;
    pub(super) const TIMESTAMPNS_NEW: i32 = 64;
    pub(super) const TIMESTAMPING_NEW: i32 = 65;
    pub(super) const RCVTIMEO_NEW: i32 = 66;
    pub(super) const SNDTIMEO_NEW: i32 = 67;
    pub(super) const DETACH_REUSEPORT_BPF: i32 = 68;
    pub(super) const BUF_LOCK: i32 = 72;
    pub(super) const TXREHASH: i32 = 74;
    pub(super) const PASSPIDFD: i32 = 76;
    pub(super) const PEERPIDFD: i32 = 77;
}

/// Whether it is `SO_KEEPALIVE`, which no stream refuses.
pub(super) fn is_keepalive(level: i32, name: i32) -> bool {
    (level, name) == (level::SOCKET, name::KEEPALIVE)
}

/// Whether it is `SO_ERROR`.
pub(crate) fn is_error(level: i32, name: i32) -> bool {
    (level, name) == (level::SOCKET, name::ERROR)
}

/// What is as it is. What would take a privilege is refused to everybody.
const FIXED: &[Fixed] = &[
    Fixed::new(1, 0, Errno::ACCES),        // SO_DEBUG
    Fixed::new(5, 0, Errno::NOPROTOOPT),   // SO_DONTROUTE
    Fixed::new(11, 0, Errno::NOPROTOOPT),  // SO_NO_CHECK
    Fixed::new(29, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMP of streams
    Fixed::new(35, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMPNS of streams
    Fixed::new(36, 0, Errno::PERM),        // SO_MARK
    Fixed::new(40, 0, Errno::NOPROTOOPT),  // SO_RXQ_OVFL
    Fixed::new(41, 0, Errno::NOPROTOOPT),  // SO_WIFI_STATUS
    Fixed::new(42, -1, Errno::OPNOTSUPP),  // SO_PEEK_OFF of datagrams
    Fixed::new(43, 0, Errno::NOPROTOOPT),  // SO_NOFCS
    Fixed::new(44, 0, Errno::NOPROTOOPT),  // SO_LOCK_FILTER
    Fixed::new(45, 0, Errno::NOPROTOOPT),  // SO_SELECT_ERR_QUEUE
    Fixed::new(46, 0, Errno::PERM),        // SO_BUSY_POLL
    Fixed::new(49, -1, Errno::NOPROTOOPT), // SO_INCOMING_CPU
    Fixed::new(60, 0, Errno::OPNOTSUPP),   // SO_ZEROCOPY
    Fixed::new(62, 0, Errno::NODEV),       // SO_BINDTOIFINDEX
    Fixed::new(63, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMP_NEW of streams
    Fixed::new(64, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMPNS_NEW of streams
    Fixed::new(69, 0, Errno::PERM),        // SO_PREFER_BUSY_POLL
    Fixed::new(73, 0, Errno::OPNOTSUPP),   // SO_RESERVE_MEM
    Fixed::new(75, 0, Errno::NOPROTOOPT),  // SO_RCVMARK
];
