//! When datagrams came: `SO_TIMESTAMP` and its kin (`sock_set_timestamp`, `sock_set_timestamping`).

use crate::errno::Errno;
use crate::session::Id;
use crate::sessions::Sessions;
use crate::settings::{Settings, flag};

use super::name;

/// Bits of `SO_TIMESTAMPING` (`uapi/linux/net_tstamp.h`): there are nineteen.
const KNOWN: u32 = (1 << 19) - 1;
const RECEIVED_BY_SOFTWARE: u32 = 1 << 3;
const BY_SOFTWARE: u32 = 1 << 4;
const NUMBERED: u32 = 1 << 7;
const WITHOUT_DATA: u32 = 1 << 11;
const WITH_STATISTICS: u32 = 1 << 12;
const BY_CLOCK: u32 = 1 << 15;
const NUMBERED_AS_TCP: u32 = 1 << 16;

/// How the application wants to be told when a datagram came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// `SCM_TIMESTAMP`: a `struct timeval`.
    pub micros: bool,
    /// `SCM_TIMESTAMPNS`: a `struct timespec`.
    pub nanos: bool,
    /// `SCM_TIMESTAMPING`: three of them, of which the first counts.
    pub three: bool,
    /// By the names of those with 64-bit times (`SO_TIMESTAMP_NEW` and its kin).
    pub new: bool,
}

transport::carried!(Stamps { micros, nanos, three, new });

impl Settings {
    pub(in crate::options) fn stamps(&self) -> Stamps {
        let nanos = self.has(flag::STAMPED_NANOS);
        let wanted = BY_SOFTWARE | RECEIVED_BY_SOFTWARE;
        Stamps {
            micros: self.has(flag::STAMPED) && !nanos,
            nanos: self.has(flag::STAMPED) && nanos,
            three: self.timestamping & wanted == wanted,
            new: self.has(flag::STAMPED_NEW),
        }
    }
}

impl Sessions {
    /// `SO_TIMESTAMP`, `SO_TIMESTAMPNS`, and their new names.
    pub(super) fn set_stamp(&mut self, id: Id, name: i32, on: bool) -> Result<(), Errno> {
        self.change(id, |settings| {
            settings.set(flag::STAMPED, on);
            if on {
                let is_new = matches!(name, name::TIMESTAMP_NEW | name::TIMESTAMPNS_NEW);
                settings.set(flag::STAMPED_NEW, is_new);
            }
            let is_nanos = matches!(name, name::TIMESTAMPNS | name::TIMESTAMPNS_NEW);
            settings.set(flag::STAMPED_NANOS, on && is_nanos);
            Ok(())
        })
    }

    /// `SO_TIMESTAMPING`, and its new name.
    pub(super) fn set_timestamping(&mut self, id: Id, name: i32, bits: i32) -> Result<(), Errno> {
        let bits = bits as u32;
        let lacks = |one: u32, other: u32| bits & one != 0 && bits & other == 0;
        if bits & !KNOWN != 0
            || lacks(NUMBERED_AS_TCP, NUMBERED)
            || lacks(WITH_STATISTICS, WITHOUT_DATA)
            || bits & BY_CLOCK != 0
        {
            return Err(Errno::INVAL);
        }
        self.change(id, |settings| {
            settings.timestamping = bits;
            settings.set(flag::STAMPED_NEW, name == name::TIMESTAMPING_NEW);
            Ok(())
        })
    }

    /// What such an option is.
    pub(super) fn stamp_option(&self, id: Id, name: i32) -> Result<i32, Errno> {
        let settings = &self.get(id)?.settings;
        let new = settings.has(flag::STAMPED_NEW);
        let (stamped, nanos) = (settings.has(flag::STAMPED), settings.has(flag::STAMPED_NANOS));
        Ok(match name {
            name::TIMESTAMP => (stamped && !new && !nanos).into(),
            name::TIMESTAMPNS => (nanos && !new).into(),
            name::TIMESTAMP_NEW => (stamped && new).into(),
            name::TIMESTAMPNS_NEW => (nanos && new).into(),
            name::TIMESTAMPING_NEW if !new => 0,
            _ => settings.timestamping as i32,
        })
    }
}
