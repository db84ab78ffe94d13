//! Limits of a process.

use crate::root::{Fact, Root, Unread};

/// Limits of the daemon's process, or those that it would inherit from this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory that it may lock, the soft limit: bytes.
    pub memory: Bound,
    /// Files that it may open, the hard limit: the daemon raises its soft limit as far as this allows.
    pub files: Bound,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// So much.
    At(u64),
    /// As much as there is.
    Unlimited,
}

impl Limits {
    pub(super) fn read(root: &Root, process: Option<u32>) -> Fact<Self> {
        let process = process.map_or_else(|| "self".to_owned(), |process| process.to_string());
        let path = format!("/proc/{process}/limits");
        let text = root.text(&path)?;
        // proc_pid_limits(5): soft limit, hard limit, unit.
        let bound = |name: &str, column| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            match line.and_then(|line| line.split_whitespace().nth(column)) {
                Some("unlimited") => Ok(Bound::Unlimited),
                Some(number) => number.parse().map(Bound::At).map_err(|_| Unread::malformed(&path)),
                None => Err(Unread::malformed(&path)),
            }
        };
        Ok(Self { memory: bound("Max locked memory", 0)?, files: bound("Max open files", 1)? })
    }
}
