//! A scenario from a seed: path, options, conversations; and what must be true of it.

use std::net::SocketAddr;

use millrace_netsim::{LinkOptions, Network, Plan, Random, Role, Side, Talk, Talks, Trouble};
use transport::options::{Keepalive, MILLISECOND, PathProbing, SECOND};
use transport::{Algorithm, Config, Ecn, Failure, Options};

/// Left and right host.
const HOSTS: [usize; 2] = [0, 1];
/// Everything must be over by then: ns. Fifteen time-outs in a row take a quarter of an hour.
const LIMIT: u64 = 5_000 * SECOND;

pub(crate) struct Scenario {
    pub(crate) network: Network<Talks>,
    talks: usize,
    /// Failures that have a reason: an end that aborts, leaves or goes out of reach.
    may_fail: bool,
    bytes: u64,
    /// Writes that it takes.
    writes: u64,
    text: String,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        for host in HOSTS {
            let talks = self.network.application(host).map_or(&[][..], |talks| talks.all());
            for talk in talks {
                write!(f, "\n{host}: {:?} over {}", talk.progress(), talk.is_over())?;
                write!(f, " trouble {:?}", talk.trouble())?;
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

fn link(random: &mut Random, harsh: bool, mtu: u64) -> LinkOptions {
    let chance = |random: &mut Random, most: u64| -> u32 {
        if random.below(3) == 0 { random.below(most) as u32 } else { 0 }
    };
    let rate = random.one_of(&[0, 100_000, 1_000_000, 12_500_000]).unwrap_or(0);
    let hard = if harsh { 4 } else { 1 };
    LinkOptions {
        delay: random.below(80 * MILLISECOND),
        jitter: random.one_of(&[0, 0, MILLISECOND, 20 * MILLISECOND]).unwrap_or(0),
        rate,
        queue: mtu * random.one_of(&[4, 20, 100]).unwrap_or(4),
        mark_above: random.one_of(&[0, 5_000]).unwrap_or(0),
        loss: chance(random, 50_000 * hard),
        burst: (chance(random, 5_000 * hard), 500_000),
        duplicate: chance(random, 50_000),
        corrupt: chance(random, 20_000 * hard),
        reorder: (chance(random, 100_000), 30 * MILLISECOND),
        ..LinkOptions::default()
    }
}

fn options(random: &mut Random) -> Options {
    let mostly = |random: &mut Random| random.below(5) != 0;
    let receive = random.one_of(&[3_000, 20_000, 131_072]).unwrap_or(0);
    Options {
        congestion: random
            .one_of(&[Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr])
            .unwrap_or(Algorithm::Cubic),
        sack: mostly(random),
        timestamps: mostly(random),
        window_scale: mostly(random),
        no_delay: random.below(2) == 0,
        quick_ack: random.below(4) == 0,
        pacing: random.below(4) == 0,
        ecn: random
            .one_of(&[Ecn::Off, Ecn::Passive, Ecn::Active, Ecn::Accurate])
            .unwrap_or(Ecn::Off),
        fast_open: random.below(3) == 0,
        path_probing: random
            .one_of(&[PathProbing::Off, PathProbing::BlackHole, PathProbing::Always])
            .unwrap_or(PathProbing::Off),
        receive_buffer: receive,
        receive_buffer_limit: receive * if random.below(2) == 0 { 1 } else { 8 },
        transmit_buffer: random.one_of(&[2_000, 30_000, 262_144]).unwrap_or(0),
        mss: random.one_of(&[0, 0, 536, 100]).unwrap_or(0),
        mtu_discovery: mostly(random),
        // A peer that is gone without a word must not be waited for without end.
        keepalive: Some(Keepalive { idle: 30 * SECOND, interval: 5 * SECOND, count: 8 }),
        ..Options::default()
    }
}

fn plan(random: &mut Random, seed: u64) -> Plan {
    let bytes = |random: &mut Random| {
        let most = random.one_of(&[1, 500, 20_000, 150_000]).unwrap_or(0);
        random.below(most + 1)
    };
    let (out, back) = (bytes(random), bytes(random));
    let mut plan = Plan::bulk(out, back, seed);
    if random.below(3) == 0 {
        plan.write = 1 + random.below(3000) as usize;
        plan.write_pause = random.below(20 * MILLISECOND);
    }
    if random.below(3) == 0 {
        plan.read = 500 + random.below(5000) as usize;
        plan.read_pause = random.below(50 * MILLISECOND);
    }
    plan
}

/// The other end of a conversation.
fn mirrored(plan: &Plan, random: &mut Random) -> Plan {
    let mut mirrored = Plan::bulk(plan.expected, plan.bytes, plan.seed);
    if random.below(3) == 0 {
        mirrored.read = 500 + random.below(5000) as usize;
        mirrored.read_pause = random.below(50 * MILLISECOND);
    }
    mirrored
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6d69_6c6c);
        let harsh = random.below(5) == 0;
        let mtu = random.one_of(&[1500, 1500, 9000, 1280]).unwrap_or(1500);
        let links = [(); 2].map(|()| link(&mut random, harsh, mtu.into()));
        let mut text = format!("{links:?}");
        let mut network = Network::new(seed, links[0].clone(), links[1].clone());
        let start = network.now();
        // Few packets in a row may all meet a burst.
        let mut may_fail = harsh || links.iter().any(|link| link.burst.0 > 0);
        // Pauses and narrower paths, in either direction or both.
        for _ in 0..random.below(3) {
            let at = start + random.below(5 * SECOND);
            let side = random.one_of(&[Side::Left, Side::Right]).unwrap_or(Side::Left);
            let old = links[usize::from(side == Side::Right)].clone();
            let mtu = random.one_of(&[u16::MAX, 1400, 1280]).unwrap_or(u16::MAX);
            let down = random.below(2) == 0;
            let length = random.below(20 * SECOND);
            text.push_str(&format!("\n{side:?} at {at}: mtu {mtu}, down {down} for {length}"));
            // Who sees nothing of it must find out: every opener and taker may have to.
            let black_hole = random.below(4) == 0;
            network.change(at, side, LinkOptions { mtu, black_hole, down, ..old.clone() });
            network.change(at + length, side, LinkOptions { mtu, black_hole, ..old });
            may_fail |= black_hole;
        }
        let mut hosts = [Talks::default(), Talks::default()];
        let count = 1 + random.below(3);
        let (mut bytes, mut writes) = (0, 0);
        for place in 0..count {
            let plan = add(&mut random, &mut hosts, start, place, &mut may_fail, &mut text);
            bytes += plan.bytes + plan.expected;
            writes += plan.bytes / plan.write as u64;
        }
        for (host, talks) in hosts.into_iter().enumerate() {
            let segmentation = random.one_of(&[0, 65_000]).unwrap_or(0);
            let config =
                Config { connections_v4: 32, connections_v6: 32, mtu, ..Config::default() };
            let side = if host == 0 { Side::Left } else { Side::Right };
            network.add(side, 0, segmentation, config, talks).unwrap();
        }
        Self { network, talks: count as usize, may_fail, bytes, writes, text }
    }

    /// Gives the digest of its packets, or what was wrong.
    pub(crate) fn run(&mut self) -> Result<u64, String> {
        let limit = self.network.now() + LIMIT;
        // A path that loses every second packet still gets everything across with so many, be they small
        // because the application's writes are.
        let most = 20_000 + self.bytes / 20 + 4 * self.writes;
        while !self.is_over() {
            if !self.network.step(limit) {
                return Err("not over in time".into());
            }
            if self.network.packets() > most {
                return Err(format!("{} packets for {} bytes", self.network.packets(), self.bytes));
            }
        }
        for host in HOSTS {
            self.check_host(host)?;
        }
        // TIME-WAIT, last retransmissions, and what was only half-open.
        self.network.run_until(self.network.now() + 2_000 * SECOND);
        for host in HOSTS {
            let stack = self.network.stack(host).ok_or("no stack")?;
            let left = (stack.connections(), self.network.fifos_held(host), stack.next_deadline());
            if left != (0, 0, None) {
                return Err(format!("host {host}: connections, FIFOs, deadline left: {left:?}"));
            }
        }
        Ok(self.network.digest())
    }

    /// Every opener has let go, and every end that was reached.
    fn is_over(&self) -> bool {
        let ends = HOSTS.iter().filter_map(|host| self.network.application(*host));
        let mut openers = 0;
        for talk in ends.flat_map(|talks| talks.all()) {
            if !talk.is_over() && (talk.is_opener() || talk.connection().is_some()) {
                return false;
            }
            openers += usize::from(talk.is_opener());
        }
        openers >= self.talks
    }

    fn check_host(&self, host: usize) -> Result<(), String> {
        let talks = self.network.application(host).ok_or("no talks")?;
        for talk in talks.all() {
            match talk.trouble() {
                None => {}
                Some(Trouble::Failed(
                    Failure::Reset | Failure::TimedOut | Failure::Refused | Failure::Aborted,
                )) if self.may_fail => {}
                Some(Trouble::Failed(Failure::HostUnreachable)) if self.may_fail => {}
                Some(trouble) => return Err(format!("host {host}: {trouble:?}")),
            }
        }
        Ok(())
    }
}

/// Adds a conversation to both hosts. Gives the opener's plan.
fn add(
    random: &mut Random,
    hosts: &mut [Talks; 2],
    start: u64,
    place: u64,
    may_fail: &mut bool,
    text: &mut String,
) -> Plan {
    let mut plan = plan(random, place);
    let mut other = mirrored(&plan, random);
    match random.below(12) {
        0 => plan.abort_at = Some(random.below(plan.bytes + 1)),
        1 => other.abort_at = Some(random.below(other.bytes + 1)),
        2 => plan.leaves = true,
        3 => other.leaves = true,
        _ => {}
    }
    let ends = [&plan, &other];
    *may_fail |= ends.iter().any(|plan| plan.abort_at.is_some() || plan.leaves);
    let opener = random.below(2) as usize;
    let version = random.below(2) as usize;
    let address =
        |host: usize, port: u16| SocketAddr::new(Network::<Talks>::addresses(host)[version], port);
    let (from, to) = (address(opener, 4000 + place as u16), address(1 - opener, 80 + place as u16));
    let (own, theirs) = (options(random), options(random));
    text.push_str(&format!("\n{from} to {to}: {plan:?}\n  {own:?}\n  {other:?}\n  {theirs:?}"));
    let at = start + random.below(SECOND);
    if random.below(8) == 0 {
        // Both open at once: the contents are told apart by who takes, so one does as if it did.
        let role = Role::Opens { at, local: to, remote: from, options: theirs };
        hosts[1 - opener].add(Talk::new(role, other).as_taker());
    } else {
        hosts[1 - opener].listen(to, theirs);
        hosts[1 - opener].add(Talk::new(Role::Takes(from), other));
    }
    let role = Role::Opens { at, local: from, remote: to, options: own };
    hosts[opener].add(Talk::new(role, plan.clone()));
    plan
}
