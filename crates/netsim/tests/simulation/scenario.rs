//! A scenario from a seed: path, options, conversations; and what must be true of it.

use std::net::SocketAddr;

use millrace_netsim::{LinkOptions, Network, Plan, Random, Role, Side, Talk, Talks, Trouble};
use transport::options::{PathProbing, SECOND};
use transport::{Algorithm, Config, Failure, Options, State};

use crate::bound::Path;
use crate::draw;
use crate::moving::Moves;

/// Left and right host.
const HOSTS: [usize; 2] = [0, 1];
/// Everything must be over by then: ns. Fifteen time-outs in a row take a quarter of an hour.
const LIMIT: u64 = 5_000 * SECOND;

/// What must come of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Every kind of impairment, below a stated loss ([`draw::STATED`]): every byte of every conversation
    /// arrives, in the time that [`Path::bound`] gives.
    Completes,
    /// More is lost, packets that are too large vanish for ever, ends abort or leave: connections may fail,
    /// and say why.
    MayFail,
}

impl Class {
    /// Of a seed: three of four must complete.
    pub(crate) fn of(seed: u64) -> Self {
        if seed % 4 == 3 { Self::MayFail } else { Self::Completes }
    }
}

/// A conversation as it was drawn: the opener's side first.
struct Conversation {
    plans: [Plan; 2],
    options: [Options; 2],
    /// ns.
    begins: u64,
}

pub(crate) struct Scenario {
    pub(crate) network: Network<Talks>,
    class: Class,
    path: Path,
    conversations: Vec<Conversation>,
    /// Of both hosts: two, or with their twins four.
    stacks: Vec<usize>,
    moves: Option<Moves>,
    text: String,
}

/// What came of a seed.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Of all packets.
    pub(crate) digest: u64,
    /// The largest part of its bound that a conversation took.
    pub(crate) used: f64,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {} {:?}", self.class, self.text, self.moves)?;
        for host in self.stacks.iter().copied() {
            let talks = self.network.application(host).map_or(&[][..], |talks| talks.all());
            for talk in talks {
                write!(f, "\n{host}: {:?} over {}", talk.progress(), talk.is_over())?;
                write!(f, " at {:?} trouble {:?}", talk.ended_at(), talk.trouble())?;
                let info = talk.connection().and_then(|id| self.network.stack(host)?.info(id));
                if let Some(info) = info {
                    write!(f, "\n  {info:?}")?;
                }
            }
            if let Some(stack) = self.network.stack(host) {
                write!(f, "\n{host}: {:?}", stack.counters())?;
            }
        }
        Ok(())
    }
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, 3)
    }

    /// With so many conversations at most.
    pub(crate) fn with(seed: u64, most: u64) -> Self {
        let class = Class::of(seed);
        let mut random = Random::new(seed ^ 0x6d69_6c6c);
        let mtu = random.one_of(&[1500, 1500, 9000, 1280]).unwrap_or(1500);
        let links = [(); 2].map(|()| draw::link(&mut random, class, mtu.into()));
        let mut text = format!("{links:?}");
        let mut network = Network::new(seed, links[0].clone(), links[1].clone());
        let mut path = Path { links, mtu, outages: 0, holes: 0, bytes: 0, headers: 0 };
        for _ in 0..random.below(3) {
            change(&mut random, &mut network, &mut path, &mut text);
        }
        let mut hosts = [Talks::default(), Talks::default()];
        let count = 1 + random.below(most);
        let conversations: Vec<Conversation> = (0..count)
            .map(|place| {
                let mut drawn = converse(&mut random, class, network.now());
                if class == Class::Completes && path.holes > 0 {
                    // Who does not look for it never finds out what the path takes.
                    drawn.options.iter_mut().for_each(look_for_holes);
                }
                text.push_str(&add(&mut random, &mut hosts, place, &drawn));
                drawn
            })
            .collect();
        for plan in conversations.iter().map(|drawn| &drawn.plans[0]) {
            path.bytes += plan.bytes + plan.expected;
            // Small writes are small segments, each with an acknowledgment.
            path.headers += 2 * 80 * (plan.bytes / plan.write as u64);
            path.headers += 2 * 80 * ((plan.bytes + plan.expected) / 88);
        }
        for (host, talks) in hosts.into_iter().enumerate() {
            let segmentation = random.one_of(&[0, 65_000]).unwrap_or(0);
            // The short form of TIME-WAIT answers without what it has forgotten (the ACE field): a single
            // conversation does without, so that two runs can be compared.
            let time_waits = if most == 1 { 0 } else { 64 };
            let (connections_v4, connections_v6) = (32, 32);
            let config =
                Config { connections_v4, connections_v6, mtu, time_waits, ..Config::default() };
            let side = if host == 0 { Side::Left } else { Side::Right };
            network.add(side, 0, segmentation, config, talks).unwrap();
        }
        let stacks = HOSTS.to_vec();
        Self { network, class, path, conversations, stacks, moves: None, text }
    }

    /// Gives what came of it, or what was wrong.
    pub(crate) fn run(&mut self) -> Result<Outcome, String> {
        let limit = self.network.now() + LIMIT;
        let (bytes, writes) = (self.path.bytes, self.writes());
        // A path that loses every second packet still gets everything across with so many, be they small
        // because the application's writes are.
        let most = 20_000 + bytes / 20 + 4 * writes;
        while !self.is_over() {
            if !self.network.step(limit) {
                return Err("not over in time".into());
            }
            self.go_on()?;
            if self.network.packets() > most {
                return Err(format!("{} packets for {bytes} bytes", self.network.packets()));
            }
        }
        for host in &self.stacks {
            self.check_host(*host)?;
        }
        let used = if self.class == Class::Completes { self.check_times()? } else { 0.0 };
        // TIME-WAIT, last retransmissions, and what was only half-open.
        let end = self.network.now() + 2_000 * SECOND;
        while self.network.step(end) {
            self.go_on()?;
        }
        for host in self.stacks.iter().copied() {
            let stack = self.network.stack(host).ok_or("no stack")?;
            let left = (stack.connections(), self.network.fifos_held(host), stack.next_deadline());
            if left != (0, 0, None) {
                return Err(format!("host {host}: connections, FIFOs, deadline left: {left:?}"));
            }
        }
        Ok(Outcome { digest: self.network.digest(), used })
    }

    /// Gives each host a second stack, with clocks so far ahead: ns.
    pub(crate) fn with_twins(mut self, ahead: [u64; 2]) -> Self {
        for host in HOSTS {
            let talks = self.network.application(host).map(Talks::twin).unwrap();
            self.stacks.push(self.network.twin(host, ahead[host], talks).unwrap());
        }
        self
    }

    /// Lets connections move from stack to stack meanwhile.
    pub(crate) fn moving(mut self, moves: Moves) -> Self {
        self.moves = Some(moves);
        self
    }

    /// Whether a connection spreads its segments over time.
    pub(crate) fn is_paced(&self) -> bool {
        let all = self.conversations.iter().flat_map(|drawn| &drawn.options);
        all.into_iter().any(|options| options.pacing || options.congestion == Algorithm::Bbr)
    }

    /// States in which connections have moved.
    pub(crate) fn moved(&self) -> impl Iterator<Item = State> {
        self.moves.iter().flat_map(|moves| moves.states.iter().copied())
    }

    fn go_on(&mut self) -> Result<(), String> {
        let Some(moves) = &mut self.moves else { return Ok(()) };
        self.path.outages += moves.at_random(&mut self.network)?;
        Ok(())
    }

    fn writes(&self) -> u64 {
        let plans = self.conversations.iter().map(|drawn| &drawn.plans[0]);
        plans.map(|plan| plan.bytes / plan.write as u64).sum()
    }

    /// Every opener has let go, and every end that was reached.
    fn is_over(&self) -> bool {
        let ends = self.stacks.iter().filter_map(|host| self.network.application(*host));
        let mut openers = 0;
        for talk in ends.flat_map(|talks| talks.all()) {
            if !talk.is_over() && (talk.is_opener() || talk.connection().is_some()) {
                return false;
            }
            openers += usize::from(talk.is_opener());
        }
        openers >= self.conversations.len()
    }

    fn check_host(&self, host: usize) -> Result<(), String> {
        let talks = self.network.application(host).ok_or("no talks")?;
        for (place, talk) in talks.all().iter().enumerate() {
            if self.class == Class::Completes && !talk.is_over() {
                return Err(format!("host {host}, {place}: it was never reached"));
            }
            match talk.trouble() {
                None => {}
                // There are always FIFOs.
                Some(Trouble::Failed(why))
                    if self.class == Class::MayFail && why != Failure::NoBuffers => {}
                Some(trouble) => return Err(format!("host {host}, {place}: {trouble:?}")),
            }
        }
        Ok(())
    }

    /// Every conversation was over in its time. Gives the largest part of it that one took.
    fn check_times(&self) -> Result<f64, String> {
        let mut used = 0f64;
        for (place, drawn) in self.conversations.iter().enumerate() {
            let ends = self.stacks.iter().filter_map(|host| self.network.application(*host));
            let talks = ends.flat_map(|talks| talks.all());
            let own = talks.filter(|talk| talk.seed() == drawn.plans[0].seed);
            let ended = own.filter_map(|talk| talk.ended_at()).max();
            let took = ended.unwrap_or(u64::MAX).saturating_sub(drawn.begins);
            let [opener, taker] = [0, 1].map(|end| (&drawn.plans[end], &drawn.options[end]));
            let bound = self.path.bound([opener, taker]);
            used = used.max(took as f64 / bound as f64);
            if took > bound {
                let seconds = |time: u64| time as f64 / 1e9;
                let (took, bound) = (seconds(took), seconds(bound));
                return Err(format!("conversation {place} took {took:.3} s, not {bound:.3} s"));
            }
        }
        Ok(used)
    }
}

fn look_for_holes(options: &mut Options) {
    options.path_probing = match options.path_probing {
        PathProbing::Off => PathProbing::BlackHole,
        wanted => wanted,
    };
}

/// A pause or a narrower path, for a while, in one direction.
fn change(random: &mut Random, network: &mut Network<Talks>, path: &mut Path, text: &mut String) {
    let at = network.now() + random.below(5 * SECOND);
    let side = random.one_of(&[Side::Left, Side::Right]).unwrap_or(Side::Left);
    let old = path.links[usize::from(side == Side::Right)].clone();
    let mtu = random.one_of(&[u16::MAX, 1400, 1280]).unwrap_or(u16::MAX);
    let down = random.below(2) == 0;
    let length = random.below(20 * SECOND);
    // Who sees nothing of it must find out: every opener and taker may have to.
    let black_hole = random.below(4) == 0;
    text.push_str(&format!("\n{side:?} at {at}: mtu {mtu}, hole {black_hole}, "));
    text.push_str(&format!("down {down} for {length}"));
    network.change(at, side, LinkOptions { mtu, black_hole, down, ..old.clone() });
    network.change(at + length, side, LinkOptions { mtu, black_hole, ..old });
    path.outages += if down { length } else { 0 };
    path.holes += u32::from(black_hole);
}

fn converse(random: &mut Random, class: Class, start: u64) -> Conversation {
    let mut plan = draw::plan(random, random.clone().next() >> 1);
    let mut other = draw::mirrored(&plan, random);
    if class == Class::MayFail {
        match random.below(8) {
            0 => plan.abort_at = Some(random.below(plan.bytes + 1)),
            1 => other.abort_at = Some(random.below(other.bytes + 1)),
            2 => plan.leaves = true,
            3 => other.leaves = true,
            _ => {}
        }
    }
    let options = [(); 2].map(|()| draw::options(random));
    Conversation { plans: [plan, other], options, begins: start + random.below(SECOND) }
}

/// Adds a conversation to both hosts. Gives it in words.
fn add(random: &mut Random, hosts: &mut [Talks; 2], place: u64, drawn: &Conversation) -> String {
    let [plan, other] = drawn.plans.clone();
    let [own, theirs] = drawn.options.clone();
    let opener = random.below(2) as usize;
    let version = random.below(2) as usize;
    let address =
        |host: usize, port: u16| SocketAddr::new(Network::<Talks>::addresses(host)[version], port);
    let (from, to) = (address(opener, 4000 + place as u16), address(1 - opener, 80 + place as u16));
    let text = format!("\n{from} to {to}: {plan:?}\n  {own:?}\n  {other:?}\n  {theirs:?}");
    let at = drawn.begins;
    if random.below(8) == 0 {
        // Both open at once: the contents are told apart by who takes, so one does as if it did.
        let role = Role::Opens { at, local: to, remote: from, options: theirs };
        hosts[1 - opener].add(Talk::new(role, other).as_taker());
    } else {
        hosts[1 - opener].listen(to, theirs);
        hosts[1 - opener].add(Talk::new(Role::Takes(from), other));
    }
    hosts[opener].add(Talk::new(Role::Opens { at, local: from, remote: to, options: own }, plan));
    text
}
