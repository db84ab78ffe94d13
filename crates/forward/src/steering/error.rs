//! Why a change of the steering is refused.

use graph::StackId;

use super::ListenerId;

/// Why a change is refused. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SteeringError {
    /// No such stack, or none any more.
    #[error("there is no stack {0}: it has ended")]
    NoStack(StackId),
    /// No such listener, or the stack is none of its members.
    #[error("stack {stack} is no member of listener {listener}")]
    NoMember {
        /// The stack.
        stack: StackId,
        /// The listener.
        listener: ListenerId,
    },
    /// Port 0.
    #[error("port 0 can neither be served nor leased")]
    NoPort,
    /// The port is leased.
    #[error("port {port} is leased to stack {by} for its own connections")]
    Leased {
        /// The port.
        port: u16,
        /// Who has it.
        by: StackId,
    },
    /// The port is served.
    #[error("port {0} is served by a listener")]
    Served(u16),
    /// The stack does not have that lease.
    #[error("stack {stack} does not lease the ports from {first} on")]
    NoLease {
        /// The stack.
        stack: StackId,
        /// First port.
        first: u16,
    },
    /// All places for stacks are taken, or all but those kept for root.
    #[error("there are {0} stacks already")]
    TooManyStacks(usize),
    /// All places for listeners are taken, or all but those kept for root.
    #[error("there are {0} listeners already")]
    TooManyListeners(usize),
    /// One stack serves too many listeners.
    #[error("the stack serves {0} listeners already")]
    TooManyOfStack(usize),
    /// All places for flows that have moved are taken.
    #[error("{0} connections have moved already")]
    TooManyRedirects(usize),
    /// The ends are of different versions of IP.
    #[error("the ends of the flow are of different versions of IP")]
    NoFlow,
    /// The stack may not speak from there.
    #[error("stack {0} neither leases the connection's local port nor serves its local address")]
    NotIts(StackId),
    /// The flow is another stack's.
    #[error("the connection belongs to stack {0}")]
    Belongs(StackId),
    /// A listener has a member for each bucket.
    #[error("the listener has {0} members already")]
    TooManyMembers(usize),
}
