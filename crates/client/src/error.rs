//! What can go wrong, and what to do then.

use std::io;
use std::path::PathBuf;

use shm::attach::{ChannelError, PROTOCOL, Refusal, VERSION};
use shm::{LayoutError, PushError, SegmentError};

use crate::Packet;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens at the attach socket, or this process may not connect.
    #[error(
        "no daemon at {path}: {source}; is millraced running, is this its socket (MILLRACE_ATTACH names another for \
         packets, MILLRACE_SESSIONS one for sockets), and may this user connect to it?"
    )]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The daemon speaks another protocol. `daemon` is what it says of itself.
    #[error(
        "this libmillrace is version {VERSION} with protocol {PROTOCOL}; the daemon says: {daemon}; install the same \
         version of both"
    )]
    Version {
        /// Its version and protocol.
        daemon: String,
    },
    /// The daemon says no, and why.
    #[error("the daemon refuses: {0}")]
    Refused(Refusal),
    /// The daemon has ended or has closed the connection.
    #[error(
        "the daemon is gone: its queues are over; attach again (reattach) when it is back, and open queues anew"
    )]
    DaemonGone,
    /// The daemon did not answer.
    #[error("the daemon has not answered within {0} s; the connection is given up: attach again")]
    Silent(u64),
    /// The daemon said something that makes no sense: nothing of it was used.
    #[error("the daemon's answer makes no sense: {0}; are library and daemon of one release?")]
    Nonsense(String),
    /// The shared memory could not be had.
    #[error(transparent)]
    Memory(#[from] SegmentError),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// The daemon has not emptied the queue yet.
    #[error("the queue to the daemon is full: send again later, or drop the packet")]
    Full,
    /// A packet that can never be sent: none or too many bytes.
    #[error(transparent)]
    Unsendable(PushError),
    /// This process was forked from the one that attached: the memory is not mapped here, the session is the parent's.
    #[error(
        "this process was forked from the one that attached, whose queues these are: attach anew"
    )]
    Forked,
    /// A packet that another channel received.
    #[error("the packet is of another channel: send and release it there")]
    Foreign,
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}

impl From<ChannelError> for Error {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Closed => Self::DaemonGone,
            ChannelError::System(source) => Self::System { what: "the attach socket", source },
            other => Self::Nonsense(other.to_string()),
        }
    }
}

impl From<PushError> for Error {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Full => Self::Full,
            other => Self::Unsendable(other),
        }
    }
}

impl From<LayoutError> for Error {
    fn from(error: LayoutError) -> Self {
        Self::Nonsense(error.to_string())
    }
}

/// A packet that was not sent: it is still the caller's, to try again or to release.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unsent {
    /// The packet.
    pub packet: Packet,
    /// Why.
    pub error: Error,
}
