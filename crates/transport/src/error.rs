//! Why a call was refused.

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
    /// The connection failed.
    #[error(transparent)]
    Failed(#[from] crate::failure::Failure),
}

/// Why listening was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Another listener has the address and port.
    #[error("another listener has this address and port")]
    InUse,
    /// Port 0.
    #[error("port 0 cannot be listened on: choose one")]
    Port,
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
    /// Addresses of different IP versions, multicast, unspecified, or port 0.
    #[error("one of the addresses cannot be an end of a connection")]
    Address,
    /// No data buffers.
    #[error("there are no buffers for the connection")]
    NoBuffers,
}
