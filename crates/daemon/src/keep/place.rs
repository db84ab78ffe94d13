//! The files of kept state.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use control::Config;
use rustix::fs::OFlags;

/// The file's name in its folder.
const NAME: &str = "state";
/// What the service manager calls the folders that it made (systemd.exec(5), `StateDirectory=`).
const FOLDERS: &str = "STATE_DIRECTORY";

/// Where state is kept.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// For the next start, whenever that is. `None`: nobody has named a folder.
    lasting: Option<PathBuf>,
    /// For a restart, beside the socket.
    handed: PathBuf,
    /// Whether state is kept without being asked.
    pub(super) automatic: bool,
}

impl Place {
    /// Of a daemon with this configuration and API socket.
    pub(crate) fn of(config: &Config, socket: &Path) -> Self {
        let named = config.daemon.keep.clone();
        let automatic = named.is_some();
        let given = || {
            let folders = std::env::var_os(FOLDERS)?;
            // More than one are separated by colons.
            std::env::split_paths(&folders).next().filter(|folder| folder.is_absolute())
        };
        let lasting = named.or_else(given).map(|folder| folder.join(NAME));
        Self { lasting, handed: with_ending(socket, ".state"), automatic }
    }

    /// The file for the next start.
    pub(super) fn lasting(&self) -> Option<&Path> {
        self.lasting.as_deref()
    }

    /// The file for a restart: where state is kept without being asked, that is the same.
    pub(super) fn for_restart(&self) -> &Path {
        self.lasting.as_deref().filter(|_| self.automatic).unwrap_or(&self.handed)
    }

    /// The file that a start takes over: what a restart has left, else what was kept.
    pub(super) fn to_recall(&self) -> Option<&Path> {
        if self.handed.exists() { Some(&self.handed) } else { self.lasting() }
    }

    /// Removes what a restart has left.
    pub(super) fn clear_handed(&self) {
        remove(&self.handed);
    }
}

/// The path with something at its end.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// Removes a file if it is there.
fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("{}: cannot remove: {error}", path.display());
        }
        _ => {}
    }
}

/// Opens a file of kept state. `None`: there is none. Only a regular file that belongs to the daemon's user and that nobody
/// else may write to is believed; nothing here waits.
pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    let problem = if !found.is_file() {
        "it is not a regular file"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "it does not belong to the daemon's user"
    } else if found.mode() & 0o022 != 0 {
        "others may write to it; chmod go-w"
    } else {
        return Ok(Some(file));
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

/// Puts a refused file aside, so that nothing overwrites it. Gives where it is now.
pub(super) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = with_ending(path, ".refused");
    fs::rename(path, &aside).map(|()| aside)
}

/// Keeps a second name for a file that is about to be replaced. Gives it.
pub(super) fn keep_second_name(path: &Path) -> io::Result<PathBuf> {
    let second = with_ending(path, ".before");
    remove(&second);
    fs::hard_link(path, &second).map(|()| second)
}

/// Makes the folder of a file.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o755).create(folder)
}

/// Writes a file whole or not at all, whatever happens meanwhile: it is on the disk before it has its name.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_folder(path)?;
    let new = with_ending(path, ".new");
    // What an end in the middle has left.
    remove(&new);
    let written = write_new(&new, bytes).and_then(|()| fs::rename(&new, path));
    if let Err(error) = written {
        remove(&new);
        return Err(error);
    }
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state");
        write(&path, b"one").unwrap();
        fs::write(with_ending(&path, ".new"), "half of an earlier one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        // The folder cannot be written to: a name that is a folder's, too.
        fs::create_dir(with_ending(&path, ".new")).unwrap();
        assert!(write(&path, b"three").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn only_an_own_regular_file_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        assert!(open(&path).unwrap().is_none());
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(open(&path).unwrap().is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("others may write"));
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(open(&link).is_err());
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open(&fifo).unwrap_err().to_string().contains("regular file"));
        assert!(open(folder.path()).is_err());
    }
}
