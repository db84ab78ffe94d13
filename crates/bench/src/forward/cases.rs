//! What is measured: families, flows, routes and frame sizes.

use std::fmt;
use std::str::FromStr;

use crate::command_line::{NotANumber, number, short};

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Size of the routing table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Routes {
    Some(usize),
    Full,
}

/// Sizes of the frames: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    Fixed(u16),
    /// 64:128:256:512:1024 as 45:23.5:15:11:5.5 (carriers' DPDK performance white paper V1.2).
    Mix,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) family: Family,
    pub(crate) flows: usize,
    pub(crate) routes: Routes,
    pub(crate) frames: Frames,
}

/// What was not understood on the command line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum CaseError {
    #[error("a size from 64 to 1500 bytes is expected, or `mix`")]
    Frames,
    #[error("4 or 6 is expected")]
    Family,
}

impl FromStr for Routes {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        if text == "full" { Ok(Self::Full) } else { number(text).map(Self::Some) }
    }
}

impl FromStr for Frames {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        if text == "mix" {
            return Ok(Self::Mix);
        }
        let size = text.parse().map_err(|_| CaseError::Frames)?;
        if (64..=1500).contains(&size) { Ok(Self::Fixed(size)) } else { Err(CaseError::Frames) }
    }
}

impl FromStr for Family {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        match text {
            "4" => Ok(Self::V4),
            "6" => Ok(Self::V6),
            _ => Err(CaseError::Family),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::V4 { "IPv4" } else { "IPv6" })
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Some(count) => f.write_str(&short(*count)),
            Self::Full => f.write_str("full"),
        }
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(f, "{size}"),
            Self::Mix => f.write_str("mix"),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, flows, routes, frames } = self;
        write!(f, "{family}, {} flows, {routes} routes, {frames} B", short(*flows))
    }
}
