//! The look-up tables of crate `tables` as the code that serves both families sees them.

use tables::{Lpm4, Lpm6, LpmError, Prefix as Found};
use wire::prefix::{Ipv4Prefix, Ipv6Prefix};

use super::RouteError;
use super::fib::Table;

macro_rules! table {
    ($table:ident, $key:ident, $family:literal) => {
        impl Table<$key> for $table {
            fn insert(&mut self, key: $key, value: u32) -> Result<bool, RouteError> {
                let full = || RouteError::TableFull { family: $family };
                let prefix = Found::new(key.bits(), key.length()).map_err(|_| full())?;
                if self.get(prefix) == Some(value) {
                    return Ok(false);
                }
                $table::insert(self, prefix, value).map_err(|_: LpmError| full())?;
                Ok(true)
            }

            fn remove(&mut self, key: $key) -> bool {
                let prefix = Found::new(key.bits(), key.length());
                prefix.is_ok_and(|prefix| $table::remove(self, prefix).is_some())
            }
        }
    };
}

table!(Lpm4, Ipv4Prefix, 4);
table!(Lpm6, Ipv6Prefix, 6);
