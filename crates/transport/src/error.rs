//! Why a call was refused, each with Linux's number for it (`asm-generic/errno.h`).

use crate::failure::Failure;

/// Why a call on a connection or listener was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// The handle's socket is gone.
    #[error("the handle's socket is gone: handles end with close and abort")]
    Gone,
    /// The connection is not established yet.
    #[error("the connection is not established yet: wait for Connected")]
    NotConnected,
    /// This side has said that it sends no more.
    #[error("this side has shut its direction down")]
    Shutdown,
    /// There is no urgent data, or it stays in the stream.
    #[error("there is no urgent data, or it stays in the stream")]
    NoUrgent,
    /// The connection failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl SocketError {
    /// `EBADF`, `ENOTCONN`, `EPIPE`, `EINVAL`, or the failure's own.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::Gone => 9,
            Self::NotConnected => 107,
            Self::Shutdown => 32,
            Self::NoUrgent => 22,
            Self::Failed(failure) => failure.errno(),
        }
    }
}

/// Why binding or listening was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Another socket has the address and port, and does not share them.
    #[error("another socket has this address and port")]
    InUse,
    /// No free port.
    #[error("every ephemeral port of this address is in use")]
    NoPort,
    /// Multicast or broadcast.
    #[error("this address cannot be an end of a connection")]
    Address,
    /// The handle's socket is closed.
    #[error("the handle's socket is closed")]
    Gone,
}

impl BindError {
    /// `EADDRINUSE`, `EADDRNOTAVAIL` or `EBADF`.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::InUse | Self::NoPort => 98,
            Self::Address => 99,
            Self::Gone => 9,
        }
    }
}

/// Why opening a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The same addresses and ports are in use.
    #[error("a connection with these addresses and ports exists")]
    InUse,
    /// No free local port.
    #[error("every ephemeral port to this peer is in use")]
    NoPort,
    /// The table of connections is full.
    #[error("the table of connections is full; raise its capacity")]
    Full,
    /// Addresses of different IP versions, multicast, unspecified, port 0, or not the bound one.
    #[error("one of the addresses cannot be an end of the connection")]
    Address,
    /// No data buffers.
    #[error("there are no buffers for the connection")]
    NoBuffers,
    /// The handle's socket is closed, or listens.
    #[error("the handle's socket is closed, or listens")]
    Gone,
}

impl ConnectError {
    /// `EADDRNOTAVAIL`, `ENOBUFS`, `ENETUNREACH` or `EISCONN`.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::InUse | Self::NoPort => 99,
            Self::Full | Self::NoBuffers => 105,
            Self::Address => 101,
            Self::Gone => 106,
        }
    }
}
