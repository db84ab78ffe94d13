//! How `l3fwd` finds a port.

use std::fmt;

/// Its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LookUp {
    /// Longest prefix match by rte_lpm.
    Lpm,
    /// Longest prefix match by rte_fib.
    Fib,
    /// Exact match of the 5-tuple by rte_hash: each flow has an entry.
    Em,
}

/// Routes with which rte_lpm can be loaded in seconds: it searches all prefixes of a length for each that is added.
const MOST_OF_LPM: usize = 100_000;

impl LookUp {
    /// Whether a table of so many routes is ready in time.
    pub(crate) fn takes(self, routes: usize) -> bool {
        self != Self::Lpm || routes <= MOST_OF_LPM
    }
}

impl fmt::Display for LookUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lpm => "lpm",
            Self::Fib => "fib",
            Self::Em => "em",
        })
    }
}
