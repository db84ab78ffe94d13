//! Values of options: bytes from and to the application.

use std::ops::Deref;

use crate::errno::Errno;

/// What an option is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// `SOL_SOCKET`, `IPPROTO_TCP` ...
    pub level: i32,
    /// Its name there.
    pub name: i32,
    /// Its bytes.
    pub value: Vec<u8>,
}

/// What an option is: its bytes, as many as there was room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Value {
    /// Bytes at most (`struct tcp_info` is the longest).
    pub const MOST: usize = 256;

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

    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self::of(&[], 0)
    }

    /// An `int`.
    pub(crate) fn int(value: i32, room: usize) -> Self {
        Self::of(&value.to_ne_bytes(), room)
    }

    /// An `int`, or one byte when there is no room for that and it fits (`do_ip_getsockopt`).
    pub(crate) fn int_or_byte(value: i32, room: usize) -> Self {
        match u8::try_from(value) {
            Ok(byte) if (1..4).contains(&room) => Self::of(&[byte], 1),
            _ => Self::int(value, room),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

/// An `int`; more bytes do not matter.
pub(super) fn int(value: &[u8]) -> Result<i32, Errno> {
    let bytes = value.first_chunk::<4>().ok_or(Errno::INVAL)?;
    Ok(i32::from_ne_bytes(*bytes))
}

/// An `int`, or a byte when there are no more; nothing is 0 (`do_ip_setsockopt`).
pub(super) fn int_or_byte(value: &[u8]) -> i32 {
    int(value).unwrap_or_else(|_| value.first().map_or(0, |byte| i32::from(*byte)))
}

/// An `int` within bounds.
pub(super) fn within(value: i32, least: i32, most: i32) -> Result<i32, Errno> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(Errno::INVAL) }
}

/// Two words of 64 bits.
pub(super) fn words(value: &[u8]) -> Result<(i64, i64), Errno> {
    let bytes = value.first_chunk::<16>().ok_or(Errno::INVAL)?;
    let bits = u128::from_le_bytes(*bytes);
    Ok((i64::from_le(bits as i64), i64::from_le((bits >> 64) as i64)))
}

/// A setting that is as it is: may be said, and cannot be changed.
pub(super) struct Fixed {
    name: i32,
    value: i32,
    otherwise: Errno,
    settable: bool,
}

impl Fixed {
    pub(super) const fn new(name: i32, value: i32, otherwise: Errno) -> Self {
        Self { name, value, otherwise, settable: true }
    }

    /// One that can only be read.
    pub(super) const fn read_only(name: i32, value: i32, otherwise: Errno) -> Self {
        Self { name, value, otherwise, settable: false }
    }

    /// What it is.
    pub(super) fn get(all: &[Self], name: i32) -> Result<i32, Errno> {
        let found = all.iter().find(|fixed| fixed.name == name);
        found.map(|fixed| fixed.value).ok_or(Errno::NOPROTOOPT)
    }

    /// Whether it may be said.
    pub(super) fn set(all: &[Self], name: i32, value: i32) -> Result<(), Errno> {
        let found = all.iter().find(|fixed| fixed.name == name).ok_or(Errno::NOPROTOOPT)?;
        if found.settable && found.value == value { Ok(()) } else { Err(found.otherwise) }
    }
}
