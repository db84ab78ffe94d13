//! How flows share a path, and how well they use it.

use millrace_netsim::LinkOptions;
use millrace_netsim::flows::{Flow, Outcome, share};
use transport::options::{MILLISECOND, SECOND};
use transport::{Algorithm, Options};

/// 50 Mbit/s, 40 ms there and back, a queue of one such product.
fn path() -> LinkOptions {
    let rate = 6_250_000;
    LinkOptions { delay: 20 * MILLISECOND, rate, queue: rate / 25, ..LinkOptions::default() }
}

fn flow(congestion: Algorithm, begins: u64) -> Flow {
    let options = Options {
        congestion,
        receive_buffer: 1_000_000,
        receive_buffer_limit: 600_000_000,
        transmit_buffer: 600_000_000,
        ..Options::default()
    };
    Flow { options, begins, delay: 0 }
}

fn run(path: &LinkOptions, flows: &[Flow], seconds: u64) -> Outcome {
    share(1, path, 1500, flows, seconds * SECOND, SECOND / 5).unwrap()
}

/// Share of the path's rate that flows have from a time on, in percent.
fn used(outcome: &Outcome, path: &LinkOptions, from: u64) -> f64 {
    let sum: f64 = (0..outcome.flows.len()).map(|flow| outcome.rate(flow, from)).sum();
    sum * 100.0 / path.rate as f64
}

#[test]
fn flows_of_a_kind_share_evenly() {
    for (algorithm, least) in
        [(Algorithm::Cubic, 0.95), (Algorithm::NewReno, 0.95), (Algorithm::Bbr, 0.9)]
    {
        // The second begins when the first has everything.
        let flows = [flow(algorithm, 0), flow(algorithm, 5 * SECOND)];
        let outcome = run(&path(), &flows, 60);
        let (fairness, used) =
            (outcome.fairness(30 * SECOND), used(&outcome, &path(), 30 * SECOND));
        assert!(fairness > least && used > 90.0, "{algorithm:?}: {fairness:.3}, {used:.1} %");
    }
}

/// On a path as short as this one CUBIC keeps to what Reno would do (RFC 9438 4.3).
#[test]
fn cubic_leaves_reno_its_share() {
    let flows = [flow(Algorithm::Cubic, 0), flow(Algorithm::NewReno, 0)];
    let outcome = run(&path(), &flows, 60);
    let [cubic, reno] = [0, 1].map(|flow| outcome.rate(flow, 20 * SECOND));
    assert!((0.33..3.0).contains(&(cubic / reno)), "{cubic:.0} {reno:.0}");
}

#[test]
fn random_losses_cost_cubic_no_more_than_reno_and_bbr_little() {
    let path = LinkOptions { loss: 10_000, ..path() };
    let rate = |algorithm| used(&run(&path, &[flow(algorithm, 0)], 40), &path, 5 * SECOND);
    let [reno, cubic, bbr] = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr].map(rate);
    // With so many losses CUBIC is Reno-friendly (RFC 9438 4.3).
    assert!(
        cubic > 0.9 * reno && bbr > 75.0,
        "NewReno {reno:.1} %, CUBIC {cubic:.1} %, BBR {bbr:.1} %"
    );
}

/// 100 ms there and back, jumbo frames, a queue of half a round trip.
fn long_pipe(algorithm: Algorithm, rate: u64) -> f64 {
    let delay = 50 * MILLISECOND;
    let path = LinkOptions { delay, rate, queue: rate / 20, ..LinkOptions::default() };
    let outcome = share(1, &path, 9000, &[flow(algorithm, 0)], 9 * SECOND, SECOND / 5).unwrap();
    used(&outcome, &path, 4 * SECOND)
}

#[test]
fn a_long_fat_pipe_is_filled() {
    // 10 Gbit/s: 125 MB are under way.
    let cubic = long_pipe(Algorithm::Cubic, 1_250_000_000);
    assert!(cubic > 90.0, "{cubic:.1} %");
    let bbr = long_pipe(Algorithm::Bbr, 125_000_000);
    assert!(bbr > 90.0, "{bbr:.1} %");
}
