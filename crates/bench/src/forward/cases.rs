//! What is measured: families, flows, routes and frame sizes.

use std::fmt;
use std::str::FromStr;

use crate::args;

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
    #[error("a number from 1 to 16777216 is expected, such as 500, 10k or 1M")]
    Number,
    #[error("a size from 64 to 1500 bytes is expected, or `mix`")]
    Frames,
    #[error("4 or 6 is expected")]
    Family,
}

/// A number that may end in k (thousand) or M (million).
pub(crate) fn number(text: &str) -> Result<usize, CaseError> {
    let (digits, factor) = match text.strip_suffix(['k', 'K', 'M']) {
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let number: usize = digits.parse().map_err(|_| CaseError::Number)?;
    let number = number.checked_mul(factor).ok_or(CaseError::Number)?;
    if (1..=1 << 26).contains(&number) { Ok(number) } else { Err(CaseError::Number) }
}

/// A number as [`number`] reads it.
pub(crate) fn short(number: usize) -> String {
    match number {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{}M", n / 1_000_000),
        n if n >= 1000 && n % 1000 == 0 => format!("{}k", n / 1000),
        n => n.to_string(),
    }
}

impl FromStr for Routes {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
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

/// The cases of a command line: every combination of what it names, or a choice of all.
pub(crate) fn of(args: &args::Forward) -> Vec<Case> {
    let chosen = !(args.flows.is_empty()
        && args.routes.is_empty()
        && args.frames.is_empty()
        && args.family.is_empty());
    if !chosen {
        return usual(args.common.quick);
    }
    let mut cases = Vec::new();
    let flows = if args.flows.is_empty() { &[10_000][..] } else { &args.flows };
    let routes = if args.routes.is_empty() { &[Routes::Some(10_000)][..] } else { &args.routes };
    let frames = if args.frames.is_empty() { &[Frames::Fixed(64)][..] } else { &args.frames };
    let families = if args.family.is_empty() { &[Family::V4][..] } else { &args.family };
    for &family in families {
        for &frames in frames {
            for &routes in routes {
                cases.extend(flows.iter().map(|&flows| Case { family, flows, routes, frames }));
            }
        }
    }
    cases
}

fn usual(quick: bool) -> Vec<Case> {
    use Family::{V4, V6};
    let small = Frames::Fixed(64);
    let few = Routes::Some(2);
    let some = Routes::Some(10_000);
    let all = [
        (V4, 10_000, some, small),
        (V4, 1_000_000, Routes::Full, small),
        (V4, 1, few, small),
        (V4, 10_000, some, Frames::Mix),
        (V6, 10_000, some, small),
        (V6, 1_000_000, Routes::Full, small),
    ];
    let cases = all.map(|(family, flows, routes, frames)| Case { family, flows, routes, frames });
    cases.into_iter().take(if quick { 1 } else { all.len() }).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn cases(line: &str) -> Vec<Case> {
        let args = Args::try_parse_from(line.split(' ')).unwrap();
        let Command::Forward(args) = args.command else { panic!("another command") };
        of(&args)
    }

    #[test]
    fn numbers_have_suffixes() {
        for (text, value) in [("7", 7), ("10k", 10_000), ("1M", 1_000_000)] {
            assert_eq!(number(text), Ok(value));
            assert_eq!(short(value), text);
        }
        for wrong in ["", "0", "k", "-1", "1G", "99999999999", "18446744073709551615k"] {
            assert_eq!(number(wrong), Err(CaseError::Number), "{wrong}");
        }
    }

    #[test]
    fn what_is_named_is_combined() {
        let all = cases("b forward --flows 1,10k --routes full,2 --frames mix --family 6");
        assert_eq!(all.len(), 4);
        let first =
            Case { family: Family::V6, flows: 1, routes: Routes::Full, frames: Frames::Mix };
        assert_eq!(all[0], first);
        assert_eq!(cases("b forward --quick").len(), 1);
        assert_eq!(cases("b forward").len(), 6);
        assert!("63".parse::<Frames>().is_err() && "5".parse::<Family>().is_err());
    }
}
