//! Options of sockets: each is honoured, or refused with Linux's error number.

use std::ops::Deref;

use crate::errno::Errno;
use crate::session::Id;
use crate::sessions::Sessions;

mod socket;

/// Levels (`SOL_*`, `IPPROTO_*`).
pub(crate) mod level {
    pub(crate) const SOCKET: i32 = 1;
}

/// What an option is: its bytes, as many as there was room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Value {
    /// Bytes at most (`struct tcp_info` is the longest).
    pub const MOST: usize = 288;

    /// The first `room` of these bytes.
    pub(crate) fn of(bytes: &[u8], room: usize) -> Self {
        let mut value = Self { bytes: [0; Self::MOST], length: 0 };
        let length = bytes.len().min(room).min(Self::MOST);
        if let (Some(target), Some(source)) = (value.bytes.get_mut(..length), bytes.get(..length)) {
            target.copy_from_slice(source);
            value.length = length;
        }
        value
    }

    /// An `int`.
    pub(crate) fn int(value: i32, room: usize) -> Self {
        Self::of(&value.to_ne_bytes(), room)
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

impl Sessions {
    /// Sets an option (`setsockopt`), in any state that Linux lets it be set in.
    ///
    /// # Errors
    /// [`Errno::NOPROTOOPT`] for what is not known or cannot be honoured, [`Errno::INVAL`], [`Errno::PERM`],
    /// [`Errno::BADF`], and what else `setsockopt` says of single options.
    pub fn set_option(&mut self, id: Id, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
        self.get(id)?;
        let _ = (level, name, value);
        Err(Errno::NOPROTOOPT)
    }

    /// Gives an option (`getsockopt`); `room`: bytes that the caller takes at most. `SO_ERROR` is told once.
    ///
    /// # Errors
    /// [`Errno::NOPROTOOPT`], [`Errno::BADF`].
    pub fn option(&mut self, id: Id, level: i32, name: i32, room: usize) -> Result<Value, Errno> {
        match level {
            level::SOCKET => self.socket_option(id, name, room),
            _ => self.get(id).and(Err(Errno::NOPROTOOPT)),
        }
    }

    /// `SO_RCVTIMEO` and `SO_SNDTIMEO`: ns; `None`: for ever.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn timeouts(&self, id: Id) -> Result<(Option<u64>, Option<u64>), Errno> {
        let settings = &self.get(id)?.settings;
        Ok((settings.receive_timeout, settings.send_timeout))
    }
}
