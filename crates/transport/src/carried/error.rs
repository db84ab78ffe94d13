//! Why bytes are refused.

/// Why bytes were not taken for a connection. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// They do not begin as an exported connection does.
    #[error("these bytes are no exported connection: they do not begin with 'MRTC'")]
    Format,
    /// Another version of the format.
    #[error("format version {0}; this stack reads version {known}", known = super::VERSION)]
    Version(u16),
    /// They end too early.
    #[error("the bytes end within '{0}': a part is missing")]
    Short(&'static str),
    /// There are more than the connection has.
    #[error("{0} bytes follow behind the connection")]
    Surplus(usize),
    /// A value that no connection has.
    #[error("'{0}' has a value that it cannot have here")]
    Value(&'static str),
    /// The same addresses and ports are in use.
    #[error("a connection with these addresses and ports exists")]
    InUse,
    /// The table of connections is full.
    #[error("the table of connections is full; raise its capacity")]
    Full,
    /// It was not accepted yet, and nothing listens at its address here.
    #[error("the connection waits for a listener, and there is none at its address: listen first")]
    NoListener,
    /// There are no FIFOs for its data, or too small ones.
    #[error("there are no data buffers for the connection, or too small ones")]
    NoBuffers,
    /// FIFOs were given though the bytes hold the data, or the other way round.
    #[error("FIFOs must be given exactly when the connection was exported in place")]
    Fifos,
}
