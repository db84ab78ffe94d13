//! Options of `SOL_SOCKET`.

use crate::errno::Errno;
use crate::session::{Domain, Id, Kind, Role};
use crate::sessions::Sessions;

use super::Value;

/// Names (`asm-generic/socket.h`).
mod name {
    pub(super) const TYPE: i32 = 3;
    pub(super) const ERROR: i32 = 4;
    pub(super) const ACCEPTCONN: i32 = 30;
    pub(super) const PROTOCOL: i32 = 38;
    pub(super) const DOMAIN: i32 = 39;
}

impl Sessions {
    pub(super) fn socket_option(&mut self, id: Id, name: i32, room: usize) -> Result<Value, Errno> {
        let session = self.get(id)?;
        let stream = session.kind() == Kind::Stream;
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
            _ => return Err(Errno::NOPROTOOPT),
        };
        Ok(Value::int(value, room))
    }

    /// Why it failed, told once (`sock_error`); 0: it did not.
    fn error(&mut self, id: Id) -> i32 {
        let Ok(session) = self.get_mut(id) else { return 0 };
        match (session.take_error(), session.role) {
            (Err(error), _) => error.0,
            (Ok(()), Role::Connection(connection)) => {
                self.stack.take_error(connection).map_or(0, |failure| failure.errno())
            }
            (Ok(()), _) => 0,
        }
    }
}
