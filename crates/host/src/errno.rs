//! Linux's error numbers (`asm-generic/errno-base.h`, `asm-generic/errno.h`), and one that it uses within (`linux/errno.h`).

use std::fmt;

use transport::Failure;

/// Why a call was refused, as the application reads it from `errno`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// Declares the numbers with their names once.
macro_rules! errnos {
    ($($name:ident $number:literal,)*) => {
        impl Errno {
            $(#[doc = concat!("`E", stringify!($name), "`.")] pub const $name: Self = Self($number);)*

            /// Its name in `errno.h`; `E?` for numbers that no call here gives.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($number => concat!("E", stringify!($name)),)*
                    _ => "E?",
                }
            }
        }
    };
}

errnos! {
    PERM 1, NOENT 2, INTR 4, NXIO 6, BADF 9, AGAIN 11, NOMEM 12, ACCES 13, FAULT 14, BUSY 16, EXIST 17,
    NODEV 19, INVAL 22, NFILE 23, MFILE 24, PIPE 32, DOM 33, NODATA 61, NONET 64, PROTO 71, NOTSOCK 88,
    DESTADDRREQ 89, MSGSIZE 90, PROTOTYPE 91, NOPROTOOPT 92, PROTONOSUPPORT 93, SOCKTNOSUPPORT 94,
    OPNOTSUPP 95, AFNOSUPPORT 97, ADDRINUSE 98, ADDRNOTAVAIL 99, NETDOWN 100, NETUNREACH 101,
    CONNABORTED 103, CONNRESET 104, NOBUFS 105, ISCONN 106, NOTCONN 107, TIMEDOUT 110, CONNREFUSED 111,
    HOSTDOWN 112, HOSTUNREACH 113, ALREADY 114, INPROGRESS 115, IOCBQUEUED 529,
}

impl From<Failure> for Errno {
    fn from(failure: Failure) -> Self {
        match failure {
            // Reset from here, because of data that nobody would read: tcp_reset says so to both sides.
            Failure::Aborted => Self::CONNRESET,
            failure => Self(failure.errno()),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Errno {}
