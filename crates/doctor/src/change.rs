//! Changes that can be undone.

use std::fmt;

use serde::Serialize;

/// A change of the running system, with what undoes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Change {
    /// A value for a file of `/proc` or `/sys`.
    Write {
        /// Its path.
        path: String,
        /// What it gets.
        value: String,
        /// What it holds, and gets back.
        before: String,
    },
    /// A service to stop; it is started to undo that.
    Stop {
        /// The unit.
        unit: String,
    },
}

impl Change {
    pub(crate) fn write(
        path: impl Into<String>,
        value: impl ToString,
        before: impl ToString,
    ) -> Self {
        let (value, before) = (value.to_string(), before.to_string());
        Self::Write { path: path.into(), value, before }
    }
}

impl fmt::Display for Change {
    /// As a command for a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, value, .. } => write!(f, "echo {value} > {path}"),
            Self::Stop { unit } => write!(f, "systemctl stop {unit}"),
        }
    }
}
