//! Connections that move from stack to stack, at any instant, many times in their lives: nobody notices.

use std::collections::HashSet;

use millrace_netsim::{Network, Random, Talks};
use transport::options::{MILLISECOND, SECOND};
use transport::{Contents, State};

use crate::number;
use crate::scenario::Scenario;

/// Seeds of a plain run, of either test.
const SEEDS: u64 = 150;
/// A clock that is ahead by this says the same of everything that goes by parts of it: time stamps (ms), ticks
/// of timers (2^16 ns), seconds.
const IN_STEP: u64 = 128 * SECOND;

/// Moves of a scenario at most.
const MOST: u32 = 500;

/// How connections move.
#[derive(Debug)]
pub(crate) struct Moves {
    random: Random,
    /// One step of so many is followed by a move.
    every: u64,
    /// They are in no stack for a while, and their clocks have nothing in common.
    apart: bool,
    /// Moves that are left: time goes on in steps that each move adds to.
    left: u32,
    /// How many have moved, and in which states.
    pub(crate) count: usize,
    pub(crate) states: HashSet<State>,
}

impl Moves {
    fn new(seed: u64, apart: bool) -> Self {
        let mut random = Random::new(seed ^ 0x6d6f_7665);
        let every = random.one_of(&[1, 5, 30, 200]).unwrap_or(1);
        Self { random, every, apart, left: MOST, count: 0, states: HashSet::new() }
    }

    /// Moves a host's connections, perhaps. Gives how long they were away: ns.
    pub(crate) fn at_random(&mut self, network: &mut Network<Talks>) -> Result<u64, String> {
        if let Some(trouble) = network.lost_on_the_way() {
            return Err(trouble);
        }
        if self.left == 0 || self.random.below(self.every) != 0 {
            return Ok(0);
        }
        self.left -= 1;
        let random = &mut self.random;
        let host = random.below(2) as usize;
        let contents = random.one_of(&[Contents::InPlace, Contents::Copied]).ok_or("no choice")?;
        let (mut gap, mut ahead) = (0, random.below(1000) * IN_STEP);
        if self.apart {
            let long = random.below(20) == 0 && self.every > 5;
            gap = if long { random.below(300 * MILLISECOND) } else { random.below(MILLISECOND) };
            ahead = random.below(1 << 50);
        } else if network.stack(host).is_some_and(|stack| stack.connections() == 0) {
            // Initial sequence numbers follow the clock.
            return Ok(0);
        }
        if let Some(stack) = network.stack(host) {
            let ids = stack.all_connections().into_iter();
            self.states.extend(ids.filter_map(|id| Some(stack.info(id)?.state)));
        }
        self.count += network.restart(host, contents, gap, ahead)?;
        Ok(gap)
    }
}

fn seeds() -> std::ops::Range<u64> {
    match number("MILLRACE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MILLRACE_SEEDS").unwrap_or(SEEDS),
    }
}

/// Moves without a gap, between clocks that are in step: not a bit of any packet changes, nor its time.
#[test]
fn the_wire_cannot_tell() {
    let mut states = HashSet::new();
    for seed in seeds() {
        let stayed = Scenario::with(seed, 1).run();
        let mut scenario = Scenario::with(seed, 1).moving(Moves::new(seed, false));
        let outcome = scenario.run();
        // What is paced leaves within a tick of its timer (65 us), sooner when another timer is checked in
        // it: which one is armed depends on what happened before.
        if scenario.is_paced() {
            assert_eq!(outcome.is_ok(), stayed.is_ok(), "seed {seed}: {outcome:?}\n{scenario:?}");
        } else {
            assert_eq!(outcome, stayed, "seed {seed}\n{scenario:?}");
        }
        states.extend(scenario.moved());
    }
    // All but Closed, and Closed while something was not read yet.
    assert!(number("MILLRACE_SEED").is_some() || states.len() == 10, "{states:?}");
}

/// Gaps in which packets are lost, clocks that have nothing in common, several connections: what must complete
/// does, in its time, and what was sent arrives.
#[test]
fn nothing_is_lost_on_the_move() {
    for seed in seeds() {
        let mut scenario = Scenario::new(seed).moving(Moves::new(seed, true));
        let outcome = scenario.run();
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}\n{scenario:?}");
    }
}
