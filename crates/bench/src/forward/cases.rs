//! What is measured: families, flows, routes and frame sizes.

use std::fmt;
use std::str::FromStr;

use crate::command_line::{NotANumber, number, short};
use crate::load::Frames;

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

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) family: Family,
    pub(crate) flows: usize,
    pub(crate) routes: Routes,
    pub(crate) frames: Frames,
}

/// The text is no version of IP.
#[derive(Debug, thiserror::Error)]
#[error("4 or 6 is expected")]
pub(crate) struct NotAFamily;

impl FromStr for Routes {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Self, NotANumber> {
        if text == "full" { Ok(Self::Full) } else { number(text).map(Self::Some) }
    }
}

impl FromStr for Family {
    type Err = NotAFamily;

    fn from_str(text: &str) -> Result<Self, NotAFamily> {
        match text {
            "4" => Ok(Self::V4),
            "6" => Ok(Self::V6),
            _ => Err(NotAFamily),
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

impl Case {
    /// What our cycles above dpdk-testpmd io may be of l3fwd's, with frames of 64 bytes.
    pub(crate) fn goal(self) -> Option<f64> {
        match (self.frames, self.flows, self.routes) {
            (Frames::Fixed(64), 1, _) => Some(1.25),
            (Frames::Fixed(64), 10_000, Routes::Some(10_000)) => Some(0.8),
            (Frames::Fixed(64), 1_000_000, Routes::Full) => Some(0.7),
            _ => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, flows, routes, frames } = self;
        write!(f, "{family}, {} flows, {routes} routes, {frames} B", short(*flows))
    }
}
