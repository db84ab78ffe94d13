//! What is measured: ways, packet sizes and bursts.

use std::fmt;

use super::args::Args;

/// The way of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// One process sends all it can, the other copies each packet to memory of its own.
    Copied,
    /// The same, but the other reads each packet where it lies.
    InPlace,
    /// A burst circulates: each process sends back what it takes.
    Around,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) way: Way,
    /// Length of the frame: bytes, the check sequence included.
    pub(super) size: u16,
    /// Packets that are sent at once, and most that are taken at once.
    pub(super) burst: u16,
}

/// Bytes of the check sequence, which never stands in memory.
const CHECK: u16 = 4;
/// What the goal is about.
pub(super) const GOAL: Case = Case { way: Way::Copied, size: 64, burst: 32 };
const SIZES: [u16; 6] = [64, 256, 512, 1024, 1518, 9000];
const BURSTS: [u16; 7] = [1, 4, 16, 32, 64, 128, 256];

impl Case {
    /// Bytes in memory.
    pub(super) fn bytes(self) -> u16 {
        self.size.saturating_sub(CHECK)
    }

    /// Whether it takes several slots of a queue.
    pub(super) fn is_jumbo(self) -> bool {
        self.size > 2048
    }
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Copied => "one way",
            Self::InPlace => "one way, in place",
            Self::Around => "round trip",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} B, burst {}", self.way.name(), self.size, self.burst)
    }
}

/// The cases of a command line: every combination of the sizes and bursts that it names; without, every
/// size with the goal's burst and every burst with its size. Jumbo frames come last.
pub(super) fn of(args: &Args) -> Vec<Case> {
    let mut pairs = Vec::new();
    if args.quick {
        pairs.extend([(GOAL.size, GOAL.burst), (9000, GOAL.burst)]);
    } else if args.sizes.is_empty() && args.bursts.is_empty() {
        let others = BURSTS.iter().filter(|burst| **burst != GOAL.burst);
        pairs.extend(others.map(|burst| (GOAL.size, *burst)));
        pairs.extend(SIZES.iter().map(|size| (*size, GOAL.burst)));
    } else {
        let sizes = if args.sizes.is_empty() { &[GOAL.size][..] } else { &args.sizes };
        let bursts = if args.bursts.is_empty() { &[GOAL.burst][..] } else { &args.bursts };
        pairs.extend(sizes.iter().flat_map(|size| bursts.iter().map(|burst| (*size, *burst))));
    }
    pairs.sort_unstable();
    let all = [Way::Copied, Way::InPlace, Way::Around];
    let ways = |(size, burst)| all.map(|way| Case { way, size, burst });
    let mut cases: Vec<Case> = pairs.into_iter().flat_map(ways).collect();
    cases.sort_by_key(|case| case.is_jumbo());
    cases
}

/// The sizes of some cases, each once.
pub(super) fn sizes(cases: &[Case]) -> Vec<u16> {
    let mut sizes: Vec<u16> = cases.iter().map(|case| case.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

    fn cases(line: &str) -> Vec<Case> {
        of(&parse(line).unwrap())
    }

    #[test]
    fn what_is_named_is_combined() {
        let all = cases("--sizes 9000,64 --bursts 1,256");
        let one = |size, burst| Case { way: Way::Copied, size, burst };
        assert_eq!(all.len(), 12);
        assert_eq!((all[0], all[9]), (one(64, 1), one(9000, 256)));
        assert_eq!(all[10], Case { way: Way::InPlace, ..one(9000, 256) });
        assert_eq!(sizes(&all), [64, 9000]);
        assert_eq!(cases("--sizes 300").len(), 3);
        let usual = cases("");
        assert_eq!(usual.len(), 3 * (SIZES.len() + BURSTS.len() - 1));
        assert!(usual.contains(&GOAL) && cases("--quick").contains(&GOAL));
    }

    #[test]
    fn sizes_and_bursts_have_limits() {
        for wrong in ["--sizes 63", "--sizes 9217", "--bursts 0", "--bursts 257"] {
            assert!(parse::<Args>(wrong).is_err(), "{wrong}");
        }
    }
}
