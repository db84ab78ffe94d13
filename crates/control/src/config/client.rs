//! Sections about client processes and packet functions.

use std::path::PathBuf;

use serde::Serialize;

/// `[clients]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Clients {
    /// Where clients attach; none: `attach.sock` beside the API's socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Clients at once.
    pub most: u16,
    /// Shared memory of one client at most: MiB.
    pub memory: u32,
}

/// `[[client]]`: who may attach besides root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClientRule {
    /// Processes of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Processes with this group among theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Names of the ports that they may use; none: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
}

/// `[functions]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Functions {
    /// Where shared objects of packet functions are; nothing else is loaded.
    pub folder: PathBuf,
}
