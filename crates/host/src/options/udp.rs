//! Options of `IPPROTO_UDP`.

use crate::errno::Errno;
use crate::session::Id;
use crate::sessions::Sessions;
use crate::settings::flag;

use super::Value;
use super::value::{Fixed, int, within};

/// `UDP_CORK`, `UDP_SEGMENT` and `UDP_GRO` (`uapi/linux/udp.h`).
const CORK: i32 = 1;
const SEGMENT: i32 = 103;
const GRO: i32 = 104;

/// What is as it is.
const FIXED: &[Fixed] = &[
    Fixed::new(100, 0, Errno::NOPROTOOPT), // UDP_ENCAP
    Fixed::new(101, 0, Errno::NOPROTOOPT), // UDP_NO_CHECK6_TX
    Fixed::new(102, 0, Errno::NOPROTOOPT), // UDP_NO_CHECK6_RX
];

impl Sessions {
    pub(super) fn set_udp_option(&mut self, id: Id, name: i32, value: &[u8]) -> Result<(), Errno> {
        let number = int(value)?;
        match name {
            SEGMENT => {}
            GRO => return self.switch(id, flag::GATHERED, number != 0),
            CORK => {
                self.switch(id, flag::CORK, number != 0)?;
                return if number == 0 { self.push(id) } else { Ok(()) };
            }
            _ => return Fixed::set(FIXED, name, number),
        }
        let size = within(number, 0, u16::MAX.into())? as u16;
        self.change(id, |settings| {
            settings.segment = size;
            Ok(())
        })
    }

    pub(super) fn udp_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let value = match name {
            CORK => self.get(id)?.settings.has(flag::CORK).into(),
            SEGMENT => self.get(id)?.settings.segment.into(),
            GRO => self.get(id)?.settings.has(flag::GATHERED).into(),
            _ => Fixed::get(FIXED, name)?,
        };
        Ok(Value::int(value, room))
    }
}
