//! Frame sizes: one, or a mix.

use std::fmt;

use super::wire_bits;

/// A mix of frame sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// 64:128:256:512:1024 bytes as 45:23.5:15:11:5.5 (carriers' DPDK performance white paper V1.2).
    Operator,
    /// 64:594:1518 bytes as 7:4:1, the simple mix of the Internet ('IMIX').
    Internet,
}

impl Mix {
    /// Sizes, and how many frames of a cycle have each.
    #[must_use]
    pub const fn parts(self) -> &'static [(u16, usize)] {
        match self {
            Self::Operator => &[(64, 90), (128, 47), (256, 30), (512, 22), (1024, 11)],
            Self::Internet => &[(64, 7), (594, 4), (1518, 1)],
        }
    }
}

/// Frame sizes of a trial: bytes, frame check sequence included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All frames are alike.
    One(u16),
    /// A mix.
    Mix(Mix),
}

/// What is no frame size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no frame size: use bytes, such as 64 or 1518, `operator` or `imix`")]
pub struct SizeError(pub String);

impl Sizes {
    /// The sizes of a cycle of frames in the order in which they are sent: well mixed, and the same each time. What is smaller
    /// than `least` is raised to it.
    #[must_use]
    pub fn cycle(self, least: u16) -> Vec<u16> {
        match self {
            Self::One(size) => vec![size.max(least)],
            Self::Mix(mix) => spread(mix.parts()).into_iter().map(|size| size.max(least)).collect(),
        }
    }

    /// Mean number of bits that a frame takes on the wire.
    #[must_use]
    pub fn mean_wire_bits(self, least: u16) -> f64 {
        let cycle = self.cycle(least);
        cycle.iter().map(|size| wire_bits(*size) as f64).sum::<f64>() / cycle.len() as f64
    }

    /// Frames/s that fill a link; `speed`: bit/s.
    #[must_use]
    pub fn line_rate(self, least: u16, speed: f64) -> f64 {
        speed / self.mean_wire_bits(least)
    }
}

/// Spreads sizes evenly: each next frame is of the size that is furthest behind its share.
fn spread(parts: &[(u16, usize)]) -> Vec<u16> {
    let total: usize = parts.iter().map(|(_, count)| count).sum();
    let mut sent = vec![0; parts.len()];
    (1..=total)
        .filter_map(|frames| {
            let behind = |(at, (_, count)): &(usize, &(u16, usize))| {
                (count * frames) as i64 - (sent[*at] * total) as i64
            };
            let (at, (size, _)) = parts.iter().enumerate().max_by_key(behind)?;
            sent[at] += 1;
            Some(*size)
        })
        .collect()
}

impl std::str::FromStr for Sizes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        match text {
            "operator" => Ok(Self::Mix(Mix::Operator)),
            "imix" => Ok(Self::Mix(Mix::Internet)),
            _ => text.parse().map(Self::One).map_err(|_| SizeError(text.to_owned())),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(size) => write!(f, "{size}"),
            Self::Mix(Mix::Operator) => f.write_str("operator"),
            Self::Mix(Mix::Internet) => f.write_str("imix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_their_shares_and_are_spread() {
        let cycle = Sizes::Mix(Mix::Operator).cycle(64);
        assert_eq!(cycle.len(), 200);
        for (size, count) in Mix::Operator.parts() {
            assert_eq!(cycle.iter().filter(|s| *s == size).count(), *count, "{size}");
        }
        // Any ten frames in a row have a share of small ones close to 45 %.
        for ten in cycle.windows(10) {
            assert!((4..=5).contains(&ten.iter().filter(|size| **size == 64).count()), "{ten:?}");
        }
        assert_eq!(Sizes::Mix(Mix::Internet).cycle(64).iter().filter(|s| **s == 1518).count(), 1);
        assert!(Sizes::Mix(Mix::Internet).cycle(84).iter().all(|size| *size >= 84));
    }

    #[test]
    fn line_rates_are_the_known_ones() {
        // 10 Gbit/s Ethernet: 14.88 million frames/s of 64 bytes, 812,744 of 1518.
        assert_eq!(Sizes::One(64).line_rate(64, 10e9).round(), 14_880_952.0);
        assert_eq!(Sizes::One(1518).line_rate(64, 10e9).round(), 812_744.0);
        // 7 x 84 + 4 x 614 + 1538 bytes for twelve frames.
        let internet = Sizes::Mix(Mix::Internet);
        assert_eq!(internet.mean_wire_bits(64), 8.0 * (7.0 * 84.0 + 4.0 * 614.0 + 1538.0) / 12.0);
    }

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for sizes in [Sizes::One(64), Sizes::Mix(Mix::Operator), Sizes::Mix(Mix::Internet)] {
            assert_eq!(sizes.to_string().parse(), Ok(sizes));
        }
        let wrong = "mix".parse::<Sizes>().unwrap_err().to_string();
        assert!(wrong.contains("`mix`") && wrong.contains("imix"), "{wrong}");
        assert!("-1".parse::<Sizes>().is_err() && "65536".parse::<Sizes>().is_err());
    }
}
