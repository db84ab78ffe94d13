//! lwIP, in a program of its own (`crates/bench/yardstick/lwip.c`, which `make bench` builds where lwIP is).

use std::path::PathBuf;
use std::process::Command;

use super::What;
use crate::process;
use crate::results::Samples;

/// The program's name; it stands beside this one.
const PROGRAM: &str = "lwip-yardstick";

/// Where it is, if it was built.
pub(super) fn program() -> Option<PathBuf> {
    let path = process::programs(None).ok()?.join(PROGRAM);
    path.exists().then_some(path)
}

/// TSC cycles per unit. `None`: it does not measure this, or said why it could not.
pub(super) fn measure(program: &PathBuf, what: What, count: usize, rounds: u32) -> Option<Samples> {
    let word = match what {
        What::Pair(_) => "pair",
        What::Receive(_) => "receive",
        What::Send(_) => "send",
        What::Burst | What::Short(_) => return None,
    };
    // It walks a list of all connections for each segment: seconds for a round.
    let rounds = if count > 1 { 1 } else { rounds };
    let arguments = [count.to_string(), what.name().1.to_string(), rounds.to_string()];
    let mut command = Command::new(program);
    let output = process::apart(&mut command).arg(word).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let samples = Samples(text.lines().filter_map(|line| line.parse().ok()).collect());
    (output.status.success() && !samples.0.is_empty()).then_some(samples)
}
