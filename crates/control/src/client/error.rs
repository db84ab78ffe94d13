//! Why a question was not answered, and what to do about it.

use std::path::PathBuf;
use std::time::Duration;

use crate::api::{API_VERSION, ApiError};

/// The daemon could not be asked, or refused: `what is wrong; what would be right`.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no socket.
    #[error(
        "no socket at {}; is millraced running? start it with 'millrace run --config FILE' or \
         'systemctl start millraced', or name its socket with --socket", .0.display()
    )]
    NoSocket(PathBuf),
    /// A socket that a daemon left behind.
    #[error(
        "nobody listens on {}; millraced has ended: start it with 'millrace run --config FILE' or \
         'systemctl start millraced'", .0.display()
    )]
    NobodyListens(PathBuf),
    /// The socket belongs to others.
    #[error(
        "no permission to use {}; be root, or a member of the group that daemon.group names",
        .0.display()
    )]
    Permission(PathBuf),
    /// The socket cannot be used for another reason.
    #[error("cannot connect to {} ({error}); name the daemon's socket with --socket", .socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// No answer in time.
    #[error(
        "no answer on {} within {} s; see the daemon's log, or give it more time with --timeout",
        .socket.display(), .timeout.as_secs()
    )]
    Timeout {
        /// The socket.
        socket: PathBuf,
        /// The bound.
        timeout: Duration,
    },
    /// The connection broke, or the other side does not speak HTTP.
    #[error("the daemon did not answer ({0}); see its log: it may have ended meanwhile")]
    Http(#[source] hyper::Error),
    /// The daemon refused.
    #[error("{}; {}", .error.message, .error.remedy)]
    Refused {
        /// HTTP status.
        status: u16,
        /// What it says.
        error: Box<ApiError>,
    },
    /// A status without a reason.
    #[error(
        "the daemon answered {path} with status {status}; \
         use millrace and millraced of the same version"
    )]
    Status {
        /// HTTP status.
        status: u16,
        /// What was asked.
        path: String,
    },
    /// Another version.
    #[error(
        "millraced {version} has version {api} of the API, this program needs {API_VERSION}; \
         use millrace and millraced of the same version"
    )]
    Version {
        /// The daemon's version of the API.
        api: u32,
        /// The daemon's version.
        version: String,
    },
    /// An answer of another form.
    #[error(
        "the answer is not what was expected ({0}); use millrace and millraced of the same version"
    )]
    Decode(#[source] serde_json::Error),
    /// A request that cannot be written as JSON.
    #[error("the request cannot be written as JSON ({0}); report this")]
    Encode(#[source] serde_json::Error),
    /// A path that is none.
    #[error("'{0}' is not a path of the API; see /openapi.json")]
    Path(String),
    /// The answer would not end.
    #[error("the answer is longer than 512 MiB; ask for less at a time")]
    TooLong,
}
