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
    /// Clients at once: of root, and of all other users together.
    pub most: u16,
    /// Connections of one user at most.
    pub connections: u16,
    /// Requests for queues of one user that are granted at the same time.
    pub queues: u16,
    /// Channels of one user at most.
    pub channels: u16,
    /// Filters of one user that each packet is compared with; an address of either end counts twice.
    pub filters: u16,
    /// Shared memory of one user at most: MiB.
    pub memory: u32,
    /// Requests of one user: a second.
    pub requests: u32,
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
