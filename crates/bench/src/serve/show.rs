//! Tables and results.

use crate::results::{Better, Outcome, Samples, table};
use crate::terminal::say;

use super::Findings;
use super::cases::Case;
use super::path::Path;
use super::rounds::{Contest, Turn};

/// Requests per second to those over kernel loopback, NGINX with keep-alive and 64 B, both ends on Millrace.
const GOAL: f64 = 3.33;
/// Short connections per second to the kernel's.
const GOAL_SHORT: f64 = 3.0;
/// CPU time per second of an idle NGINX and the daemon together.
const GOAL_IDLE: f64 = 0.02;

/// CPU seconds per million requests.
fn per_million(turn: &Turn, seconds: f64) -> f64 {
    seconds / turn.load.requests * 1e6
}

/// The faster one of the kernel's loopbacks.
fn yardstick(contest: &Contest) -> Option<Path> {
    let all = contest.turns.contestants().filter(|path| path.is_yardstick());
    let rate = |path: &Path| contest.turns.samples(*path, |turn| turn.load.rate).median();
    all.max_by(|one, other| rate(one).total_cmp(&rate(other)))
}

/// Median and range.
fn spread(ratios: &Samples) -> String {
    let most = ratios.max();
    format!("{:.2} [{:.2}-{:.2}]", ratios.median(), ratios.min(), most)
}

/// Prints everything.
pub(super) fn print(findings: &Findings) {
    for contest in &findings.contests {
        say!("\n{}", contest.case);
        print_contest(contest);
    }
    if !findings.idle.is_empty() {
        print_idle(findings);
    }
    if !findings.others.is_empty() {
        print_others(findings);
    }
}

fn print_contest(contest: &Contest) {
    let header = [
        "",
        "requests/s",
        "times kernel",
        "p50 us",
        "p99 us",
        "server",
        "client",
        "daemon",
        "errors",
    ];
    let best = yardstick(contest);
    let rows = contest.turns.contestants().map(|path| {
        let median = |what: fn(&Turn) -> f64| contest.turns.samples(path, what).median();
        let ratio = best.map_or("-".into(), |best| spread(&contest.ratios(path, best)));
        vec![
            path.to_string(),
            format!("{:.0}", median(|turn| turn.load.rate)),
            ratio,
            format!("{:.0}", median(|turn| turn.load.p50)),
            format!("{:.0}", median(|turn| turn.load.p99)),
            format!("{:.2}", median(|turn| per_million(turn, turn.server))),
            format!("{:.2}", median(|turn| per_million(turn, turn.load.cpu))),
            format!("{:.2}", median(|turn| per_million(turn, turn.daemon))),
            format!(
                "{:.0}",
                contest.turns.samples(path, |turn| turn.load.errors).0.iter().sum::<f64>()
            ),
        ]
    });
    say!("{}", table(&header, rows.collect()));
    say!(
        "times kernel: to the faster kernel loopback, round by round: median [range]; server, client, daemon: CPU s per million requests"
    );
}

fn print_idle(findings: &Findings) {
    let header = [
        "idle",
        "connections",
        "NGINX % CPU",
        "daemon % CPU",
        "MB for all",
        "B/connection",
        "kernel B/connection",
    ];
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    let rows = findings.idle.iter().flat_map(|idle| {
        let [nginx, daemon] = idle.without;
        let row = vec![
            idle.path.to_string(),
            "0".into(),
            percent(nginx),
            percent(daemon),
            "-".into(),
            "-".into(),
            "-".into(),
        ];
        let ([nginx, daemon], [own, kernel]) = (idle.with, idle.memory);
        let bytes = |bytes: f64| format!("{bytes:.0}");
        let count = idle.connections.to_string();
        [
            row,
            vec![
                idle.path.to_string(),
                count,
                percent(nginx),
                percent(daemon),
                format!("{:.1}", idle.shared_memory / 1e6),
                bytes(own),
                bytes(kernel),
            ],
        ]
    });
    say!("\n{}", table(&header, rows.collect()));
    say!(
        "kernel B/connection: growth of the whole machine's kernel objects, both ends of kernel connections"
    );
}

fn print_others(findings: &Findings) {
    let header = ["", "path", "value", "unit", "times kernel"];
    let rows = findings.others.iter().flat_map(|other| {
        let first = other.values.first().map(|(_, samples)| samples.clone()).unwrap_or_default();
        other.values.iter().map(move |(path, samples)| {
            let value = samples.median();
            let digits = if value < 1000.0 { 2 } else { 0 };
            vec![
                other.what.into(),
                path.to_string(),
                format!("{value:.digits$}"),
                other.unit.into(),
                spread(&samples.ratios(&first)),
            ]
        })
    });
    say!("\n{}", table(&header, rows.collect()));
}

/// As results.
pub(super) fn outcomes(findings: &Findings) -> Vec<Outcome> {
    let mut all: Vec<Outcome> = findings.contests.iter().flat_map(of_contest).collect();
    for idle in &findings.idle {
        let parameters =
            [("path", idle.path.to_string().into()), ("connections", idle.connections.into())];
        let single =
            |name, unit, value| Outcome::new(name, unit, Samples(vec![value])).with(&parameters);
        let mut cpu = single("idle CPU of NGINX and daemon", "cores", idle.with.iter().sum());
        cpu.goal = idle.path.is_ours().then_some((GOAL_IDLE, Better::Less));
        let [own, kernel] = idle.memory;
        all.push(cpu);
        all.push(single(
            "memory for all connections, NGINX and daemon",
            "bytes",
            idle.shared_memory,
        ));
        all.push(single("memory of a connection, NGINX and daemon", "bytes", own));
        all.push(single("memory of a connection, kernel objects", "bytes", kernel));
    }
    for other in &findings.others {
        let kernel = other.values.iter().find(|(path, _)| path.is_yardstick());
        let kernel = kernel.map(|(path, samples)| (path.to_string(), samples.median()));
        for (path, samples) in &other.values {
            let outcome = Outcome::new(other.what, other.unit, samples.clone());
            let outcome = outcome.with(&[("path", path.to_string().into())]);
            all.push(match &kernel {
                Some((name, value)) if path.is_ours() => {
                    outcome.against(name, *value, Better::More)
                }
                _ => outcome,
            });
        }
    }
    all
}

fn of_contest(contest: &Contest) -> Vec<Outcome> {
    let best = yardstick(contest);
    let of = |path: Path| {
        let sampled = |name, unit, what: fn(&Turn) -> f64, better| {
            let outcome = Outcome::new(name, unit, contest.turns.samples(path, what))
                .with(&parameters(contest.case, path));
            match best.filter(|best| *best != path) {
                Some(best) => {
                    let its = contest.turns.samples(best, what).median();
                    outcome.against(&best.to_string(), its, better)
                }
                None => outcome,
            }
        };
        let mut rate = sampled("requests", "1/s", |turn| turn.load.rate, Better::More);
        // Round by round, as the table has it.
        if let Some(best) = best.filter(|best| *best != path) {
            rate.ratio =
                Some(contest.ratios(path, best).median()).filter(|ratio| ratio.is_finite());
        }
        let goal = if contest.case.keep_alive { GOAL } else { GOAL_SHORT };
        let has_goal = path == Path::Link && contest.case.body == 64 && contest.case.workers == 1;
        rate.goal = rate.yardstick_value.filter(|_| has_goal).map(|its| (its * goal, Better::More));
        [
            rate,
            sampled("latency, p50", "us", |turn| turn.load.p50, Better::Less),
            sampled("latency, p99", "us", |turn| turn.load.p99, Better::Less),
            sampled(
                "CPU of the server",
                "s/M requests",
                |turn| per_million(turn, turn.server),
                Better::Less,
            ),
            sampled(
                "CPU of the client",
                "s/M requests",
                |turn| per_million(turn, turn.load.cpu),
                Better::Less,
            ),
            sampled(
                "CPU of the daemon",
                "s/M requests",
                |turn| per_million(turn, turn.daemon),
                Better::Less,
            ),
        ]
    };
    contest.turns.contestants().flat_map(of).collect()
}

fn parameters(case: Case, path: Path) -> [(&'static str, serde_json::Value); 5] {
    [
        ("path", path.to_string().into()),
        ("body", case.body.into()),
        ("connections", case.connections.into()),
        ("workers", case.workers.into()),
        ("keep_alive", case.keep_alive.into()),
    ]
}
