//! How well a path is used, in simulated time.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// Share of the path's rate that arrives as data, in percent. `rate`: bytes/s; `queue`: bytes.
fn share(options: &Options, rate: u64, delay: u64, queue: u64, bytes: usize) -> (u64, Counters) {
    let mut link = Link::new();
    link.delay = delay;
    let ids = link.connect(options, options);
    link.bottleneck = Some((rate, queue));
    let data = pattern(bytes);
    let start = link.now;
    let got = link.transfer(ids, CLIENT, &data, 1000 * SECOND);
    assert!(got == data, "{} bytes of {bytes}", got.len());
    let ideal = bytes as u64 * 1_000_000_000 / rate;
    (ideal * 100 / (link.now - start), link.stacks[CLIENT].counters().clone())
}

fn large(congestion: Algorithm) -> Options {
    Options {
        congestion,
        receive_buffer_limit: 16_000_000,
        transmit_buffer: 16_000_000,
        ..Options::default()
    }
}

#[test]
fn a_path_with_a_queue_is_filled() {
    for (congestion, least) in
        [(Algorithm::Cubic, 80), (Algorithm::NewReno, 60), (Algorithm::Bbr, 85)]
    {
        // 100 Mbit/s, 40 ms, a queue of half of what is in flight.
        let rate = 12_500_000;
        let (percent, counters) =
            share(&large(congestion), rate, 20 * MILLISECOND, rate / 50, 50_000_000);
        assert!(percent >= least, "{congestion:?}: {percent} %, {counters:?}");
        assert_eq!(counters.timeouts, 0, "{congestion:?}");
    }
}

#[test]
fn pacing_makes_more_of_a_short_queue() {
    let rate = 12_500_000;
    let queue = 30_000;
    let bursty = share(&large(Algorithm::Cubic), rate, 20 * MILLISECOND, queue, 10_000_000);
    let options = Options { pacing: true, ..large(Algorithm::Cubic) };
    let paced = share(&options, rate, 20 * MILLISECOND, queue, 10_000_000);
    assert!(paced.0 > bursty.0 * 3 / 2, "{} %, {} %", paced.0, bursty.0);
}

/// 50 Mbit/s, 40 ms, one packet in a hundred is lost whatever is done.
fn share_with_losses(congestion: Algorithm) -> u64 {
    let mut link = Link::new();
    link.delay = 20 * MILLISECOND;
    let options = large(congestion);
    let ids = link.connect(&options, &options);
    let rate = 6_250_000;
    link.bottleneck = Some((rate, rate / 25));
    let mut next = random(5);
    link.fate = Box::new(move |_, packet| (packet.len() < 100 || next() % 100 != 0).then_some(0));
    let data = pattern(30_000_000);
    let start = link.now;
    let got = link.transfer(ids, CLIENT, &data, 1000 * SECOND);
    assert!(got == data, "{congestion:?}: {}", got.len());
    data.len() as u64 * 100 * 1_000_000_000 / rate / (link.now - start)
}

#[test]
fn losses_that_are_no_congestion_do_not_stop_bbr() {
    let [bbr, cubic] = [Algorithm::Bbr, Algorithm::Cubic].map(share_with_losses);
    assert!(bbr >= 60 && bbr > 3 * cubic, "{bbr} %, {cubic} %");
}

#[test]
fn a_limit_is_kept() {
    let options = Options { pacing_limit: 1_000_000, ..Options::default() };
    // The path could do ten times as much.
    let (percent, _) = share(&options, 10_000_000, 5 * MILLISECOND, 1 << 30, 3_000_000);
    assert!((9..=10).contains(&percent), "{percent}");
}

#[test]
fn a_fast_limit_is_kept_too() {
    // Where many segments go between two ticks of the clock.
    let options = Options { pacing_limit: 50_000_000, ..large(Algorithm::NewReno) };
    let (percent, _) = share(&options, 500_000_000, 5 * MILLISECOND, 1 << 30, 100_000_000);
    assert!((8..=10).contains(&percent), "{percent}");
}

/// What arrives in a second when both ends are woken every 50 ms only, on a path of 80 Mbit/s and 200 us.
fn late(options: &Options) -> usize {
    let mut link = Link::new();
    link.delay = MILLISECOND / 10;
    let ids = link.connect(options, options);
    link.bottleneck = Some((10_000_000, 1 << 30));
    link.tick = 50 * MILLISECOND;
    link.transfer(ids, CLIENT, &pattern(20_000_000), 20 * SECOND).len() / 20
}

#[test]
fn who_is_woken_late_makes_up_for_it() {
    let limit = 100_000;
    let limited = late(&Options { pacing_limit: limit, ..Options::default() });
    assert!((limit as usize * 9 / 10..=limit as usize).contains(&limited), "{limited}");
    // Paced at the rate that is seen, which is that of its own wake-ups.
    let [bbr, cubic] = [Algorithm::Bbr, Algorithm::Cubic].map(|how| late(&large(how)));
    assert!(bbr * 3 > cubic, "{bbr} and {cubic} bytes/s");
}

/// How long `bytes` take between two programs on a host whose cores are busy: ns. A thread that has something to do waits for
/// others, up to 180 ms, `often` of eight times, and else runs within 50 us.
fn on_a_busy_host(how: Algorithm, from: usize, bytes: usize, often: u64, seed: u64) -> u64 {
    let mut link = Link::new();
    link.delay = 10_000;
    let mut next = random(seed);
    link.core = Some(Box::new(move || {
        if next() % 8 < often { next() % (180 * MILLISECOND) } else { 5_000 + next() % 45_000 }
    }));
    let options = large(how);
    let ids = link.connect(&options, &options);
    let data = pattern(bytes);
    let start = link.now;
    let got = link.transfer(ids, from, &data, 1000 * SECOND);
    assert!(got == data, "{how:?}, seed {seed}: {} bytes", got.len());
    link.now - start
}

#[test]
fn bbr_keeps_up_on_hosts_whose_cores_are_busy() {
    // The server sees the round trip of a SYN first, which may be very late.
    for (from, bytes, often) in [(SERVER, 1_000_000, 1), (CLIENT, 10_000_000, 7)] {
        let worst = |how| (1..=40).map(|seed| on_a_busy_host(how, from, bytes, often, seed)).max();
        let [bbr, cubic] = [Algorithm::Bbr, Algorithm::Cubic].map(|how| worst(how).unwrap());
        let [bbr, cubic] = [bbr, cubic].map(|worst| worst / MILLISECOND);
        assert!(bbr < 3 * cubic, "{bytes} bytes: {bbr} ms, with CUBIC {cubic} ms");
    }
}
