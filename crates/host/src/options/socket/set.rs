//! What `setsockopt` does at `SOL_SOCKET`.

use crate::errno::Errno;
use crate::session::{Id, Kind};
use crate::sessions::Sessions;
use crate::settings::{Settings, flag};

use super::super::value::{Fixed, int, within, words};
use super::{FIXED, name};

/// Bytes of `net.core.rmem_max` and `wmem_max`.
const LARGEST: i32 = 4_194_304;
/// `SOCK_MIN_RCVBUF` and `SOCK_MIN_SNDBUF`: bytes.
const LEAST: (u32, u32) = (2304, 4608);
/// `TC_PRIO_INTERACTIVE`: what everybody may set (`sock_set_priority`).
const HIGHEST_PRIORITY: i32 = 6;

impl Sessions {
    pub(in crate::options) fn set_socket_option(
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
            name::PRIORITY => self.change(id, |settings| {
                // Higher ones take CAP_NET_ADMIN.
                let priority = within(number, 0, HIGHEST_PRIORITY).map_err(|_| Errno::PERM)?;
                settings.priority = priority as u8;
                Ok(())
            }),
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
            name::TIMESTAMP | name::TIMESTAMPNS | name::TIMESTAMP_NEW | name::TIMESTAMPNS_NEW
                if !stream =>
            {
                self.set_stamp(id, name, on)
            }
            name::TIMESTAMPING | name::TIMESTAMPING_NEW if !stream => {
                self.set_timestamping(id, name, number)
            }
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
