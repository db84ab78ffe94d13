//! Why a connection ended, or what the network says about it.

/// Declares the failures with Linux's numbers once.
macro_rules! failures {
    ($($variant:ident $errno:literal $what:literal,)*) => {
        /// Why a connection ended. ICMP errors keep their kinds, so that `SO_ERROR` can tell them apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum Failure {
            $(#[doc = concat!($what, ".")] #[error($what)] $variant,)*
        }

        impl Failure {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// What Linux calls it (`asm-generic/errno.h`).
            #[must_use]
            pub const fn errno(self) -> i32 {
                match self {
                    $(Self::$variant => $errno,)*
                }
            }
        }
    };
}

failures! {
    Refused 111 "the peer refused the connection",
    Reset 104 "the peer reset the connection",
    BrokenPipe 32 "the peer reset the connection after it had closed its direction",
    TimedOut 110 "the peer did not answer in time",
    NetworkUnreachable 101 "the network cannot be reached",
    HostUnreachable 113 "the host cannot be reached",
    HostUnknown 112 "the host is unknown to the network",
    HostIsolated 64 "the host is isolated from the network",
    ProtocolUnreachable 92 "the host does not speak the protocol",
    Prohibited 13 "a filter on the path prohibits it",
    SourceRoute 95 "a source route failed on the path",
    Parameter 71 "a host on the path could not read the header",
    Aborted 103 "the connection was aborted",
    NoBuffers 105 "there were no buffers for the connection",
}

impl Failure {
    /// What an ICMPv4 'destination unreachable' says, and whether it is hard (as Linux's `icmp_err_convert`; RFC 1122
    /// 4.2.3.9). `None`: not a failure.
    pub(crate) fn of_unreachable_v4(code: u8) -> Option<(Self, bool)> {
        Some(match code {
            0 | 11 => (Self::NetworkUnreachable, false),
            1 | 12 => (Self::HostUnreachable, false),
            2 => (Self::ProtocolUnreachable, true),
            3 => (Self::Refused, true),
            5 => (Self::SourceRoute, false),
            6 | 9 => (Self::NetworkUnreachable, true),
            7 => (Self::HostUnknown, true),
            8 => (Self::HostIsolated, true),
            10 | 13..=15 => (Self::HostUnreachable, true),
            _ => return None,
        })
    }

    /// The same of ICMPv6 (Linux's `icmpv6_err_convert`).
    pub(crate) fn of_unreachable_v6(code: u8) -> Option<(Self, bool)> {
        Some(match code {
            0 => (Self::NetworkUnreachable, false),
            1 | 5 | 6 => (Self::Prohibited, true),
            2 | 3 => (Self::HostUnreachable, false),
            4 => (Self::Refused, true),
            _ => return None,
        })
    }
}
