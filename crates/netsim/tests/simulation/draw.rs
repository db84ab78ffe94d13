//! What a seed draws: paths, options, plans.

use millrace_netsim::{LinkOptions, Plan, Random};
use transport::options::{Keepalive, MILLISECOND, PathProbing, SECOND};
use transport::{Algorithm, Ecn, Options};

use crate::scenario::Class;

/// Of a direction in which everything must complete: at most this chance that a packet is lost, is in a
/// burst of losses, or has a bit flipped; per million.
pub(crate) const STATED: (u32, u32, u32) = (50_000, 5_000, 20_000);

pub(crate) fn link(random: &mut Random, class: Class, mtu: u64) -> LinkOptions {
    let chance = |random: &mut Random, most: u32| -> u32 {
        if random.below(3) == 0 { random.below(most.into()) as u32 } else { 0 }
    };
    let rate = random.one_of(&[0, 100_000, 1_000_000, 12_500_000]).unwrap_or(0);
    let hard = if class == Class::Completes { 1 } else { 4 };
    let (loss, burst, corrupt) = STATED;
    LinkOptions {
        delay: random.below(80 * MILLISECOND),
        jitter: random.one_of(&[0, 0, MILLISECOND, 20 * MILLISECOND]).unwrap_or(0),
        rate,
        queue: mtu * random.one_of(&[4, 20, 100]).unwrap_or(4),
        mark_above: random.one_of(&[0, 5_000]).unwrap_or(0),
        loss: chance(random, loss * hard),
        burst: (chance(random, burst * hard), 500_000),
        duplicate: chance(random, 50_000),
        corrupt: chance(random, corrupt * hard),
        reorder: (chance(random, 100_000), 30 * MILLISECOND),
        ..LinkOptions::default()
    }
}

pub(crate) fn options(random: &mut Random) -> Options {
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

pub(crate) fn plan(random: &mut Random, seed: u64) -> Plan {
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
    slow_reader(&mut plan, random);
    plan
}

fn slow_reader(plan: &mut Plan, random: &mut Random) {
    if random.below(3) == 0 {
        plan.read = 500 + random.below(5000) as usize;
        plan.read_pause = random.below(50 * MILLISECOND);
    }
}

/// The other end of a conversation.
pub(crate) fn mirrored(plan: &Plan, random: &mut Random) -> Plan {
    let mut mirrored = Plan::bulk(plan.expected, plan.bytes, plan.seed);
    slow_reader(&mut mirrored, random);
    mirrored
}
