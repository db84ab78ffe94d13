//! The load: `wrk`.

use crate::failure::Failure;

use super::TURN;
use super::bed::{Bed, Where};
use super::cases::Case;
use super::path::Path;
use crate::process;

/// What `wrk` has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    /// Requests per second.
    pub(super) rate: f64,
    pub(super) requests: f64,
    /// Latency: us.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Connections that broke, and answers other than 200.
    pub(super) errors: f64,
    /// Its own CPU time: s.
    pub(super) cpu: f64,
}

/// Runs it for one turn.
pub(super) fn run(bed: &Bed, path: Path, case: Case, url: &str) -> Result<Load, Failure> {
    let duration = format!("{}s", TURN.as_secs());
    let connections = case.connections.to_string();
    let mut words = vec!["wrk", "--latency", "-t1", "-c", &connections, "-d", &duration];
    if !case.keep_alive {
        words.extend(["-H", "Connection: close"]);
    }
    words.push(url);
    let before = process::cpu_of_ended();
    let output = bed.command(Where::client(path), &words).output()?;
    let cpu = process::cpu_of_ended() - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let load = read(&text).filter(|_| output.status.success());
    let load = load.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        Failure::Serve(format!("wrk {url} ({path}): {} {}", text.trim(), said.trim()))
    })?;
    Ok(Load { cpu, ..load })
}

/// Reads what it prints.
fn read(text: &str) -> Option<Load> {
    let mut load = Load::default();
    let mut is_whole = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Requests/sec:", rate] => {
                load.rate = rate.parse().ok()?;
                is_whole = true;
            }
            ["50%", time] => load.p50 = micros(time)?,
            ["99%", time] => load.p99 = micros(time)?,
            [count, "requests", "in", ..] => load.requests = count.parse().ok()?,
            ["Socket", "errors:", counts @ ..] => {
                let counts = counts.iter().map(|count| count.trim_end_matches(','));
                load.errors += counts.filter_map(|count| count.parse::<f64>().ok()).sum::<f64>();
            }
            ["Non-2xx", .., count] => load.errors += count.parse::<f64>().ok()?,
            _ => {}
        }
    }
    is_whole.then_some(load)
}

/// A time as it prints it.
fn micros(time: &str) -> Option<f64> {
    let at = time.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = time.split_at(at);
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let text = "Running 1s test @ http://127.0.0.1:8081/64\n  1 threads and 64 connections\n  \
            Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   653.01us    1.05ms  17.66ms   96.10%\n    \
            Req/Sec   120.39k    14.34k  143.60k    72.73%\n  Latency Distribution\n     50%  472.00us\n     \
            75%  650.00us\n     90%    0.97ms\n     99%    5.30ms\n  131689 requests in 1.10s, 36.80MB read\n  \
            Socket errors: connect 1, read 2, write 0, timeout 3\n  Non-2xx or 3xx responses: 4\n\
            Requests/sec: 119752.41\nTransfer/sec:     33.46MB\n";
        let load = read(text).unwrap();
        assert_eq!((load.rate, load.requests), (119_752.41, 131_689.0));
        assert_eq!((load.p50, load.p99, load.errors), (472.0, 5300.0, 10.0));
        assert_eq!(read("unable to connect to 127.0.0.1:1 Connection refused"), None);
        assert_eq!((micros("1.50m"), micros("2.00s"), micros("7")), (Some(90e6), Some(2e6), None));
    }
}
