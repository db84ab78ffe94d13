//! What connections cost that do nothing.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

use super::bed::{Bed, Where};
use super::hold::READY;
use super::nginx::Nginx;
use super::path::Path;
use crate::process::{Running, Usage};
use crate::terminal::Parts;

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
    /// Memory of NGINX and daemon that the first connections take and all share: bytes.
    pub(super) shared_memory: f64,
    /// Memory of each connection: of NGINX and daemon, and of the kernel: bytes.
    pub(super) memory: [f64; 2],
}

/// One connection in so many comes before memory is measured first: queues and tables have been used once then.
const EARLY: u32 = 4;

/// A path of each kind.
fn kinds(paths: &[Path]) -> impl Iterator<Item = Path> {
    [Path::Pinned, Path::Tap, Path::TapShared].into_iter().filter(move |path| paths.contains(path))
}

/// Steps of the bar: seconds.
pub(super) fn steps(paths: &[Path]) -> usize {
    let each = 2 * (SETTLE + SILENCE) + SETTLE;
    kinds(paths).count() * each.as_secs() as usize
}

/// Opens connections on a path of each kind, and waits.
pub(super) fn measure(
    bed: &Bed,
    paths: &[Path],
    connections: u32,
    bar: &Parts,
) -> Result<Vec<Idle>, Failure> {
    kinds(paths).map(|path| one(bed, path, connections, bar)).collect()
}

/// Does nothing for so many seconds.
fn rest(time: Duration, bar: &Parts) {
    for _ in 0..time.as_secs() {
        thread::sleep(Duration::from_secs(1));
        bar.step();
    }
}

fn one(bed: &Bed, path: Path, connections: u32, bar: &Parts) -> Result<Idle, Failure> {
    // One that has served nothing yet: what a busy one keeps for later would hide what connections need.
    let nginx = &Nginx::start_anew(bed, path.server())?;
    let without = silence(bed, nginx, bar);
    let [before, _] = memory(bed, nginx);
    let address = format!("{}:{}", Bed::address(path), nginx.port);
    let own = std::env::current_exe()?;
    let own = own.to_string_lossy();
    let mut command = bed.command(Where::client(path), &[&own, "serve-hold", &address]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut holder = Running::new(child);
    let few = connections.div_ceil(EARLY);
    hold(&mut holder, few, path)?;
    rest(SETTLE, bar);
    let early = memory(bed, nginx);
    hold(&mut holder, connections, path)?;
    let with = silence(bed, nginx, bar);
    let late = memory(bed, nginx);
    let more = f64::from((connections - few).max(1));
    let ([early, kernel_early], [after, kernel_after]) = (early, late);
    let (own, kernel) = ((after - early) / more, (kernel_after - kernel_early) / more);
    let shared_memory = after - before - own * f64::from(connections);
    Ok(Idle { path, connections, without, with, shared_memory, memory: [own, kernel] })
}

/// Has `count` connections open.
fn hold(holder: &mut Running, count: u32, path: Path) -> Result<(), Failure> {
    let mut said = String::new();
    let child = holder.child();
    if let (Some(stdin), Some(stdout)) = (child.stdin.as_mut(), child.stdout.as_mut()) {
        writeln!(stdin, "{count}")?;
        BufReader::new(stdout).read_line(&mut said)?;
    }
    if said.trim() != READY {
        return Err(Failure::Serve(format!("{count} connections cannot be held ({path})")));
    }
    Ok(())
}

/// CPU time per second of NGINX and daemon.
fn silence(bed: &Bed, nginx: &Nginx, bar: &Parts) -> [f64; 2] {
    rest(SETTLE, bar);
    let usage = || [nginx.running.usage(), bed.daemon().usage()].map(|usage: Usage| usage.cpu);
    let before = usage();
    rest(SILENCE, bar);
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
