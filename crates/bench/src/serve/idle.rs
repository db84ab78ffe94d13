//! What connections cost that do nothing.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

use super::bed::{Bed, Where};
use super::hold::READY;
use super::nginx::Nginx;
use super::path::Path;
use super::process::{Running, Usage};

/// How long nothing happens.
const SILENCE: Duration = Duration::from_secs(5);
/// Before that: what was begun ends.
const SETTLE: Duration = Duration::from_secs(1);

/// What was found.
pub(super) struct Idle {
    pub(super) path: Path,
    pub(super) connections: u32,
    /// CPU time per second, without any connection and with them: NGINX, daemon.
    pub(super) without: [f64; 2],
    pub(super) with: [f64; 2],
    /// Memory of a connection: of NGINX and daemon, and of the kernel: bytes.
    pub(super) memory: [f64; 2],
}

/// Opens connections on a path of each kind, and waits.
pub(super) fn measure(bed: &Bed, paths: &[Path], connections: u32) -> Result<Vec<Idle>, Failure> {
    let kinds = [Path::Pinned, Path::Tap].into_iter().filter(|path| paths.contains(path));
    kinds.map(|path| one(bed, path, connections)).collect()
}

fn one(bed: &Bed, path: Path, connections: u32) -> Result<Idle, Failure> {
    // One that has served nothing yet: what a busy one keeps for later would hide what connections need.
    let nginx = &Nginx::start_anew(bed, path.server())?;
    let without = silence(bed, nginx);
    let before = memory(bed, nginx);
    let address = format!("{}:{}", Bed::address(path), nginx.port);
    let own = std::env::current_exe()?;
    let (own, count) = (own.to_string_lossy(), connections.to_string());
    let mut command = bed.command(Where::client(path), &[&own, "serve-hold", &address, &count]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut holder = Running::new(child);
    let mut said = String::new();
    if let Some(stdout) = holder.child().stdout.as_mut() {
        BufReader::new(stdout).read_line(&mut said)?;
    }
    if said.trim() != READY {
        return Err(Failure::Serve(format!("{connections} connections cannot be held ({path})")));
    }
    let with = silence(bed, nginx);
    let after = memory(bed, nginx);
    let each = |at: usize| {
        let of = |memory: [f64; 2]| memory.get(at).copied().unwrap_or(0.0);
        (of(after) - of(before)) / f64::from(connections)
    };
    Ok(Idle { path, connections, without, with, memory: [each(0), each(1)] })
}

/// CPU time per second of NGINX and daemon.
fn silence(bed: &Bed, nginx: &Nginx) -> [f64; 2] {
    thread::sleep(SETTLE);
    let usage = || [nginx.running.usage(), bed.daemon().usage()].map(|usage: Usage| usage.cpu);
    let before = usage();
    thread::sleep(SILENCE);
    let after = usage();
    let [nginx, daemon] = [0, 1].map(|at| after.get(at).zip(before.get(at)));
    [nginx, daemon].map(|pair| pair.map_or(0.0, |(now, then)| now - then) / SILENCE.as_secs_f64())
}

/// Of NGINX and daemon together, and of the kernel's objects.
fn memory(bed: &Bed, nginx: &Nginx) -> [f64; 2] {
    [nginx.running.usage().memory + bed.daemon().usage().memory, kernel_objects()]
}

/// `Slab` of the whole machine: bytes.
fn kernel_objects() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Slab:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
