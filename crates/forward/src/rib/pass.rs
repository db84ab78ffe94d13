//! A pass over all routes of one family in one VRF, and what is kept until all passes are over.

use std::collections::{BTreeSet, HashSet};

use super::layer::Slot;

/// A pass over all routes of one family in one VRF.
#[derive(Debug)]
pub(super) struct Pass<K> {
    /// Targets whose routes it shows again; none: it is over.
    targets: HashSet<u32>,
    /// Where it is: in that slot, at that prefix.
    pub(super) at: (Slot, Option<K>),
    /// Targets that have changed since it began. It may have passed some of their routes, so another pass follows.
    next: HashSet<u32>,
}

impl<K> Pass<K> {
    /// One that is over.
    pub(super) fn new() -> Self {
        Self { targets: HashSet::new(), at: (Slot::LOCAL, None), next: HashSet::new() }
    }

    /// Leaves the routes of these targets to the next pass.
    pub(super) fn add(&mut self, targets: Vec<u32>) {
        self.next.extend(targets);
    }

    /// Begins the next pass. Returns its targets.
    pub(super) fn begin(&mut self) -> &HashSet<u32> {
        self.targets = std::mem::take(&mut self.next);
        self.at = (Slot::LOCAL, None);
        &self.targets
    }

    /// It has been over all routes. Returns its targets.
    pub(super) fn end(&mut self) -> HashSet<u32> {
        std::mem::take(&mut self.targets)
    }

    pub(super) fn is_over(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether it shows the routes of that target again.
    pub(super) fn is_for(&self, target: u32) -> bool {
        self.targets.contains(&target)
    }

    /// Whether workers may see routes as they were before a change.
    pub(super) fn is_behind(&self) -> bool {
        !self.targets.is_empty() || !self.next.is_empty()
    }
}

/// The passes of all VRFs and families, which begin together.
#[derive(Debug, Default)]
pub(super) struct Passes {
    pub(super) are_under_way: bool,
    /// Next hops that workers may find until these are over.
    pub(super) kept: BTreeSet<u32>,
    /// The same, until those that follow are over.
    pub(super) kept_next: BTreeSet<u32>,
}
