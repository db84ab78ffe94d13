//! Connections that move from stack to stack, at any instant, many times in their lives: nobody notices.

use std::collections::HashSet;

use millrace_netsim::{Network, Passage, Random, Talks};
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
    /// One at a time, between the two stacks that each host has.
    twins: bool,
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
        let (left, count, states) = (MOST, 0, HashSet::new());
        Self { random, every, apart, twins: false, left, count, states }
    }

    fn between_twins(self) -> Self {
        Self { twins: true, ..self }
    }

    /// How long a connection is away: ns.
    fn gap(&mut self) -> u64 {
        let long = self.random.below(20) == 0 && self.every > 5;
        self.random.below(if long { 300 * MILLISECOND } else { MILLISECOND })
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
        if self.twins {
            return self.hand(network);
        }
        let random = &mut self.random;
        let host = random.below(2) as usize;
        let contents = random.one_of(&[Contents::InPlace, Contents::Copied]).ok_or("no choice")?;
        let (mut gap, mut ahead) = (0, random.below(1000) * IN_STEP);
        if self.apart {
            gap = self.gap();
            ahead = self.random.below(1 << 50);
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

    /// Hands a connection from one of a host's stacks to the other, if it has one. Gives how long it was in neither, or its
    /// packets went astray: ns.
    fn hand(&mut self, network: &mut Network<Talks>) -> Result<u64, String> {
        let from = self.random.below(4) as usize;
        let ids = network.stack(from).map_or(Vec::new(), |stack| stack.all_connections());
        let contents = self.random.one_of(&[Contents::InPlace, Contents::Copied]);
        let contents = contents.ok_or("no choice")?;
        let (gap, lag) = if self.apart { (self.gap(), self.gap()) } else { (0, 0) };
        let Some(id) = self.random.one_of(&ids) else { return Ok(0) };
        self.states.extend(network.stack(from).and_then(|stack| stack.info(id)).map(|i| i.state));
        network.hand((from, (from + 2) % 4), id, &Passage { contents, gap, lag })?;
        self.count += 1;
        Ok(gap + lag)
    }
}

fn seeds() -> std::ops::Range<u64> {
    match number("MILLRACE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MILLRACE_SEEDS").unwrap_or(SEEDS),
    }
}

/// Connections moved in every state. Closed does not count: a connection with unread data may be in it, but seeds may have none.
fn assert_all_seen(mut states: HashSet<State>) {
    states.remove(&State::Closed);
    assert!(number("MILLRACE_SEED").is_some() || states.len() == 9, "{states:?}");
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
    assert_all_seen(states);
}

/// The same between two stacks that each host has at once: one connection moves while others stay, and the packets that
/// are in flight find it where it is.
#[test]
fn the_wire_cannot_tell_which_stack() {
    let mut states = HashSet::new();
    for seed in seeds() {
        let ahead = [3 * IN_STEP, 5 * IN_STEP];
        let stayed = Scenario::with(seed, 1).with_twins(ahead).run();
        let moves = Moves::new(seed, false).between_twins();
        let mut scenario = Scenario::with(seed, 1).with_twins(ahead).moving(moves);
        let outcome = scenario.run();
        if scenario.is_paced() {
            assert_eq!(outcome.is_ok(), stayed.is_ok(), "seed {seed}: {outcome:?}\n{scenario:?}");
        } else {
            assert_eq!(outcome, stayed, "seed {seed}\n{scenario:?}");
        }
        states.extend(scenario.moved());
    }
    assert_all_seen(states);
}

/// Between two stacks with clocks that have nothing in common, with gaps, and packets that still go to the stack that was
/// left: what must complete does.
#[test]
fn nothing_is_lost_between_two_stacks() {
    for seed in seeds() {
        let moves = Moves::new(seed, true).between_twins();
        let ahead = [77 * SECOND + 12_345_678, 1 << 50];
        let mut scenario = Scenario::new(seed).with_twins(ahead).moving(moves);
        let outcome = scenario.run();
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}\n{scenario:?}");
    }
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
