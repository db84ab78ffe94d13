//! Other programs: `iperf3` and `redis-benchmark`.

use serde_json::Value;

use crate::failure::Failure;
use crate::interrupt;
use crate::process::{Running, is_installed};
use crate::results::Samples;
use crate::terminal::Parts;
use crate::turns::Rounds;

use super::bed::{Bed, Where};
use super::path::{Path, Placement};

/// The first port of their servers. Each placement has its own, since two may share a namespace.
const IPERF: u16 = 5201;
const REDIS: u16 = 6379;
/// Requests of a turn of redis-benchmark.
const REQUESTS: &str = "50000";

/// What a program says of a path.
pub(super) struct Other {
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    /// By path: a value for each round.
    pub(super) values: Vec<(Path, Samples)>,
}

/// The paths that they take.
fn kinds(paths: &[Path]) -> Vec<Path> {
    let kinds = [Path::Pinned, Path::Tap, Path::TapShared, Path::Inline, Path::Shared, Path::Link];
    kinds.into_iter().filter(|path| paths.contains(path)).collect()
}

/// Where the servers of these paths run: each once.
fn placements(paths: &[Path]) -> Vec<Placement> {
    let mut all = Vec::new();
    for place in paths.iter().map(|path| path.server()) {
        if !all.contains(&place) {
            all.push(place);
        }
    }
    all
}

/// Port of the server at a place.
const fn port(first: u16, place: Placement) -> u16 {
    first + place as u16
}

/// Steps of the bar: turns. Each program that is installed has two contests.
pub(super) fn steps(paths: &[Path], rounds: u32) -> usize {
    let programs = usize::from(iperf_is_there()) + usize::from(redis_is_there());
    2 * programs * kinds(paths).len() * rounds as usize
}

/// Runs them in turns; what is not installed is left out.
pub(super) fn measure(
    bed: &Bed,
    paths: &[Path],
    rounds: u32,
    bar: &Parts,
) -> Result<Vec<Other>, Failure> {
    let contest = Turns { paths: kinds(paths), rounds, bar };
    let mut all = Vec::new();
    if iperf_is_there() {
        let _servers = contest.serve(bed, IPERF, |port| vec!["iperf3", "-s", "-p", port])?;
        let send = |path| iperf(bed, path, &[]);
        let receive = |path| iperf(bed, path, &["-R"]);
        all.push(contest.take("iperf3, to the server", "Gbit/s", send)?);
        all.push(contest.take("iperf3, from the server", "Gbit/s", receive)?);
    }
    if redis_is_there() && !interrupt::came() {
        let _servers = contest.serve(bed, REDIS, |port| {
            vec!["redis-server", "--port", port, "--save", "", "--protected-mode", "no"]
        })?;
        let plain = |path| redis(bed, path, "1");
        let pipelined = |path| redis(bed, path, "16");
        all.push(contest.take("redis-benchmark, GET", "1/s", plain)?);
        all.push(contest.take("redis-benchmark, GET, 16 in a pipeline", "1/s", pipelined)?);
    }
    Ok(all)
}

/// Who takes turns, and how often.
struct Turns<'a> {
    paths: Vec<Path>,
    rounds: u32,
    bar: &'a Parts,
}

impl Turns<'_> {
    /// Starts a server at each place. `words`: its command, with that port.
    fn serve(
        &self,
        bed: &Bed,
        first: u16,
        words: impl Fn(&str) -> Vec<&str>,
    ) -> Result<Vec<Running>, Failure> {
        let start = |place| {
            let port = port(first, place);
            bed.start(Where::server(place), 1, port, &words(&port.to_string()))
        };
        placements(&self.paths).into_iter().map(start).collect()
    }

    fn take(
        &self,
        what: &'static str,
        unit: &'static str,
        turn: impl Fn(Path) -> Result<f64, Failure>,
    ) -> Result<Other, Failure> {
        let Self { paths, rounds, bar } = self;
        bar.begin(what, paths.len() * *rounds as usize);
        let values = Rounds::take(paths, *rounds, |path| {
            let value = turn(path);
            bar.step();
            value
        })?;
        let values = paths.iter().map(|path| (*path, values.samples(*path, |value| *value)));
        Ok(Other { what, unit, values: values.collect() })
    }
}

fn iperf_is_there() -> bool {
    is_installed("iperf3")
}

fn redis_is_there() -> bool {
    is_installed("redis-server") && is_installed("redis-benchmark")
}

/// Gbit/s.
fn iperf(bed: &Bed, path: Path, more: &[&str]) -> Result<f64, Failure> {
    let port = port(IPERF, path.server()).to_string();
    let words = ["iperf3", "-c", Bed::address(path), "-p", &port, "-t", "1", "-J"];
    let output = bed.command(Where::client(path), &[&words[..], more].concat()).output()?;
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let rate = told.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    let why = || told.pointer("/error").and_then(Value::as_str).unwrap_or("no result").to_owned();
    rate.map(|rate| rate / 1e9).ok_or_else(|| Failure::Serve(format!("iperf3 ({path}): {}", why())))
}

/// Requests per second.
fn redis(bed: &Bed, path: Path, pipeline: &str) -> Result<f64, Failure> {
    let port = port(REDIS, path.server()).to_string();
    let where_to = ["redis-benchmark", "-h", Bed::address(path), "-p", &port];
    let what = ["-t", "get", "-n", REQUESTS, "-c", "50", "-P", pipeline, "--csv"];
    let output = bed.command(Where::client(path), &[&where_to[..], &what[..]].concat()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    rate_of(&text).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        Failure::Serve(format!("redis-benchmark ({path}): {} {}", text.trim(), said.trim()))
    })
}

/// The rate in a line `"GET","12345.67",...`.
fn rate_of(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("\"GET\""))?;
    line.split(',').nth(1)?.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"99800.40\",\"0.258\"\n";
        assert_eq!(rate_of(text), Some(99_800.4));
        assert_eq!(rate_of("Could not connect"), None);
    }

    #[test]
    fn each_placement_has_a_server_with_a_port_of_its_own() {
        let all = kinds(&Path::ALL);
        assert!(all.contains(&Path::TapShared) && all.contains(&Path::Shared));
        let servers = placements(&all);
        assert_eq!(servers, [Placement::Pinned, Placement::Millrace, Placement::Shared]);
        let both = |place: &Placement| [IPERF, REDIS].map(|first| port(first, *place));
        let mut ports: Vec<u16> = servers.iter().flat_map(both).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 2 * servers.len());
        assert_eq!(placements(&kinds(&[Path::Loopback, Path::Link])), [Placement::Millrace]);
    }
}
