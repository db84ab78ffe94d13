//! What a change of a quantity means, by its unit.

use crate::results::Better;

/// How changes are spoken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wording {
    /// Which direction is better; `None`: the unit does not tell.
    pub(crate) better: Option<Better>,
    /// Of a value that has grown.
    pub(crate) grown: &'static str,
    /// Of one that has shrunk.
    pub(crate) shrunk: &'static str,
}

/// Ratios to a yardstick: above 1, ours is better.
pub(crate) const RATIO: Wording =
    Wording { better: Some(Better::More), grown: "better", shrunk: "worse" };

/// Of what nobody knows which way is better.
pub(crate) const PLAIN: Wording = Wording { better: None, grown: "more", shrunk: "less" };

/// How a change in this unit is spoken of: events per second are better the more there are; times, cycles, memory and shares of a
/// core or of losses the fewer.
pub(crate) fn wording(unit: &str) -> Wording {
    let less = |grown, shrunk| Wording { better: Some(Better::Less), grown, shrunk };
    let what = unit.split('/').next().unwrap_or(unit);
    if unit.ends_with("/s") {
        return Wording { better: Some(Better::More), grown: "faster", shrunk: "slower" };
    }
    match what {
        "ns" | "us" | "ms" | "s" | "cycles" | "TSC cycles" => less("slower", "faster"),
        "bytes" | "B" | "kB" | "MB" | "KiB" | "MiB" => less("larger", "smaller"),
        "cores" | "share" => less("more", "less"),
        "pieces of work" => Wording { better: Some(Better::More), grown: "more", shrunk: "less" },
        _ => PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_that_is_measured_in_has_a_direction() {
        for unit in ["1/s", "packets/s", "requests/s", "events/s", "Gbit/s", "MB/s", "frames/s"] {
            assert_eq!(wording(unit).better, Some(Better::More), "{unit}");
            assert_eq!(wording(unit).grown, "faster", "{unit}");
        }
        for unit in [
            "cycles",
            "cycles/packet",
            "TSC cycles",
            "TSC cycles/packet",
            "ns",
            "us",
            "s/M requests",
            "bytes",
            "bytes/entry",
            "bytes/packet",
            "cores",
            "share",
        ] {
            assert_eq!(wording(unit).better, Some(Better::Less), "{unit}");
        }
        assert_eq!(wording("pieces of work/packet").better, Some(Better::More));
        assert_eq!(wording("frames").better, None);
        assert_eq!(wording("").better, None);
    }
}
