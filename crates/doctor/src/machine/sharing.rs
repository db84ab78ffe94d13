//! What the daemon needs to share memory with processes that it does not trust.

use crate::root::{Fact, Root, Unread};

/// The bit of `CAP_LINUX_IMMUTABLE` (capabilities(7)).
const IMMUTABLE: u32 = 9;

/// What the daemon needs to share memory with processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// Instances of inotify that a user may have.
    pub instances: Fact<u64>,
    /// Watches that a user may set.
    pub watches: Fact<u64>,
    /// Whether the daemon, or one that is started from here, may make files immutable.
    pub immutable: Fact<bool>,
}

impl Sharing {
    pub(super) fn read(root: &Root, process: Option<u32>) -> Self {
        let of = |name: &str| root.value::<u64>(&format!("/proc/sys/fs/inotify/{name}"));
        Self {
            instances: of("max_user_instances"),
            watches: of("max_user_watches"),
            immutable: immutable(root, process),
        }
    }
}

/// What a running daemon has; of one that is yet to be started, the most that root could give it.
fn immutable(root: &Root, process: Option<u32>) -> Fact<bool> {
    let (path, set) = match process {
        Some(process) => (format!("/proc/{process}/status"), "CapEff:"),
        None => ("/proc/self/status".to_owned(), "CapBnd:"),
    };
    let text = root.text(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(set));
    let rights = line.and_then(|rights| u64::from_str_radix(rights.trim(), 16).ok());
    rights.map(|rights| rights >> IMMUTABLE & 1 == 1).ok_or_else(|| Unread::malformed(&path))
}
