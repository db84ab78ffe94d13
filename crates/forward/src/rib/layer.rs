//! The routes of one family from one source, at one distance.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::Source;

/// What stands at a place: one user of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) target: u32,
    pub(super) metric: u32,
}

/// Which routes of a VRF: of one source, at one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) distance: u8,
    pub(super) source: Source,
}

impl Slot {
    /// What the router's own addresses imply.
    pub(super) const LOCAL: Self = Self { distance: 0, source: Source::LOCAL };
    /// The networks of its addresses.
    pub(super) const CONNECTED: Self = Self { distance: 0, source: Source::CONNECTED };

    /// In this order, those of a prefix are asked: its own addresses and networks first, then what is given.
    pub(super) fn order(self) -> impl Ord {
        (!self.source.is_implied(), self == Self::CONNECTED, self)
    }
}

/// One route for each prefix at most.
#[derive(Debug, Default)]
pub(super) struct Layer<K> {
    targets: BTreeMap<K, u32>,
    /// Those that are not 0, which most are.
    metrics: BTreeMap<K, u32>,
}

impl<K: Copy + Ord> Layer<K> {
    pub(super) const fn new() -> Self {
        Self { targets: BTreeMap::new(), metrics: BTreeMap::new() }
    }

    /// Sets or removes a route. Returns what was there.
    pub(super) fn set(&mut self, key: K, chosen: Option<Chosen>) -> Option<Chosen> {
        let metric = match chosen {
            Some(Chosen { metric, .. }) if metric > 0 => self.metrics.insert(key, metric),
            _ if self.metrics.is_empty() => None,
            _ => self.metrics.remove(&key),
        };
        let target = match chosen {
            Some(Chosen { target, .. }) => self.targets.insert(key, target),
            None => self.targets.remove(&key),
        };
        target.map(|target| Chosen { target, metric: metric.unwrap_or(0) })
    }

    pub(super) fn target(&self, key: K) -> Option<u32> {
        self.targets.get(&key).copied()
    }

    /// Metric of a route that is there.
    pub(super) fn metric(&self, key: K) -> u32 {
        self.metrics.get(&key).copied().unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// Prefixes and targets, in order, behind `after`.
    pub(super) fn behind(&self, after: Option<K>) -> impl Iterator<Item = (K, u32)> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.targets.range((from, Bound::Unbounded)).map(|(key, target)| (*key, *target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_comes_and_goes_with_its_route() {
        let mut layer = Layer::new();
        let [plain, far] = [0, 7].map(|metric| Chosen { target: 1, metric });
        assert_eq!(layer.set(1, Some(far)), None);
        assert_eq!((layer.target(1), layer.metric(1)), (Some(1), 7));
        assert_eq!(layer.set(1, Some(plain)), Some(far));
        assert_eq!(layer.metric(1), 0);
        assert_eq!(layer.set(1, Some(far)), Some(plain));
        assert_eq!(layer.set(1, None), Some(far));
        assert_eq!((layer.set(1, None), layer.len(), layer.metrics.len()), (None, 0, 0));
    }
}
