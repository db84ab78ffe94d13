//! Options of `IPPROTO_UDP`.

use crate::errno::Errno;
use crate::session::Id;
use crate::sessions::Sessions;

use super::Value;
use super::value::{Fixed, int, within};

/// `UDP_SEGMENT` (`uapi/linux/udp.h`).
const SEGMENT: i32 = 103;

/// What is as it is.
const FIXED: &[Fixed] = &[
    Fixed::new(1, 0, Errno::NOPROTOOPT),   // UDP_CORK
    Fixed::new(100, 0, Errno::NOPROTOOPT), // UDP_ENCAP
    Fixed::new(101, 0, Errno::NOPROTOOPT), // UDP_NO_CHECK6_TX
    Fixed::new(102, 0, Errno::NOPROTOOPT), // UDP_NO_CHECK6_RX
    Fixed::new(104, 0, Errno::NOPROTOOPT), // UDP_GRO
];

impl Sessions {
    pub(super) fn set_udp_option(&mut self, id: Id, name: i32, value: &[u8]) -> Result<(), Errno> {
        let number = int(value)?;
        if name != SEGMENT {
            return Fixed::set(FIXED, name, number);
        }
        let size = within(number, 0, u16::MAX.into())? as u16;
        self.change(id, |settings| {
            settings.segment = size;
            Ok(())
        })
    }

    pub(super) fn udp_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let value = match name {
            SEGMENT => self.get(id)?.settings.segment.into(),
            _ => Fixed::get(FIXED, name)?,
        };
        Ok(Value::int(value, room))
    }
}
