//! The paths between client and server.

use std::fmt;

use clap::ValueEnum;

/// A path between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Path {
    /// The kernel's loopback, programs on whatever cores the kernel chooses.
    Loopback,
    /// The kernel's loopback, client and server pinned.
    Pinned,
    /// The kernel's stacks of two namespaces, joined by a veth pair.
    Veth,
    /// NGINX on Millrace; the client on the kernel, behind a tap.
    Tap,
    /// The same, NGINX on a stack worker of the daemon (placement `shared`).
    TapShared,
    /// Both on Millrace, each with a stack of its own, joined by the daemon.
    Inline,
    /// Both on Millrace, on a stack worker of the daemon (placement `shared`), which joins them.
    Shared,
    /// Both on Millrace, each with a stack of its own, joined by a link.
    Link,
}

impl Path {
    pub(super) const ALL: [Self; 8] = [
        Self::Loopback,
        Self::Pinned,
        Self::Veth,
        Self::Tap,
        Self::TapShared,
        Self::Inline,
        Self::Shared,
        Self::Link,
    ];

    /// Whether the server is on Millrace.
    pub(super) fn is_ours(self) -> bool {
        matches!(self.server(), Placement::Millrace | Placement::Shared)
    }

    /// Whether it is one that others are compared with.
    pub(super) fn is_yardstick(self) -> bool {
        matches!(self, Self::Loopback | Self::Pinned)
    }

    /// Which NGINX serves it.
    pub(super) fn server(self) -> Placement {
        match self {
            Self::Loopback => Placement::Loose,
            Self::Pinned | Self::Veth => Placement::Pinned,
            Self::Tap | Self::Inline | Self::Link => Placement::Millrace,
            Self::TapShared | Self::Shared => Placement::Shared,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "kernel loopback",
            Self::Pinned => "kernel loopback, pinned",
            Self::Veth => "kernel veth",
            Self::Tap => "Millrace, kernel client",
            Self::TapShared => "Millrace on a stack worker, kernel client",
            Self::Inline => "Millrace both ends, by the daemon",
            Self::Shared => "Millrace both ends, on a stack worker",
            Self::Link => "Millrace both ends, by a link",
        })
    }
}

/// Where a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// On the kernel, on any core.
    Loose,
    /// On the kernel, pinned.
    Pinned,
    /// On Millrace, pinned, with a stack of its own.
    Millrace,
    /// On Millrace, pinned, on a stack worker of the daemon.
    Shared,
}
