//! What travels, and how: one declaration for both directions.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tables::PagedList;

use super::bytes::{Reader, Writer};
use super::error::ImportError;
use crate::sequence::Seq;

/// Something that goes into the bytes of a connection, and comes out of bytes that nobody trusts.
pub trait Carried: Sized {
    /// Writes it.
    fn put(&self, to: &mut Writer);

    /// Reads it.
    ///
    /// # Errors
    /// [`ImportError`]: missing, or a value that it cannot have.
    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError>;
}

/// Declares how a struct travels: all of its fields, in the order of the format. A field that is not named does
/// not compile. `@ time`: ns by the stack's clock; `@ micros`, `@ millis`: parts of it modulo 2^32; `@ stamp`: what
/// our time stamps are ahead of it; `@ local`: does not travel. `in RANGE`: other values are refused.
#[macro_export]
macro_rules! carried {
    ($name:ident $(<$data:ident>)? {
        $($field:ident $(@ $kind:ident)? $(in $range:expr)?),* $(,)?
    }) => {
        impl $(<$data>)? $crate::carried::Carried for $name $(<$data>)? {
            fn put(&self, to: &mut $crate::carried::Writer) {
                let Self { $($field),* } = self;
                $($crate::carried!(@put to, $field $(, $kind)?);)*
            }

            fn take(
                from: &mut $crate::carried::Reader<'_>,
            ) -> Result<Self, $crate::carried::ImportError> {
                $(
                    from.field = stringify!($field);
                    let $field = $crate::carried!(@take from $(, $kind)?);
                    $(if !($range).contains(&$field) {
                        from.field = stringify!($field);
                        return from.refuse();
                    })?
                )*
                Ok(Self { $($field),* })
            }
        }
    };
    (@put $to:ident, $field:ident) => { $crate::carried::Carried::put($field, $to) };
    (@put $to:ident, $field:ident, local) => { let _ = $field; };
    (@put $to:ident, $field:ident, $kind:ident) => { $to.$kind(*$field) };
    (@take $from:ident) => { $crate::carried::Carried::take($from)? };
    (@take $from:ident, local) => { Default::default() };
    (@take $from:ident, $kind:ident) => { $from.$kind()? };
}

/// Declares the numbers of an enumeration.
#[macro_export]
macro_rules! carried_as {
    ($name:ty { $($variant:pat => $code:literal => $value:expr),* $(,)? }) => {
        impl $crate::carried::Carried for $name {
            fn put(&self, to: &mut $crate::carried::Writer) {
                let code: u8 = match self { $($variant => $code),* };
                $crate::carried::Carried::put(&code, to);
            }

            fn take(
                from: &mut $crate::carried::Reader<'_>,
            ) -> Result<Self, $crate::carried::ImportError> {
                match <u8 as $crate::carried::Carried>::take(from)? {
                    $($code => Ok($value),)*
                    _ => from.refuse(),
                }
            }
        }
    };
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Carried for $number {
            fn put(&self, to: &mut Writer) {
                to.array(self.to_le_bytes());
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
                Ok(Self::from_le_bytes(from.array()?))
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, i32, f32, f64);

/// IP version, then the address.
impl Carried for IpAddr {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::V4(ip) => {
                4u8.put(to);
                to.array(ip.octets());
            }
            Self::V6(ip) => {
                6u8.put(to);
                to.array(ip.octets());
            }
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        match u8::take(from)? {
            4 => Ok(Ipv4Addr::from(from.array::<4>()?).into()),
            6 => Ok(Ipv6Addr::from(from.array::<16>()?).into()),
            _ => from.refuse(),
        }
    }
}

impl Carried for Ipv6Addr {
    fn put(&self, to: &mut Writer) {
        to.array(self.octets());
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self::from(from.array::<16>()?))
    }
}

impl Carried for SocketAddr {
    fn put(&self, to: &mut Writer) {
        self.ip().put(to);
        self.port().put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self::new(Carried::take(from)?, Carried::take(from)?))
    }
}

impl Carried for bool {
    fn put(&self, to: &mut Writer) {
        u8::from(*self).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => from.refuse(),
        }
    }
}

impl Carried for Seq {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self(u32::take(from)?))
    }
}

impl<T: Carried> Carried for Option<T> {
    fn put(&self, to: &mut Writer) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Carried> Carried for Box<T> {
    fn put(&self, to: &mut Writer) {
        (**self).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self::new(T::take(from)?))
    }
}

impl<T: Carried, U: Carried> Carried for (T, U) {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok((T::take(from)?, U::take(from)?))
    }
}

impl<T: Carried + Default + Copy, const N: usize> Carried for [T; N] {
    fn put(&self, to: &mut Writer) {
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::take(from)?;
        }
        Ok(values)
    }
}

/// Values, behind their count.
fn put_all<'a, T: Carried + 'a>(
    count: usize,
    values: impl Iterator<Item = &'a T>,
    to: &mut Writer,
) {
    (count as u32).put(to);
    values.for_each(|value| value.put(to));
}

/// How many follow. Each takes a byte at least; memory follows what is there, not what is claimed.
fn take_count(from: &mut Reader<'_>) -> Result<usize, ImportError> {
    let count = u32::take(from)? as usize;
    if count > from.left() {
        return Err(ImportError::Short(from.field));
    }
    Ok(count)
}

impl<T: Carried> Carried for VecDeque<T> {
    fn put(&self, to: &mut Writer) {
        put_all(self.len(), self.iter(), to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        (0..take_count(from)?).map(|_| T::take(from)).collect()
    }
}

impl<T: Carried> Carried for PagedList<T> {
    fn put(&self, to: &mut Writer) {
        put_all(self.len(), self.iter(), to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        let mut list = Self::new();
        for _ in 0..take_count(from)? {
            list.push_back(T::take(from)?);
        }
        Ok(list)
    }
}
