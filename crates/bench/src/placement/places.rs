//! The placements of three threads on cores, by how their cores lie to each other: those that there are, those that a machine
//! has, and why it does not have the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::pair::{Pair, Place};

/// With so many cores all are looked at; of more, as many as tell the placements.
const FEW: usize = 64;
/// Threads that are placed.
const THREADS: usize = 3;

/// Where the threads that receive, work and transmit are, by the pairs of their cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Placement {
    pub(super) receive_worker: Pair,
    pub(super) worker_transmit: Pair,
    pub(super) receive_transmit: Pair,
}

impl Placement {
    pub(super) const ONE_CORE: Self = Self {
        receive_worker: Pair::Same,
        worker_transmit: Pair::Same,
        receive_transmit: Pair::Same,
    };

    fn of([receive, worker, transmit]: [&Place; THREADS]) -> Self {
        Self {
            receive_worker: receive.to(worker),
            worker_transmit: worker.to(transmit),
            receive_transmit: receive.to(transmit),
        }
    }

    /// The three pairs, the nearest first.
    fn pairs(&self) -> [Pair; THREADS] {
        let mut pairs = [self.receive_worker, self.worker_transmit, self.receive_transmit];
        pairs.sort_unstable();
        pairs
    }

    /// All that any machine can have. Each kind of pair lies within the next, so of three pairs the two that are farthest apart
    /// are of one kind.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for receive_worker in Pair::ALL {
            for worker_transmit in Pair::ALL {
                let thirds = Pair::ALL.into_iter().map(|receive_transmit| Self {
                    receive_worker,
                    worker_transmit,
                    receive_transmit,
                });
                all.extend(thirds.filter(|placement| {
                    let [_, far, farthest] = placement.pairs();
                    far == farthest
                }));
            }
        }
        all
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { receive_worker, worker_transmit, receive_transmit } = *self;
        let [near, far, _] = self.pairs();
        if near == far {
            return match near {
                Pair::Same => f.write_str("all on one core"),
                _ => write!(f, "each from each: {near}"),
            };
        }
        if receive_worker == near {
            write!(f, "receive and worker: {near}; transmit: {worker_transmit}")
        } else if worker_transmit == near {
            write!(f, "worker and transmit: {near}; receive: {receive_transmit}")
        } else {
            write!(f, "receive and transmit: {near}; worker: {receive_worker}")
        }
    }
}

/// The placements that a machine has.
#[derive(Debug)]
pub(super) struct Placements {
    places: Vec<Place>,
    /// Each with cores for it.
    found: BTreeMap<Placement, [Place; THREADS]>,
}

impl Placements {
    /// Those on these cores. They take the highest numbers, as the first core is the kernel's.
    pub(super) fn on(places: Vec<Place>) -> Self {
        let mut few = if places.len() > FEW { few(places.clone()) } else { places.clone() };
        few.sort_by_key(|place| Reverse(place.core));
        let mut found = BTreeMap::new();
        for receive in &few {
            for worker in &few {
                for transmit in &few {
                    let cores = [receive, worker, transmit];
                    let placement = Placement::of(cores);
                    found.entry(placement).or_insert_with(|| cores.map(|place| *place));
                }
            }
        }
        Self { places, found }
    }

    /// The cores of receiver, worker and transmitter; `Err`: why there are none.
    pub(super) fn cores(&self, placement: Placement) -> Result<[Place; THREADS], String> {
        self.found.get(&placement).copied().ok_or_else(|| self.lack(placement))
    }

    fn lack(&self, placement: Placement) -> String {
        let has: BTreeSet<Pair> = self.found.keys().flat_map(Placement::pairs).collect();
        let cores: BTreeSet<u16> = self.places.iter().map(|place| place.physical).collect();
        let alone = cores.len() < 2;
        let caches = self.places.iter().any(|place| place.cache.is_some());
        let word = |pair: Pair| match pair {
            Pair::Same => "no core is known",
            Pair::Sibling => "no core has an SMT sibling",
            Pair::Cache | Pair::Node if alone => "there is one physical core",
            Pair::Cache if caches => "no two cores share an L3 cache",
            Pair::Cache => "the kernel does not say which cores share an L3 cache",
            Pair::Node if caches => "no NUMA node has more than one L3 cache",
            Pair::Node => "no NUMA node has two cores",
            Pair::Far => "there is one NUMA node",
        };
        let pairs = placement.pairs().into_iter().filter(|pair| !has.contains(pair));
        let mut missing: Vec<&str> = pairs.map(word).collect();
        missing.dedup();
        if !missing.is_empty() {
            return missing.join("; ");
        }
        // It has every pair of them, but not together.
        let [nearest, _, farthest] = placement.pairs();
        let words = match farthest {
            _ if nearest != farthest => "no three cores lie like that",
            Pair::Sibling => "no core has three threads",
            Pair::Cache => "no three cores share an L3 cache",
            Pair::Node if caches => "no NUMA node has three L3 caches",
            Pair::Far => "there are two NUMA nodes",
            Pair::Same | Pair::Node => "no NUMA node has three cores",
        };
        words.into()
    }
}

/// Three threads need three nodes at most, three caches of a node, three cores of a cache and three threads of a core.
fn few(places: Vec<Place>) -> Vec<Place> {
    let cache = |place: &Place| place.cache.unwrap_or(place.physical);
    let threads = |core: Vec<Place>| core.into_iter().take(THREADS).collect::<Vec<_>>();
    let cores = |cache: Vec<Place>| largest(cache, |place| place.physical, &threads);
    let caches = |node: Vec<Place>| largest(node, cache, &cores);
    largest(places, |place| place.node, &caches)
}

/// What is `within` the three largest groups.
fn largest(
    places: Vec<Place>,
    group: impl Fn(&Place) -> u16,
    within: &dyn Fn(Vec<Place>) -> Vec<Place>,
) -> Vec<Place> {
    let mut groups: BTreeMap<u16, Vec<Place>> = BTreeMap::new();
    for place in places {
        groups.entry(group(&place)).or_default().push(place);
    }
    let mut groups: Vec<(u16, Vec<Place>)> = groups.into_iter().collect();
    groups.sort_by_key(|(number, places)| Reverse((places.len(), *number)));
    groups.into_iter().take(THREADS).flat_map(|(_, places)| within(places)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machine([nodes, caches, cores, threads]: [u16; 4]) -> Vec<Place> {
        let physical = nodes * caches * cores;
        let place = |core: u16| {
            let own = core % physical;
            let cache = own / cores;
            Place { core, node: cache / caches, physical: own, cache: Some(cache * cores) }
        };
        (0..physical * threads).map(place).collect()
    }

    #[test]
    fn three_threads_have_35_placements() {
        let all = Placement::all();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 35);
        assert_eq!(all.first(), Some(&Placement::ONE_CORE));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_few_cores_have_the_placements_of_all(
            nodes in 1..5_u16, caches in 1..5_u16, cores in 1..6_u16, threads in 1..5_u16
        ) {
            let all = machine([nodes, caches, cores, threads]);
            prop_assume!(all.len() <= FEW);
            let few = Placements::on(few(all.clone())).found.into_keys();
            let all = Placements::on(all).found.into_keys();
            prop_assert_eq!(few.collect::<Vec<_>>(), all.collect::<Vec<_>>());
        }

        #[test]
        fn who_is_far_from_one_is_far_from_both(
            shape in prop::array::uniform4(1..4_u16), at in prop::array::uniform3(any::<prop::sample::Index>())
        ) {
            let places = machine(shape);
            let placement = Placement::of(at.map(|at| at.get(&places)));
            prop_assert!(Placement::all().contains(&placement));
        }
    }
}
