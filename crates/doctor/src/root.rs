//! Files of `/proc` and `/sys` below a root: bounded reads that never wait.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::OFlags;

/// What is read of a file at most: bytes.
const LONGEST: u64 = 64 << 10;

/// What is read of a folder at most: entries. As many as there are process ids (`/proc`) on a large machine.
const MOST_ENTRIES: usize = 1 << 16;

/// What was read, or why it was not.
pub type Fact<T> = Result<T, Unread>;

/// A file that told nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} {why}")]
pub struct Unread {
    /// Its path, as on the machine that is looked at.
    pub path: String,
    /// Why.
    pub why: Why,
}

/// Why a file told nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is not there: the kernel was built without what it is about, or hides it here.
    Missing,
    /// This user may not read it.
    Denied,
    /// Its text is not what the kernel writes there.
    Malformed,
    /// The kernel refused otherwise.
    Failed(ErrorKind),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("does not exist"),
            Self::Denied => f.write_str("may not be read by this user; run it as root"),
            Self::Malformed => f.write_str("has an unknown form"),
            Self::Failed(kind) => write!(f, "cannot be read: {kind}"),
        }
    }
}

impl Unread {
    pub(crate) fn malformed(path: &str) -> Self {
        Self { path: path.to_owned(), why: Why::Malformed }
    }

    fn of(path: &str, error: &io::Error) -> Self {
        let why = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Why::Missing,
            ErrorKind::PermissionDenied => Why::Denied,
            kind => Why::Failed(kind),
        };
        Self { path: path.to_owned(), why }
    }
}

/// The folder that stands for `/`. Symbolic links are followed, as `/sys` consists of them.
#[derive(Debug, Clone)]
pub(crate) struct Root(PathBuf);

impl Root {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where a file of the machine lies here.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The text of a file, without blanks around it: its first 64 KiB.
    pub(crate) fn text(&self, path: &str) -> Fact<String> {
        let read = || {
            let mut bytes = Vec::new();
            self.open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
            io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        read().map_err(|error| Unread::of(path, &error))
    }

    /// A number or another value that a file consists of.
    pub(crate) fn value<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.text(path)?.parse().map_err(|_| Unread::malformed(path))
    }

    /// The names in a folder, in order.
    pub(crate) fn entries(&self, path: &str) -> Fact<Vec<String>> {
        let folder = std::fs::read_dir(self.place(path)).map_err(|e| Unread::of(path, &e))?;
        let names = folder
            .take(MOST_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Numbers behind a prefix of names in a folder, in order: 0 and 1 for `node0` and `node1`.
    pub(crate) fn numbered(&self, path: &str, prefix: &str) -> Fact<Vec<u16>> {
        let names = self.entries(path)?;
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u16> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The name of what a symbolic link leads to, such as a device's driver.
    pub(crate) fn target(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.place(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Whether a file's mode lets nobody write it, not even its owner.
    pub(crate) fn is_read_only(&self, path: &str) -> bool {
        std::fs::metadata(self.place(path)).is_ok_and(|file| file.permissions().readonly())
    }

    fn open(&self, path: &str) -> io::Result<File> {
        // A FIFO in a tree that somebody copied would wait for its writer.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.place(path))?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
    }
}

/// The word in brackets among those that a file offers, as in `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}
