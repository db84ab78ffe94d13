//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One thing that is wrong: `FILE:LINE: KEY: what is wrong; what would be right`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigError {
    /// File that it is in.
    #[schema(value_type = String)]
    pub file: PathBuf,
    /// Line, from 1; 0 when it is about the file as a whole.
    pub line: usize,
    /// Key with its sections, as in `port.left.mtu`; empty for faults of the TOML syntax.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ConfigError {}
