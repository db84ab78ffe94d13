//! Why a connection does not move.

/// Why a connection was not exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The handle's connection is gone.
    #[error("the handle's connection is gone")]
    Gone,
    /// What arrived out of order, or waits to be sent, could not be read from its FIFO.
    #[error("the FIFO does not hold what the connection has in it; move it in place")]
    Fifo,
}
