//! Sets of cores, as the kernel writes them: `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Numbers of cores (logical processors).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreSet(BTreeSet<u16>);

/// A text is no list of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no list of cores; write it as in 0-3,8")]
pub struct NotCores;

impl CoreSet {
    /// Highest number that is taken: Linux has 8,192 cores at most (`NR_CPUS`).
    pub const HIGHEST: u16 = 8_191;

    /// Whether a core is in it.
    #[must_use]
    pub fn contains(&self, core: u16) -> bool {
        self.0.contains(&core)
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied()
    }

    /// The lowest.
    #[must_use]
    pub fn first(&self) -> Option<u16> {
        self.0.first().copied()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Those that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// Those that are in both.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// Those that are in either.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// `core 3`, `cores 2-5,8`, or `no core`.
    #[must_use]
    pub fn named(&self) -> String {
        match self.len() {
            0 => "no core".to_owned(),
            1 => format!("core {self}"),
            _ => format!("cores {self}"),
        }
    }
}

impl FromIterator<u16> for CoreSet {
    fn from_iter<I: IntoIterator<Item = u16>>(cores: I) -> Self {
        Self(cores.into_iter().collect())
    }
}

impl FromStr for CoreSet {
    type Err = NotCores;

    fn from_str(text: &str) -> Result<Self, NotCores> {
        let text = text.trim();
        // The kernel's "%*pbl" of a mask that was never made.
        if text.is_empty() || text == "(null)" {
            return Ok(Self::default());
        }
        let (mut cores, mut named) = (BTreeSet::new(), 0_u32);
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().map_err(|_| NotCores);
            let (first, last) = (number(first)?, number(last)?.min(Self::HIGHEST.into()));
            // The kernel names no core twice; a list without end is not the kernel's.
            named += (last + 1).saturating_sub(first);
            if named > u32::from(Self::HIGHEST) + 1 {
                return Err(NotCores);
            }
            cores.extend((first..=last).filter_map(|core| u16::try_from(core).ok()));
        }
        Ok(Self(cores))
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cores = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cores.next() {
            let mut last = first;
            while let Some(next) = cores.next_if(|next| *next == last + 1) {
                last = next;
            }
            if last > first {
                write!(f, "{comma}{first}-{last}")?;
            } else {
                write!(f, "{comma}{first}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl Serialize for CoreSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        let read = |text: &str| text.parse::<CoreSet>().map(|set| set.iter().collect::<Vec<_>>());
        assert_eq!(read("0-2,5\n"), Ok(vec![0, 1, 2, 5]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("(null)"), Ok(vec![]));
        assert_eq!(read("8191-4294967295"), Ok(vec![8_191]));
        for wrong in ["x", "1-", "-1", "1,,2", "99999999999", "0-3:1/2", "0-8191,0"] {
            assert_eq!(read(wrong), Err(NotCores), "{wrong}");
        }
        assert_eq!("3".parse::<CoreSet>().unwrap().named(), "core 3");
        assert_eq!("3,4,7-9".parse::<CoreSet>().unwrap().named(), "cores 3-4,7-9");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(cores in proptest::collection::btree_set(0..=CoreSet::HIGHEST, 0..40)) {
            let set = CoreSet(cores);
            prop_assert_eq!(set.to_string().parse::<CoreSet>(), Ok(set));
        }
    }
}
