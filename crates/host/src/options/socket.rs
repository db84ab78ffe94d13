//! Options of `SOL_SOCKET`.

use crate::errno::Errno;
use crate::session::{Domain, Id, Kind, Role};
use crate::sessions::Sessions;
use crate::settings::{Settings, flag};

use super::Value;
use super::value::{Fixed, int, words};

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
    pub(super) const ACCEPTCONN: i32 = 30;
    pub(super) const SNDBUFFORCE: i32 = 32;
    pub(super) const RCVBUFFORCE: i32 = 33;
    pub(super) const PASSSEC: i32 = 34;
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
    pub(super) const TIMESTAMPING_NEW: i32 = 65;
    pub(super) const RCVTIMEO_NEW: i32 = 66;
    pub(super) const SNDTIMEO_NEW: i32 = 67;
    pub(super) const DETACH_REUSEPORT_BPF: i32 = 68;
    pub(super) const BUF_LOCK: i32 = 72;
    pub(super) const TXREHASH: i32 = 74;
    pub(super) const PASSPIDFD: i32 = 76;
    pub(super) const PEERPIDFD: i32 = 77;
}

/// Bytes of `net.core.rmem_max` and `wmem_max`.
const LARGEST: i32 = 4_194_304;
/// `SOCK_MIN_RCVBUF` and `SOCK_MIN_SNDBUF`: bytes.
const LEAST: (u32, u32) = (2304, 4608);

/// What is as it is. What would take a privilege is refused to everybody.
const FIXED: &[Fixed] = &[
    Fixed::new(1, 0, Errno::ACCES),        // SO_DEBUG
    Fixed::new(5, 0, Errno::NOPROTOOPT),   // SO_DONTROUTE
    Fixed::new(11, 0, Errno::NOPROTOOPT),  // SO_NO_CHECK
    Fixed::new(12, 0, Errno::NOPROTOOPT),  // SO_PRIORITY
    Fixed::new(29, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMP
    Fixed::new(35, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMPNS
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
    Fixed::new(63, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMP_NEW
    Fixed::new(64, 0, Errno::NOPROTOOPT),  // SO_TIMESTAMPNS_NEW
    Fixed::new(69, 0, Errno::PERM),        // SO_PREFER_BUSY_POLL
    Fixed::new(73, 0, Errno::OPNOTSUPP),   // SO_RESERVE_MEM
    Fixed::new(75, 0, Errno::NOPROTOOPT),  // SO_RCVMARK
];

impl Sessions {
    pub(super) fn set_socket_option(
        &mut self,
        id: Id,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        if name == name::BINDTODEVICE {
            // No device has a name here: only "none" can be said.
            let named = value.first().is_some_and(|first| *first != 0);
            return if named { Err(Errno::NODEV) } else { Ok(()) };
        }
        let number = int(value)?;
        let on = number != 0;
        let stream = self.get(id)?.kind() == Kind::Stream;
        match name {
            name::REUSEADDR => self.switch(id, flag::REUSE_ADDRESS, on),
            name::REUSEPORT => self.switch(id, flag::REUSE_PORT, on),
            name::BROADCAST => self.switch(id, flag::BROADCAST, on),
            name::KEEPALIVE => self.switch(id, flag::KEEPALIVE, on),
            // On a stack worker reading the stream comes first, and in the process it is too late to take a byte out.
            name::OOBINLINE if !on && self.urgent_stays => Err(Errno::NOPROTOOPT),
            name::OOBINLINE => self.switch(id, flag::URGENT_INLINE, on),
            name::SNDBUF => {
                self.change(id, |settings| size_send(settings, number))?;
                self.offer_space(id);
                Ok(())
            }
            name::RCVBUF => self.change(id, |settings| size_receive(settings, number)),
            name::LINGER => self.set_linger(id, value),
            // Linux ignores it since 2.2.
            name::BSDCOMPAT => Ok(()),
            name::RCVLOWAT => self.set_low_water(id, number, stream),
            name::RCVTIMEO | name::RCVTIMEO_NEW => {
                let timeout = timeout(value)?;
                self.change(id, |settings| {
                    settings.timeouts.0 = timeout;
                    Ok(())
                })
            }
            name::SNDTIMEO | name::SNDTIMEO_NEW => {
                let timeout = timeout(value)?;
                self.change(id, |settings| {
                    settings.timeouts.1 = timeout;
                    Ok(())
                })
            }
            name::MAX_PACING_RATE if stream => self.set_pacing_rate(id, value, number),
            name::BUF_LOCK => {
                if number & !3 != 0 {
                    return Err(Errno::INVAL);
                }
                self.change(id, |settings| {
                    settings.set(flag::SEND_SIZED, number & 1 != 0);
                    settings.set(flag::RECEIVE_SIZED, number & 2 != 0);
                    Ok(())
                })
            }
            // Advice about a path, of which there is one.
            name::CNX_ADVICE => Ok(()),
            name::SNDBUFFORCE | name::RCVBUFFORCE => Err(Errno::PERM),
            // Filters: no program is long enough.
            name::ATTACH_FILTER | name::ATTACH_BPF..=name::ATTACH_REUSEPORT_EBPF => {
                Err(Errno::INVAL)
            }
            name::DETACH_REUSEPORT_BPF | name::TXTIME => Err(Errno::INVAL),
            name::TIMESTAMPING | name::TIMESTAMPING_NEW if !on => Ok(()),
            name::DETACH_FILTER => Err(Errno::NOENT),
            name::TXREHASH if stream => {
                if matches!(number, -1 | 1) {
                    Ok(())
                } else {
                    Err(Errno::INVAL)
                }
            }
            name::PEEK_OFF if stream => {
                self.get_mut(id)?.rare().peek_offset = Some(number).filter(|offset| *offset != -1);
                Ok(())
            }
            name::PASSCRED | name::PASSSEC | name::PASSPIDFD | name::TXREHASH => {
                Err(Errno::OPNOTSUPP)
            }
            _ => Fixed::set(FIXED, name, number),
        }
    }

    /// 32 or 64 bits; all ones: no limit.
    fn set_pacing_rate(&mut self, id: Id, value: &[u8], number: i32) -> Result<(), Errno> {
        let rate = value.first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes));
        let rate = rate.unwrap_or(match number as u32 {
            u32::MAX => u64::MAX,
            rate => rate.into(),
        });
        self.change(id, |settings| {
            settings.pacing_rate = rate;
            Ok(())
        })
    }

    fn set_linger(&mut self, id: Id, value: &[u8]) -> Result<(), Errno> {
        let on = int(value)? != 0;
        let seconds = int(value.get(4..).unwrap_or(&[]))? as u32;
        self.change(id, |settings| {
            settings.set(flag::LINGER, on);
            if on {
                settings.linger = seconds;
            }
            Ok(())
        })
    }

    /// `tcp_set_rcvlowat`: who has read below the mark may be woken now.
    /// Of datagrams it is kept, without effect, as in Linux.
    fn set_low_water(&mut self, id: Id, bytes: i32, stream: bool) -> Result<(), Errno> {
        self.change(id, |settings| {
            let asked = u32::try_from(bytes).unwrap_or(i32::MAX as u32);
            if !stream {
                settings.receive_low_water = asked.max(1);
                return Ok(());
            }
            // So much can be received in any case.
            let most = if settings.has(flag::RECEIVE_SIZED) {
                settings.buffers.0 / 2
            } else {
                settings.stream.receive_buffer
            };
            settings.receive_low_water = asked.min(most).max(1);
            Ok(())
        })?;
        let mask = self.mask(id);
        if mask.has(crate::mask::Mask::IN) {
            self.wake(id, crate::mask::Mask::READABLE);
        }
        Ok(())
    }

    pub(super) fn socket_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
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
            name::TIMESTAMPING | name::TIMESTAMPING_NEW | name::TXTIME => Value::of(&[0; 8], room),
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

/// Twice what was asked for, as Linux counts.
fn doubled(bytes: i32, least: u32) -> u32 {
    // min_t(u32): what is negative is a lot.
    let asked = (bytes as u32).min(LARGEST as u32);
    (asked * 2).max(least)
}

fn size_receive(settings: &mut Settings, bytes: i32) -> Result<(), Errno> {
    settings.buffers.0 = doubled(bytes, LEAST.0);
    settings.set(flag::RECEIVE_SIZED, true);
    Ok(())
}

fn size_send(settings: &mut Settings, bytes: i32) -> Result<(), Errno> {
    settings.buffers.1 = doubled(bytes, LEAST.1);
    settings.set(flag::SEND_SIZED, true);
    Ok(())
}

/// `sock_set_timeout`: `None` for ever; what is negative does not wait.
fn timeout(value: &[u8]) -> Result<Option<u64>, Errno> {
    let (seconds, micros) = words(value)?;
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno::DOM);
    }
    Ok(match (u64::try_from(seconds), micros) {
        (Err(_), _) => Some(0),
        (Ok(0), 0) => None,
        (Ok(seconds), micros) => {
            let whole = seconds.checked_mul(1_000_000_000);
            whole.map(|whole| whole.saturating_add(micros as u64 * 1000))
        }
    })
}

fn timeval(timeout: Option<u64>, room: usize) -> Value {
    let ns = timeout.unwrap_or(0);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(ns / 1_000_000_000).to_ne_bytes());
    bytes[8..].copy_from_slice(&(ns % 1_000_000_000 / 1000).to_ne_bytes());
    Value::of(&bytes, room)
}
