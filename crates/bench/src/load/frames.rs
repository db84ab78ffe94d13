//! Sizes of frames.

use std::fmt;
use std::str::FromStr;

/// Sizes of the frames: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    Fixed(u16),
    /// The carriers' mix: [`measure::load::Mix::Operator`].
    Mix,
}

/// The text is no size of frames.
#[derive(Debug, thiserror::Error)]
#[error("a size from 64 to 1500 bytes is expected, or `mix`")]
pub(crate) struct NotASize;

impl FromStr for Frames {
    type Err = NotASize;

    fn from_str(text: &str) -> Result<Self, NotASize> {
        if text == "mix" {
            return Ok(Self::Mix);
        }
        let size = text.parse().map_err(|_| NotASize)?;
        if (64..=1500).contains(&size) { Ok(Self::Fixed(size)) } else { Err(NotASize) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_limits() {
        for right in ["64", "1500", "mix"] {
            assert_eq!(right.parse::<Frames>().unwrap().to_string(), right);
        }
        for wrong in ["63", "1501", "", "Mix"] {
            assert!(wrong.parse::<Frames>().is_err(), "{wrong}");
        }
    }
}
