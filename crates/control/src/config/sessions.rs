//! The section about processes with stacks of their own.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use crate::net::shortened;
use crate::text::as_text;

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sessions {
    /// Whether there are any.
    pub enabled: bool,
    /// Where processes come; none: `sessions.sock` beside the API's socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Users whose processes may come, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<u32>,
    /// Groups whose members' processes may come, by number. Neither users nor groups: everybody may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
    /// Local ports that are leased for outgoing connections.
    pub ports: LeasedPorts,
    /// Processes at once: of root, and of all other users together.
    pub most: u16,
    /// Connections of one user at most, each of which can be a process.
    pub connections: u16,
    /// Stacks of one user at most.
    pub stacks: u16,
    /// Shared memory of one user at most, with what stack workers need for its sessions: MiB.
    pub memory: u32,
    /// Places of one user's stacks in listeners at most.
    pub listeners: u32,
    /// Ranges of 64 local ports of one user at most.
    pub leases: u16,
    /// Links of one process at most, to processes on this machine that it connects to or that connect to it. 0: none, all
    /// packets go through the daemon.
    pub links: u16,
    /// Requests of one user: a second.
    pub requests: u32,
    /// Carriers of one user at most: connections that more than one of its processes may hold.
    pub carriers: u32,
    /// Connections of one user that the daemon keeps at most.
    pub parked: u32,
    /// Data of one user's connections that the daemon keeps: MiB.
    pub parked_memory: u32,
    /// Where the stacks of processes run that do not say so themselves.
    pub placement: Placement,
    /// Stack workers: threads that run the stacks of processes that have placed them here.
    pub workers: u16,
    /// Data of one process's connections and datagrams on a stack worker at most, beside its FIFOs: MiB.
    pub buffers: u32,
}

/// Where a process's stack runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In the process, on its own threads.
    Inline,
    /// On a stack worker of the daemon.
    Shared,
}

/// A range of ports, as in `10240-32767`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeasedPorts {
    first: u16,
    last: u16,
}

impl LeasedPorts {
    /// Ports that are leased together: few, as each process that connects has ranges of its own.
    pub const LEASE: u16 = 64;

    /// The first ports of the ranges that can be leased, each of [`LEASE`](Self::LEASE).
    pub fn leases(self) -> impl Iterator<Item = u16> {
        let each = usize::from(Self::LEASE);
        (self.first..=self.last).step_by(each).filter(move |first| self.is_whole(*first))
    }

    /// The first port of the range that a port is in. `None`: it is in none.
    #[must_use]
    pub fn lease_of(self, port: u16) -> Option<u16> {
        let first = self.contains(port).then(|| port - (port - self.first) % Self::LEASE)?;
        self.is_whole(first).then_some(first)
    }

    /// Whether the range from `first` on ends within these.
    fn is_whole(self, first: u16) -> bool {
        self.last - first >= Self::LEASE - 1
    }

    /// Whether the port is among them.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl Default for LeasedPorts {
    /// Outside the kernel's own (`net.ipv4.ip_local_port_range`, 32768 to 60999).
    fn default() -> Self {
        Self { first: 10_240, last: 32_767 }
    }
}

/// A text is no such range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no range of at least 64 ports; write it as in \"10240-32767\"")]
pub struct LeasedPortsError(String);

impl fmt::Display for LeasedPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for LeasedPorts {
    type Err = LeasedPortsError;

    fn from_str(text: &str) -> Result<Self, LeasedPortsError> {
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port != 0);
        let read = || {
            let (first, last) = text.split_once('-')?;
            let (first, last) = (port(first)?, port(last)?);
            (last >= first && last - first >= Self::LEASE - 1).then_some(Self { first, last })
        };
        read().ok_or_else(|| LeasedPortsError(shortened(text)))
    }
}

as_text!(LeasedPorts, "LeasedPorts", "A range of ports", "10240-32767");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_fit_into_their_ports() {
        let leases = |text: &str| text.parse::<LeasedPorts>().map(|ports| ports.leases().collect());
        assert_eq!(leases("1-64"), Ok(vec![1]));
        assert_eq!(leases("1024-1200"), Ok(vec![1024, 1088]));
        assert_eq!(leases("65408 - 65535"), Ok(vec![65_408, 65_472]));
        assert_eq!(LeasedPorts::default().leases().count(), 352);
        let ports: LeasedPorts = "1024-1200".parse().unwrap();
        for (port, first) in [(1024, 1024), (1087, 1024), (1088, 1088), (1151, 1088)] {
            assert_eq!(ports.lease_of(port), Some(first), "{port}");
        }
        for port in [1, 1023, 1152, 1200, 1201] {
            assert_eq!(ports.lease_of(port), None, "{port}");
        }
        for wrong in ["", "1", "0-300", "1-63", "300-1", "1-65536", "a-b", "1-300-400"] {
            assert!(leases(wrong).is_err(), "{wrong}");
        }
        let text = LeasedPorts::default().to_string();
        assert_eq!(text.parse(), Ok(LeasedPorts::default()));
    }
}
