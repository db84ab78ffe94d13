//! The API socket: one daemon holds it, a stale one is removed, its group may use it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, listen, socket_with,
};
use shm::bell::forbid_descriptors;

/// Who may connect to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    /// Root, and the members of this group if there is one.
    Group(Option<&'a str>),
    /// Everybody: who it is decides later.
    All,
}

/// What a socket carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    /// Bytes: the API.
    Bytes,
    /// Messages: clients attach.
    Messages,
}

impl Access<'_> {
    fn mode(self) -> u32 {
        match self {
            Self::Group(_) => 0o660,
            Self::All => 0o666,
        }
    }
}

/// Connections that wait to be accepted at most; `net.core.somaxconn` may be less.
const BACKLOG: i32 = 1024;

const CLOEXEC: SocketFlags = SocketFlags::CLOEXEC;

/// How long a daemon that was killed may still hold its lock: the kernel takes its memory down first.
const DYING: Duration = Duration::from_secs(1);
/// Longest path of a Unix socket: bytes (`sun_path` holds 108 with its end).
const PATH_LIMIT: usize = 107;

/// Why the socket could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error(
        "{path}: {holder} serves this socket already; stop that one, or choose another socket \
         with --socket"
    )]
    Held { path: String, holder: String },
    #[error("{0}: this is not a socket, and is left alone; choose another path with --socket")]
    NotASocket(String),
    #[error("{0}: a socket's path has at most 107 bytes; choose a shorter one with --socket")]
    TooLong(String),
    #[error("no group named {0} in /etc/group; create it (groupadd {0}) or change daemon.group")]
    UnknownGroup(String),
    #[error("{path}: cannot {action}: {source}")]
    System { path: String, action: &'static str, source: io::Error },
}

/// A listening API socket that no other daemon can take. Dropping it removes the socket.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
    listener: UnixListener,
}

impl Claim {
    /// Takes the socket at `path`.
    ///
    /// Errors: [`SocketError::Held`] when another process serves it; others as they say.
    pub(crate) fn take(
        path: &Path,
        access: Access<'_>,
        carries: Carries,
    ) -> Result<Self, SocketError> {
        if path.as_os_str().len() > PATH_LIMIT {
            return Err(SocketError::TooLong(path.display().to_string()));
        }
        let group = match access {
            Access::Group(group) => group.map(group_id).transpose()?,
            Access::All => None,
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed(folder, "create this folder"))?;
        }
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let lock = lock(path, &lock_path)?;
        remove_stale(path)?;
        let listener = bind(path, access, carries)?;
        let claim = Self { path: path.to_owned(), lock_path, _lock: lock, listener };
        if group.is_some() {
            chown(path, None, group).map_err(failed(path, "give the socket to its group"))?;
        }
        fs::set_permissions(path, Permissions::from_mode(access.mode()))
            .map_err(failed(path, "set the socket's permissions"))?;
        claim.listener.set_nonblocking(true).map_err(failed(path, "set up the socket"))?;
        Ok(claim)
    }

    /// The listening socket, non-blocking.
    pub(crate) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        for path in [&self.path, &self.lock_path] {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!("{}: cannot remove: {error}", path.display());
            }
        }
    }
}

/// The lock is what decides between two daemons; it goes with its process, however that ends.
fn lock(path: &Path, lock_path: &Path) -> Result<File, SocketError> {
    let patience = Instant::now() + DYING;
    loop {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(lock_path)
            .map_err(failed(lock_path, "open the lock file"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < patience => {
                std::thread::sleep(DYING / 20);
                continue;
            }
            Err(Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let read = (&file).take(20).read_to_string(&mut pid);
                let holder = match (read, pid.trim()) {
                    (Ok(_), pid) if !pid.is_empty() => format!("millraced with process id {pid}"),
                    _ => "another millraced".to_owned(),
                };
                return Err(SocketError::Held { path: path.display().to_string(), holder });
            }
            Err(error) => return Err(failed(lock_path, "lock the lock file")(error.into())),
        }
        // A daemon that ends removes the file: a lock on a file without a name holds nobody off.
        let ours = file.metadata().map_err(failed(lock_path, "look at the lock file"))?;
        if fs::metadata(lock_path).is_ok_and(|named| named.ino() == ours.ino()) {
            let pid = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            pid.map_err(failed(lock_path, "write the lock file"))?;
            return Ok(file);
        }
    }
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.display().to_string()));
    }
    // To a socket that carries messages a stream does not connect, which tells that it is in use.
    let held = match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => {
            error.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()) && {
                let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, CLOEXEC, None);
                let address = SocketAddrUnix::new(path);
                socket.and_then(|socket| connect(&socket, &address?)).is_ok()
            }
        }
    };
    if held {
        let holder = "another program".to_owned();
        return Err(SocketError::Held { path: path.display().to_string(), holder });
    }
    fs::remove_file(path).map_err(failed(path, "remove the stale socket"))
}

/// Binds with the final permissions, so that there is no moment at which anyone may connect.
fn bind(path: &Path, access: Access<'_>, carries: Carries) -> Result<UnixListener, SocketError> {
    let mode = 0o777 & !access.mode();
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(mode));
    let bound = listen_at(path, carries).map_err(io::Error::from);
    rustix::process::umask(before);
    bound.map_err(failed(path, "listen"))
}

fn listen_at(path: &Path, carries: Carries) -> Result<UnixListener, Errno> {
    let kind = match carries {
        Carries::Bytes => SocketType::STREAM,
        Carries::Messages => SocketType::SEQPACKET,
    };
    let socket = socket_with(AddressFamily::UNIX, kind, CLOEXEC, None)?;
    // Nobody here wants descriptors, and closing one that somebody sends may block. Connections inherit this. Older
    // kernels can't: there the attach socket's are closed on their users' threads.
    forbid_descriptors(&socket);
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Number of a group of this system.
pub(crate) fn group_id(name: &str) -> Result<u32, SocketError> {
    let groups = fs::read_to_string("/etc/group").map_err(|source| SocketError::System {
        path: "/etc/group".into(),
        action: "read",
        source,
    })?;
    let id = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    });
    id.ok_or_else(|| SocketError::UnknownGroup(name.to_owned()))
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.display().to_string();
    move |source| SocketError::System { path, action, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(path: &Path) -> Result<Claim, SocketError> {
        Claim::take(path, Access::Group(None), Carries::Bytes)
    }

    /// Takes it when nobody else has it any more: a process that another test starts has all files for a moment.
    fn soon(mut take: impl FnMut() -> Result<Claim, SocketError>) -> Claim {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            match take() {
                Err(SocketError::Held { .. }) if Instant::now() < patience => {
                    std::thread::sleep(DYING / 1000);
                }
                taken => return taken.unwrap(),
            }
        }
    }

    #[test]
    fn one_holder_at_a_time_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/api.sock");
        let claim = take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        match take(&path) {
            Err(SocketError::Held { holder, .. }) => {
                assert!(holder.contains(&std::process::id().to_string()), "{holder}");
            }
            other => panic!("{other:?}"),
        }
        assert!(
            UnixStream::connect(&path).is_ok(),
            "the refused one must not take the socket away"
        );
        drop(claim);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        assert!(take(&path).is_ok());
    }

    #[test]
    fn a_stale_socket_is_removed_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(soon(|| take(&path)));
        fs::write(&path, "precious").unwrap();
        assert!(matches!(take(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_foreign_listener_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let _foreign = UnixListener::bind(&path).unwrap();
        assert!(matches!(take(&path), Err(SocketError::Held { .. })));
        assert!(path.exists());
    }

    #[test]
    fn unknown_groups_and_long_paths_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let refused = Claim::take(
            &folder.path().join("s"),
            Access::Group(Some("no-such-group-here")),
            Carries::Bytes,
        );
        assert!(matches!(refused, Err(SocketError::UnknownGroup(_))));
        let refused = take(Path::new(&"x".repeat(108)));
        assert!(matches!(refused, Err(SocketError::TooLong(_))));
        assert_eq!(group_id("root").unwrap(), 0);
    }

    #[test]
    fn a_socket_for_messages_is_held_and_cleared_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attach.sock");
        let claim = |path: &Path| Claim::take(path, Access::All, Carries::Messages);
        let foreign = listen_at(&path, Carries::Messages).unwrap();
        assert!(matches!(claim(&path), Err(SocketError::Held { .. })));
        drop(foreign);
        let held = soon(|| claim(&path));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666);
        assert!(shm::attach::Channel::connect(&path).is_ok());
        drop(held);
        assert!(!path.exists());
    }
}
