//! Meeting the daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shm::attach::{Hello, PROTOCOL, Reply, Request, VERSION, Welcome};

use crate::connection::Connection;
use crate::opened::{Queues, unpack};
use crate::{Error, Options, Port};

/// Where the daemon listens when nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/millrace/attach.sock";
/// The environment variable that names another socket.
pub const SOCKET_VARIABLE: &str = "MILLRACE_ATTACH";

/// A process that is attached to the daemon.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    name: String,
    connection: Arc<Connection>,
    welcome: Welcome,
}

impl Client {
    /// Attaches to the daemon at `path`; without one at what [`SOCKET_VARIABLE`] says, else at
    /// [`DEFAULT_SOCKET`]. `name` is shown to people: 1 to 63 bytes.
    ///
    /// # Errors
    /// [`Error::NoDaemon`]; [`Error::Version`] names both versions; [`Error::Refused`] when this process may not
    /// attach.
    pub fn attach(path: Option<&Path>, name: &str) -> Result<Self, Error> {
        let path = path.map_or_else(default_socket, Path::to_owned);
        let connection = Connection::open(&path, |socket| socket)?;
        let welcome = greet(&connection, name)?;
        Ok(Self { path, name: name.into(), connection: Arc::new(connection), welcome })
    }

    /// Attaches anew, to the same socket by the same name: after [`Error::DaemonGone`], when the daemon is back, and in a
    /// forked child. Queues of before stay dead; open new ones.
    ///
    /// # Errors
    /// As [`attach`](Self::attach); then the client is as it was.
    pub fn reattach(&mut self) -> Result<(), Error> {
        *self = Self::attach(Some(&self.path), &self.name)?;
        Ok(())
    }

    /// Ports that this client may use, as they are now.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Silent`], [`Error::Forked`].
    pub fn ports(&self) -> Result<Vec<Port>, Error> {
        match self.connection.ask(&Request::Ports)?.0 {
            Reply::Ports(ports) => Ok(ports),
            other => Err(unexpected("ports", &other)),
        }
    }

    /// Opens queues. They are closed when the last of their channels is dropped.
    ///
    /// # Errors
    /// [`Error::Refused`] says which option is wrong or not allowed; [`Error::Memory`], [`Error::Nonsense`],
    /// [`Error::Forked`].
    pub fn open(&self, options: &Options) -> Result<Queues, Error> {
        let (reply, files) = self.connection.ask(&Request::Open(options.request()))?;
        match reply {
            Reply::Opened(opened) => unpack(&self.connection, opened, files, options),
            other => Err(unexpected("queues", &other)),
        }
    }

    /// Its number, as in `millrace show clients`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.welcome.client
    }

    /// The daemon's version.
    #[must_use]
    pub fn daemon_version(&self) -> &str {
        &self.welcome.daemon
    }

    /// Whether the daemon is gone; one system call.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.connection.is_closed()
    }
}

fn default_socket() -> PathBuf {
    let named = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from)
}

fn greet(connection: &Connection, name: &str) -> Result<Welcome, Error> {
    let hello = Hello { protocol: PROTOCOL, library: VERSION.into(), name: name.into() };
    match connection.ask(&Request::Hello(hello))?.0 {
        Reply::Welcome(welcome) if welcome.protocol == PROTOCOL => Ok(welcome),
        Reply::Welcome(other) => Err(Error::Version {
            daemon: format!("version {} with protocol {}", other.daemon, other.protocol),
        }),
        other => Err(unexpected("a welcome", &other)),
    }
}

fn unexpected(wanted: &str, got: &Reply) -> Error {
    let got = match got {
        Reply::Welcome(_) => "a welcome",
        Reply::Ports(_) => "ports",
        Reply::Opened(_) => "queues",
        Reply::Started(_) => "that queues start",
        Reply::Closed(_) => "that queues are closed",
        Reply::Refused(_) => "a refusal",
    };
    Error::Nonsense(format!("asked for {wanted}, it answered {got}"))
}
