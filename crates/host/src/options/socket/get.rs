//! What `getsockopt` says at `SOL_SOCKET`.

use std::net::{IpAddr, SocketAddr};

use crate::errno::Errno;
use crate::session::{Domain, Id, Kind, Role};
use crate::sessions::Sessions;
use crate::settings::flag;

use super::super::value::{Fixed, Value};
use super::{FIXED, name};

impl Sessions {
    pub(in crate::options) fn socket_option(
        &mut self,
        id: Id,
        name: i32,
        room: usize,
    ) -> Result<Value, Errno> {
        let session = self.get(id)?;
        let stream = session.kind() == Kind::Stream;
        let settings = &session.settings;
        let value = match name {
            name::TYPE => {
                if stream {
                    1
                } else {
                    2
                }
            }
            name::ERROR => self.error(id),
            name::ACCEPTCONN => i32::from(matches!(session.role, Role::Listening(_))),
            name::PROTOCOL => {
                if stream {
                    6
                } else {
                    17
                }
            }
            name::DOMAIN => {
                if session.domain == Domain::V4 {
                    2
                } else {
                    10
                }
            }
            name::REUSEADDR => settings.has(flag::REUSE_ADDRESS).into(),
            name::REUSEPORT => settings.has(flag::REUSE_PORT).into(),
            name::BROADCAST => settings.has(flag::BROADCAST).into(),
            name::KEEPALIVE => settings.has(flag::KEEPALIVE).into(),
            name::OOBINLINE => settings.has(flag::URGENT_INLINE).into(),
            name::PRIORITY => settings.priority.into(),
            name::SNDBUF => self.buffers(id).1 as i32,
            name::RCVBUF => self.buffers(id).0 as i32,
            name::RCVLOWAT => settings.receive_low_water as i32,
            name::SNDLOWAT => 1,
            name::BSDCOMPAT | name::INCOMING_NAPI_ID => 0,
            // SKF_AD_MAX.
            name::BPF_EXTENSIONS => 64,
            name::BUF_LOCK => {
                let bit = |flag: u32, bit: i32| if settings.has(flag) { bit } else { 0 };
                bit(flag::SEND_SIZED, 1) | bit(flag::RECEIVE_SIZED, 2)
            }
            name::TXREHASH if stream => 1,
            name::PEEK_OFF if stream => {
                session.rare.as_ref().and_then(|rare| rare.peek_offset).unwrap_or(-1)
            }
            name::TIMESTAMP | name::TIMESTAMPNS | name::TIMESTAMP_NEW | name::TIMESTAMPNS_NEW
                if !stream =>
            {
                self.stamp_option(id, name)?
            }
            name::PASSCRED | name::PASSSEC | name::PASSPIDFD | name::TXREHASH => {
                return Err(Errno::OPNOTSUPP);
            }
            name::PEERGROUPS | name::PEERPIDFD => return Err(Errno::NODATA),
            _ => return self.longer_socket_option(id, name, room),
        };
        Ok(Value::int(value, room))
    }

    /// Those that are no `int`.
    fn longer_socket_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let settings = &self.get(id)?.settings;
        let pair = |a: i32, b: i32| {
            let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
            [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
        };
        Ok(match name {
            name::LINGER => {
                let (on, seconds) = (settings.has(flag::LINGER).into(), settings.linger as i32);
                Value::of(&pair(on, seconds), room)
            }
            name::RCVTIMEO | name::RCVTIMEO_NEW => timeval(settings.timeouts.0, room),
            name::SNDTIMEO | name::SNDTIMEO_NEW => timeval(settings.timeouts.1, room),
            name::PEERNAME => {
                let name = socket_address(self.latest_peer(id).ok_or(Errno::NOTCONN)?);
                // sk_getsockopt: less room than the address takes cuts it, more is refused.
                if name.len() < room {
                    return Err(Errno::INVAL);
                }
                Value::of(&name, room)
            }
            name::PEERCRED => {
                // No process: 0, nobody, no group.
                let mut bytes = [0xff; 12];
                bytes[..4].copy_from_slice(&[0; 4]);
                Value::of(&bytes, room)
            }
            name::MAX_PACING_RATE if room < 8 => {
                let rate = settings.pacing_rate.min(u32::MAX.into()) as u32;
                Value::of(&rate.to_ne_bytes(), room)
            }
            name::MAX_PACING_RATE => Value::of(&settings.pacing_rate.to_ne_bytes(), room),
            name::TIMESTAMPING | name::TIMESTAMPING_NEW => {
                Value::of(&pair(self.stamp_option(id, name)?, 0), room)
            }
            name::TXTIME => Value::of(&[0; 8], room),
            name::BINDTODEVICE | name::ATTACH_FILTER => Value::empty(),
            name::MEMINFO => {
                let (receive, send) = self.buffers(id);
                let waiting = self.pending(id).unwrap_or(0) as u32;
                let queued = self.unsent(id).map_or(0, |(queued, _)| queued as u32);
                let words = [waiting, receive, queued, send, 0, queued, 0, 0, 0];
                let mut bytes = [0; 36];
                for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
                    place.copy_from_slice(&word.to_ne_bytes());
                }
                Value::of(&bytes, room)
            }
            _ => Value::int(Fixed::get(FIXED, name)?, room),
        })
    }

    /// `SO_RCVBUF` and `SO_SNDBUF`, as they have grown by themselves if nobody has set them.
    fn buffers(&self, id: Id) -> (u32, u32) {
        let Ok(session) = self.get(id) else { return (0, 0) };
        let (settings, told) = (&session.settings, session.settings.buffers);
        let Role::Connection(connection) = session.role else { return told };
        let grown = self.stack.info(connection).map_or((0, 0), |info| info.buffers);
        let of = |sized: u32, told: u32, grown: usize| {
            if settings.has(sized) { told } else { told.max(grown.min(1 << 30) as u32) }
        };
        (of(flag::RECEIVE_SIZED, told.0, grown.0), of(flag::SEND_SIZED, told.1, grown.1))
    }

    /// Why it failed, told once (`sock_error`); 0: it did not.
    fn error(&mut self, id: Id) -> i32 {
        let Ok(session) = self.get_mut(id) else { return 0 };
        match (session.take_error(), session.role) {
            (Err(error), _) => error.0,
            (Ok(()), Role::Connection(connection)) => {
                self.stack.take_error(connection).map_or(0, |failure| Errno::from(failure).0)
            }
            (Ok(()), _) => 0,
        }
    }
}

fn timeval(timeout: Option<u64>, room: usize) -> Value {
    let ns = timeout.unwrap_or(0);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(ns / 1_000_000_000).to_ne_bytes());
    bytes[8..].copy_from_slice(&(ns % 1_000_000_000 / 1000).to_ne_bytes());
    Value::of(&bytes, room)
}

/// `struct sockaddr_in` (`AF_INET` is 2) or `struct sockaddr_in6` (`AF_INET6` is 10).
fn socket_address(address: SocketAddr) -> Value {
    let mut bytes = [0; 28];
    let (family, length): (u16, usize) = if address.is_ipv4() { (2, 16) } else { (10, 28) };
    bytes[..2].copy_from_slice(&family.to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => bytes[4..8].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[8..24].copy_from_slice(&ip.octets()),
    }
    Value::of(&bytes, length)
}
