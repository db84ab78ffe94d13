//! Which files the daemon opens for whom.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::{Config, ConfigError};

/// How files are opened: a FIFO, or a device that waits for something, must not hold anybody up.
const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Tries while somebody renames folders on the way.
const TRIES: usize = 16;

/// Where the files may lie that are read: a configuration, and what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Anywhere: who started the program has named them.
    Anywhere,
    /// Below these folders, and no symbolic link may lead out of them: somebody has named them who may use the API, but
    /// not read every file of the system.
    Below(Vec<PathBuf>),
}

impl Reach {
    /// For files that are named over the API: below the folder of the configuration that the daemon was started with, and
    /// those that it names.
    #[must_use]
    pub fn of_api(file: &Path, config: &Config) -> Self {
        let file = std::path::absolute(file).unwrap_or_default();
        let own = file.parent().map(Path::to_owned);
        Self::Below(own.into_iter().chain(config.daemon.folders.iter().cloned()).collect())
    }

    /// Opens a regular file to read it. Never waits.
    ///
    /// # Errors
    /// The system's; `PermissionDenied` for what lies or leads out of the folders, whether it is there or not; `InvalidInput`
    /// for a folder, a FIFO, a device, a socket.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let file = match self {
            Self::Anywhere => openat(CWD, path, FLAGS, Mode::empty())?,
            Self::Below(folders) => {
                let (folder, rest) = folders
                    .iter()
                    .find_map(|folder| Some((folder, below(folder, path)?)))
                    .ok_or_else(outside)?;
                let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                beneath(openat(CWD, folder, way, Mode::empty())?, &rest)?
            }
        };
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(file)
    }

    /// Reads a text of at most `most` bytes, and one more of a longer one.
    pub(super) fn read(&self, path: &Path, most: usize) -> Result<String, ConfigError> {
        use io::Read as _;

        let wrong = |problem: String, remedy: &str| ConfigError {
            file: path.to_owned(),
            line: 0,
            key: String::new(),
            problem,
            remedy: remedy.to_owned(),
        };
        let file = self.open(path).map_err(|error| {
            let remedy = "name a configuration file that can be read";
            wrong(format!("cannot be opened ({error})"), remedy)
        })?;
        let mut bytes = Vec::new();
        file.take(most as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| wrong(format!("cannot be read ({error})"), "name a regular file"))?;
        let not_utf8 = |_| wrong("is not UTF-8 text".to_owned(), "save it as UTF-8");
        String::from_utf8(bytes).map_err(not_utf8)
    }
}

fn outside() -> io::Error {
    let text = "it lies outside of the configuration's folder and of daemon.folders";
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// The path from the folder on, by the folder's name as it is given or as it is without links.
fn below(folder: &Path, path: &Path) -> Option<PathBuf> {
    let rest = |folder: &Path| path.strip_prefix(folder).ok().map(Path::to_owned);
    rest(folder).or_else(|| rest(&folder.canonicalize().ok()?))
}

/// Opens what lies below a folder; `..` and links may not lead out of it.
fn beneath(folder: OwnedFd, rest: &Path) -> io::Result<OwnedFd> {
    let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(&folder, rest, FLAGS, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::XDEV | Errno::LOOP) => return Err(outside()),
            // Linux before 5.6, or a filter of system calls that is as old.
            Err(Errno::NOSYS | Errno::PERM) => return step_by_step(folder, rest),
            done => return Ok(done?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// The same folder by folder, for kernels that cannot do it at once. No link is followed here.
fn step_by_step(mut folder: OwnedFd, rest: &Path) -> io::Result<OwnedFd> {
    let mut names = Vec::new();
    for component in rest.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    let open = |folder: &OwnedFd, name: &OsStr, flags: OFlags| {
        openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
            Errno::LOOP => outside(),
            other => other.into(),
        })
    };
    let last = names.pop().unwrap_or(OsStr::new("."));
    for name in names {
        let next = open(&folder, name, OFlags::PATH | OFlags::CLOEXEC)?;
        // A link is opened as itself, and is no folder.
        if !rustix::fs::FileType::from_raw_mode(fstat(&next)?.st_mode).is_dir() {
            return Err(outside());
        }
        folder = next;
    }
    open(&folder, last, FLAGS)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with files, links and a FIFO, and one beside it.
    fn folders() -> (tempfile::TempDir, Reach, PathBuf) {
        let all = tempfile::tempdir().unwrap();
        let inside = all.path().join("inside");
        fs::create_dir_all(inside.join("sub")).unwrap();
        fs::write(all.path().join("secret"), "secret").unwrap();
        fs::write(inside.join("plain"), "plain").unwrap();
        fs::write(inside.join("sub/deep"), "deep").unwrap();
        symlink("plain", inside.join("link")).unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink(all.path().join("secret"), inside.join("absolute")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        let fifo = inside.join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let reach = Reach::Below(vec![inside.clone()]);
        (all, reach, inside)
    }

    fn kind(opened: io::Result<File>) -> io::ErrorKind {
        opened.unwrap_err().kind()
    }

    #[test]
    fn what_lies_in_the_folder_is_opened_and_nothing_else() {
        let (all, reach, inside) = folders();
        let text = |path: PathBuf| io::read_to_string(reach.open(&path).unwrap()).unwrap();
        assert_eq!(text(inside.join("plain")), "plain");
        assert_eq!(text(inside.join("sub/deep")), "deep");
        assert_eq!(text(inside.join("sub/../link")), "plain");
        let others =
            ["out", "absolute", "up/secret", "../secret", "sub/../../secret", "magic/etc/passwd"];
        for name in others {
            assert_eq!(
                kind(reach.open(&inside.join(name))),
                io::ErrorKind::PermissionDenied,
                "{name}"
            );
        }
        let beside = [all.path().join("secret"), all.path().join("nothing"), "/etc/shadow".into()];
        for path in beside {
            assert_eq!(kind(reach.open(&path)), io::ErrorKind::PermissionDenied, "{path:?}");
        }
        assert_eq!(kind(reach.open(&inside.join("nothing"))), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let (_all, reach, inside) = folders();
        for reach in [&reach, &Reach::Anywhere] {
            for name in ["fifo", "sub", "."] {
                let found = kind(reach.open(&inside.join(name)));
                assert_eq!(found, io::ErrorKind::InvalidInput, "{name}");
            }
        }
        assert_eq!(kind(Reach::Anywhere.open(Path::new("/dev/zero"))), io::ErrorKind::InvalidInput);
        assert!(Reach::Anywhere.open(&inside.join("out")).is_ok(), "root may name what it likes");
    }

    #[test]
    fn an_old_kernel_refuses_every_link() {
        let (_all, _, inside) = folders();
        let folder = || {
            let way = OFlags::PATH | OFlags::DIRECTORY;
            openat(CWD, &inside, way, Mode::empty()).unwrap()
        };
        for name in ["plain", "sub/deep", "./sub/./deep"] {
            assert!(step_by_step(folder(), Path::new(name)).is_ok(), "{name}");
        }
        for name in
            ["link", "out", "absolute", "up/secret", "../secret", "sub/../plain", "/etc/passwd"]
        {
            let refused = step_by_step(folder(), Path::new(name)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{name}");
        }
    }

    #[test]
    fn a_folder_has_two_names() {
        let (all, _, inside) = folders();
        let other = all.path().join("other");
        symlink(&inside, &other).unwrap();
        let reach = Reach::Below(vec![other.clone()]);
        assert!(
            reach.open(&other.join("plain")).is_ok() && reach.open(&inside.join("plain")).is_ok()
        );
        assert!(reach.open(&all.path().join("secret")).is_err());
    }
}
