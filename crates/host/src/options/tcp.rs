//! Options of `IPPROTO_TCP`.

use transport::options::SECOND;
use transport::{Algorithm, FastOpenKeys};

use crate::errno::Errno;
use crate::session::{Id, Role};
use crate::sessions::Sessions;
use crate::settings::{
    FIN_WAIT_2, Settings, flag, from_millis, retransmission_seconds, retransmissions,
};

use super::socket::is_keepalive;
use super::value::{Fixed, int, within};
use super::{Value, level};

/// Names (`uapi/linux/tcp.h`).
mod name {
    pub(super) const NODELAY: i32 = 1;
    pub(super) const MAXSEG: i32 = 2;
    pub(super) const CORK: i32 = 3;
    pub(super) const KEEPIDLE: i32 = 4;
    pub(super) const KEEPINTVL: i32 = 5;
    pub(super) const KEEPCNT: i32 = 6;
    pub(super) const SYNCNT: i32 = 7;
    pub(super) const LINGER2: i32 = 8;
    pub(super) const DEFER_ACCEPT: i32 = 9;
    pub(super) const WINDOW_CLAMP: i32 = 10;
    pub(super) const INFO: i32 = 11;
    pub(super) const QUICKACK: i32 = 12;
    pub(super) const CONGESTION: i32 = 13;
    pub(super) const THIN_DUPACK: i32 = 17;
    pub(super) const USER_TIMEOUT: i32 = 18;
    pub(super) const REPAIR: i32 = 19;
    pub(super) const REPAIR_QUEUE: i32 = 20;
    pub(super) const QUEUE_SEQ: i32 = 21;
    pub(super) const REPAIR_OPTIONS: i32 = 22;
    pub(super) const FASTOPEN: i32 = 23;
    pub(super) const TIMESTAMP: i32 = 24;
    pub(super) const NOTSENT_LOWAT: i32 = 25;
    pub(super) const CC_INFO: i32 = 26;
    pub(super) const SAVED_SYN: i32 = 28;
    pub(super) const REPAIR_WINDOW: i32 = 29;
    pub(super) const FASTOPEN_CONNECT: i32 = 30;
    pub(super) const ULP: i32 = 31;
    pub(super) const FASTOPEN_KEY: i32 = 33;
    pub(super) const FASTOPEN_NO_COOKIE: i32 = 34;
    pub(super) const ZEROCOPY_RECEIVE: i32 = 35;
    pub(super) const RTO_MIN_US: i32 = 45;
    pub(super) const DELACK_MAX_US: i32 = 46;
}

/// What is as it is.
const FIXED: &[Fixed] = &[
    Fixed::new(16, 0, Errno::NOPROTOOPT), // TCP_THIN_LINEAR_TIMEOUTS
    Fixed::new(27, 0, Errno::NOPROTOOPT), // TCP_SAVE_SYN
    Fixed::new(36, 0, Errno::NOPROTOOPT), // TCP_INQ
    Fixed::new(37, 0, Errno::NOPROTOOPT), // TCP_TX_DELAY
    Fixed::new(44, 120_000, Errno::NOPROTOOPT), // TCP_RTO_MAX_MS
];

/// `TCP_MSS_DEFAULT`: what Linux says before a connection is there.
const PLAIN_MSS: i32 = 536;
/// `MAX_TCP_KEEPIDLE` and `MAX_TCP_KEEPINTVL`: seconds.
const LONGEST_KEEPALIVE: i32 = 32_767;
/// `MAX_TCP_KEEPCNT` and `MAX_TCP_SYNCNT`.
const MOST_PROBES: i32 = 127;
/// `TCP_FIN_TIMEOUT_MAX`: seconds.
const LONGEST_LINGER: i32 = 120;
/// `TCP_MIN_MSS` and `MAX_TCP_WINDOW`: bytes.
const SEGMENTS: (i32, i32) = (88, 32_767);
/// `SOCK_MIN_RCVBUF / 2`: bytes.
const LEAST_CLAMP: u32 = 1152;
/// `TCP_TIMEOUT_MIN` (two jiffies), `TCP_RTO_MIN` and `TCP_DELACK_MAX`: us.
const TIMES: (i32, i32) = (8000, 200_000);
/// `TCP_CA_NAME_MAX`: bytes.
const NAME: usize = 16;

/// Whether data may be sent at once because of this option. `None`: a connection may refuse it, or it has other effects.
pub(crate) fn switch_sends(level: i32, name: i32, value: &[u8]) -> Option<bool> {
    let number = int(value).ok()?;
    let is_within = |most| within(number, 1, most).is_ok();
    match (level, name) {
        (level::TCP, name::NODELAY) => Some(number != 0),
        (level::TCP, name::CORK) => Some(number == 0),
        (level::TCP, name::KEEPIDLE | name::KEEPINTVL) => {
            is_within(LONGEST_KEEPALIVE).then_some(false)
        }
        (level::TCP, name::KEEPCNT) => is_within(MOST_PROBES).then_some(false),
        _ => is_keepalive(level, name).then_some(false),
    }
}

impl Sessions {
    pub(super) fn set_tcp_option(&mut self, id: Id, name: i32, value: &[u8]) -> Result<(), Errno> {
        match name {
            name::CONGESTION => return self.set_congestion(id, value),
            // No such module.
            name::ULP => return Err(if value.is_empty() { Errno::INVAL } else { Errno::NOENT }),
            name::FASTOPEN_KEY => return self.set_fast_open_key(value),
            _ => {}
        }
        let number = int(value)?;
        let closed = matches!(self.get(id)?.role, Role::Fresh | Role::Bound(_));
        let listens = matches!(self.get(id)?.role, Role::Listening(_));
        match name {
            name::QUICKACK => return self.set_quick_ack(id, number),
            name::REPAIR | name::TIMESTAMP | name::REPAIR_QUEUE | name::QUEUE_SEQ => {
                return Err(Errno::PERM);
            }
            name::REPAIR_OPTIONS => return Err(Errno::INVAL),
            name::REPAIR_WINDOW => return Err(Errno::PERM),
            name::FASTOPEN if number < 0 || !closed && !listens => return Err(Errno::INVAL),
            name::FASTOPEN_CONNECT if !closed => return Err(Errno::INVAL),
            name::FASTOPEN_NO_COOKIE if !closed && !listens => return Err(Errno::INVAL),
            name::WINDOW_CLAMP if number == 0 && !closed => return Err(Errno::INVAL),
            _ => {}
        }
        self.change(id, |settings| keep(settings, name, number))?;
        if name == name::NOTSENT_LOWAT {
            self.offer_space(id);
        }
        Ok(())
    }

    /// `tcp_sock_set_quickack`: until the connection finds that delay pays.
    fn set_quick_ack(&mut self, id: Id, number: i32) -> Result<(), Errno> {
        self.switch(id, flag::DELAYED, number == 0)?;
        if let Role::Connection(connection) = self.get(id)?.role {
            let set = self.stack.set_quick_ack(connection, number != 0);
            set.map_err(|error| Errno(error.errno()))?;
        }
        Ok(())
    }

    fn set_congestion(&mut self, id: Id, value: &[u8]) -> Result<(), Errno> {
        let text = value.get(..value.len().min(NAME - 1)).unwrap_or(&[]);
        let text = text.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let algorithm = match text {
            _ if value.is_empty() => return Err(Errno::INVAL),
            b"bbr" => Algorithm::Bbr,
            b"cubic" => Algorithm::Cubic,
            b"reno" => Algorithm::NewReno,
            _ => return Err(Errno::NOENT),
        };
        self.change(id, |settings| {
            settings.stream.congestion = algorithm;
            Ok(())
        })
    }

    /// Of the whole stack; a socket has no keys of its own.
    fn set_fast_open_key(&mut self, value: &[u8]) -> Result<(), Errno> {
        let key = |place: usize| value.get(place..).and_then(|rest| rest.first_chunk::<16>());
        let primary = *key(0).ok_or(Errno::INVAL)?;
        let backup = match value.len() {
            16 => None,
            32 => key(16).copied(),
            _ => return Err(Errno::INVAL),
        };
        self.stack.set_fast_open_keys(Some(FastOpenKeys { primary, backup }));
        self.fast_open_keys = Some((primary, backup));
        Ok(())
    }

    pub(super) fn tcp_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let session = self.get(id)?;
        let settings = &session.settings;
        let stream = &settings.stream;
        let value = match name {
            name::NODELAY => stream.no_delay.into(),
            name::MAXSEG => self.segment_size(id)?,
            name::CORK => stream.cork.into(),
            name::KEEPIDLE => (settings.keepalive.idle / SECOND) as i32,
            name::KEEPINTVL => (settings.keepalive.interval / SECOND) as i32,
            name::KEEPCNT => settings.keepalive.count.into(),
            name::SYNCNT => stream.syn_retries.into(),
            name::LINGER2 => settings.linger2,
            name::DEFER_ACCEPT => retransmission_seconds(settings.defer_accept) as i32,
            name::WINDOW_CLAMP => settings.window_clamp as i32,
            name::QUICKACK => (!settings.has(flag::DELAYED)).into(),
            name::USER_TIMEOUT => (stream.user_timeout / 1_000_000) as i32,
            name::THIN_DUPACK | name::REPAIR => 0,
            name::FASTOPEN => settings.fast_open_queue as i32,
            name::TIMESTAMP => (self.now / 1_000_000) as i32,
            name::NOTSENT_LOWAT => settings.not_sent_low_water as i32,
            name::FASTOPEN_CONNECT => settings.has(flag::FAST_OPEN_CONNECT).into(),
            name::FASTOPEN_NO_COOKIE => stream.fast_open_without_cookie.into(),
            name::RTO_MIN_US => (stream.minimum_rto / 1000) as i32,
            name::DELACK_MAX_US => settings.longest_ack_delay as i32,
            name::REPAIR_QUEUE | name::QUEUE_SEQ | name::REPAIR_WINDOW => {
                return Err(Errno::INVAL);
            }
            name::ZEROCOPY_RECEIVE => return Err(Errno::INVAL),
            name::CC_INFO | name::SAVED_SYN | name::ULP => return Ok(Value::empty()),
            name::FASTOPEN_KEY => {
                let mut bytes = [0; 32];
                let Some((primary, backup)) = self.fast_open_keys else {
                    return Ok(Value::empty());
                };
                bytes[..16].copy_from_slice(&primary);
                bytes[16..].copy_from_slice(&backup.unwrap_or_default());
                let length = if backup.is_some() { 32 } else { 16 };
                return Ok(Value::of(bytes.get(..length).unwrap_or(&[]), room));
            }
            name::INFO => return self.tcp_info(id, room),
            name::CONGESTION => {
                let text: &[u8] = match stream.congestion {
                    Algorithm::Bbr => b"bbr",
                    Algorithm::Cubic => b"cubic",
                    Algorithm::NewReno => b"reno",
                };
                let mut bytes = [0; NAME];
                bytes.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
                return Ok(Value::of(&bytes, room));
            }
            _ => Fixed::get(FIXED, name)?,
        };
        Ok(Value::int(value, room))
    }

    fn segment_size(&self, id: Id) -> Result<i32, Errno> {
        let session = self.get(id)?;
        Ok(match session.role {
            Role::Connection(connection) => {
                self.stack.info(connection).map_or(PLAIN_MSS, |info| info.mss.into())
            }
            _ if session.settings.stream.mss > 0 => session.settings.stream.mss.into(),
            _ => PLAIN_MSS,
        })
    }
}

/// Those that are settings and nothing else.
fn keep(settings: &mut Settings, name: i32, number: i32) -> Result<(), Errno> {
    let on = number != 0;
    match name {
        name::NODELAY => settings.stream.no_delay = on,
        name::CORK => settings.stream.cork = on,
        name::MAXSEG => {
            let wanted = if on { within(number, SEGMENTS.0, SEGMENTS.1)? } else { 0 };
            settings.stream.mss = wanted as u16;
        }
        name::KEEPIDLE => {
            settings.keepalive.idle = seconds(within(number, 1, LONGEST_KEEPALIVE)?);
        }
        name::KEEPINTVL => {
            settings.keepalive.interval = seconds(within(number, 1, LONGEST_KEEPALIVE)?);
        }
        name::KEEPCNT => {
            settings.keepalive.count = within(number, 1, MOST_PROBES)? as u8;
        }
        name::SYNCNT => {
            settings.stream.syn_retries = within(number, 1, MOST_PROBES)? as u8;
        }
        // do_tcp_setsockopt: 0 stands for the default.
        name::LINGER2 if !on => settings.linger2 = FIN_WAIT_2,
        name::LINGER2 => settings.linger2 = number.clamp(-1, LONGEST_LINGER),
        name::DEFER_ACCEPT => settings.defer_accept = retransmissions(number),
        name::WINDOW_CLAMP => {
            settings.window_clamp = if on { (number as u32).max(LEAST_CLAMP) } else { 0 };
        }
        // Taken and forgotten: Linux has given up what it switched.
        name::THIN_DUPACK => {
            within(number, 0, 1)?;
        }
        name::USER_TIMEOUT => {
            let millis = u32::try_from(number).map_err(|_| Errno::INVAL)?;
            settings.stream.user_timeout = from_millis(millis);
        }
        name::FASTOPEN => settings.fast_open_queue = number as u32,
        name::FASTOPEN_CONNECT => {
            settings.set(flag::FAST_OPEN_CONNECT, within(number, 0, 1)? == 1);
        }
        name::FASTOPEN_NO_COOKIE => {
            settings.stream.fast_open_without_cookie = within(number, 0, 1)? == 1;
        }
        name::NOTSENT_LOWAT => settings.not_sent_low_water = number as u32,
        name::RTO_MIN_US => {
            settings.stream.minimum_rto = micros(within(number, TIMES.0, TIMES.1)?);
        }
        name::DELACK_MAX_US => {
            settings.longest_ack_delay = within(number, TIMES.0, TIMES.1)? as u32;
        }
        _ => Fixed::set(FIXED, name, number)?,
    }
    Ok(())
}

fn seconds(number: i32) -> u64 {
    number as u64 * SECOND
}

fn micros(number: i32) -> u64 {
    number as u64 * 1000
}
