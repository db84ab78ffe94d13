//! Programs that run, and what they take of the machine.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// Between two looks whether a program is ready.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program may take to end in order.
const ORDERLY: Duration = Duration::from_secs(5);

/// A program, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        Self { child }
    }

    /// Starts a program, whose output goes to a file, and waits until it is ready. `name`: of the program, for people.
    pub(crate) fn start(
        name: &str,
        mut command: Command,
        log: &Path,
        patience: Duration,
        ready: impl Fn(&Self) -> bool,
    ) -> Result<Self, Failure> {
        let file = File::create(log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let mut running = Self::new(command.spawn()?);
        let begin = Instant::now();
        while !ready(&running) {
            let ended = running.has_ended();
            if ended || begin.elapsed() > patience {
                let slow = || format!("is not ready after {} s", patience.as_secs());
                let why = if ended { "has ended before it was ready".into() } else { slow() };
                let said = fs::read_to_string(log).unwrap_or_default().trim().to_owned();
                return Err(Failure::NotReady { program: name.to_owned(), why, said });
            }
            thread::sleep(LOOK);
        }
        Ok(running)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends it a signal; `false` when it is gone.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let own = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        own.is_some_and(|own| kill_process(own, signal).is_ok())
    }

    /// What it and its children take.
    pub(crate) fn usage(&self) -> Usage {
        family(self.id()).into_iter().map(usage_of).fold(Usage::default(), Usage::plus)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() && self.signal(Signal::TERM) {
            let begin = Instant::now();
            while !self.has_ended() && begin.elapsed() < ORDERLY {
                thread::sleep(Duration::from_millis(10));
            }
        }
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Keeps the terminal's Ctrl-C from a program: it is for this process, which ends what it has started.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// The folder of Millrace's programs: the one that was named, else this program's.
pub(crate) fn programs(named: Option<&Path>) -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    Ok(named.unwrap_or(beside).to_owned())
}

/// The daemon: in the folder of Millrace's programs, or where `make install` puts it, which is `sbin` beside that folder.
pub(crate) fn daemon(programs: &Path) -> PathBuf {
    let [beside, installed] = ["millraced", "../sbin/millraced"].map(|place| programs.join(place));
    if !beside.exists() && installed.exists() { installed } else { beside }
}

/// Whether a program is in one of the folders of `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).exists())
}

/// A program, and Debian's package of it.
pub(crate) type Program = (&'static str, &'static str);

/// The first of these programs that is not installed, for people; `None`: all are.
pub(crate) fn lacks(programs: &[Program], has: &dyn Fn(&str) -> bool) -> Option<String> {
    let (name, package) = programs.iter().find(|(name, _)| !has(name))?;
    Some(format!("{name} is not installed; install the package {package}"))
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What processes take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Usage {
    /// CPU time so far: s.
    pub(crate) cpu: f64,
    /// Memory in RAM that they have written, of what they share with others their part: bytes.
    pub(crate) memory: f64,
}

impl Usage {
    fn plus(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }
}

/// CPU time of programs that this process has waited for: s.
pub(crate) fn cpu_of_ended() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    seconds(&stat, [15, 16])
}

/// A process and its children.
fn family(id: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: &u32| fields(&read(*id, "stat")).get(3)?.parse::<u32>().ok();
    std::iter::once(id).chain(all.filter(|other| parent(other) == Some(id))).collect()
}

/// CPU time so far of this process and of all that it has started, directly or not: s. Those that have ended count if
/// somebody has waited for them.
pub(crate) fn cpu_of_all() -> f64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    total(std::process::id(), all.map(|id| (id, read(id, "stat"))).collect())
}

/// CPU time of a process and its descendants, of all processes with their `/proc/PID/stat`: s.
fn total(root: u32, mut all: Vec<(u32, String)>) -> f64 {
    let (mut cpu, mut ours) = (0.0, vec![root]);
    while let Some(id) = ours.pop() {
        let parent = |stat: &str| fields(stat).get(3).and_then(|word| word.parse().ok());
        let children = all.iter().filter(|(_, stat)| parent(stat) == Some(id));
        ours.extend(children.map(|(child, _)| *child));
        if let Some(at) = all.iter().position(|(other, _)| *other == id) {
            let (_, stat) = all.swap_remove(at);
            cpu += seconds(&stat, [13, 14]) + seconds(&stat, [15, 16]);
        }
    }
    cpu
}

fn usage_of(id: u32) -> Usage {
    let memory = memory(&read(id, "smaps_rollup"));
    Usage { cpu: seconds(&read(id, "stat"), [13, 14]), memory }
}

/// Of a `smaps_rollup`: bytes. Packet queues belong to a program and its daemon, half to each.
fn memory(rollup: &str) -> f64 {
    let part = |line: &str| {
        let rest = line.strip_prefix("Pss_Anon:").or_else(|| line.strip_prefix("Pss_Shmem:"))?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    rollup.lines().filter_map(part).sum::<f64>() * 1024.0
}

fn read(id: u32, name: &str) -> String {
    fs::read_to_string(Path::new("/proc").join(id.to_string()).join(name)).unwrap_or_default()
}

/// The fields of `/proc/PID/stat`; the name, which may hold spaces, as one.
fn fields(stat: &str) -> Vec<&str> {
    let Some((front, rest)) = stat.rsplit_once(')') else { return Vec::new() };
    std::iter::once(front).chain(std::iter::once("")).chain(rest.split_whitespace()).collect()
}

/// The sum of two fields that count clock ticks: s.
fn seconds(stat: &str, places: [usize; 2]) -> f64 {
    let fields = fields(stat);
    let ticks = places.iter().filter_map(|place| fields.get(*place)?.parse::<f64>().ok());
    ticks.sum::<f64>() / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_ready_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let start = |script: &str, patience| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let is_up = |_: &Running| fs::read_to_string(&log).is_ok_and(|said| said == "up\n");
            Running::start("the shell", command, &log, Duration::from_secs(patience), is_up)
        };
        assert!(!start("echo up; exec sleep 600", 600).unwrap().has_ended());
        let ended = start("echo no port; exit 1", 600).unwrap_err().to_string();
        assert_eq!(ended, "the shell has ended before it was ready; it said: no port");
        let slow = start("exec sleep 600", 0).unwrap_err().to_string();
        assert!(slow.starts_with("the shell is not ready after 0 s"), "{slow}");
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4 0 0 0 0 250 50 100 7 20 0";
        assert_eq!(fields(stat)[2], "S");
        assert_eq!(fields(stat)[3], "3");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(seconds(stat, [13, 14]), 300.0 / ticks);
        assert_eq!(seconds(stat, [15, 16]), 107.0 / ticks);
        assert!(usage_of(std::process::id()).memory > 0.0);
    }

    #[test]
    fn shared_memory_counts_once() {
        let of = |shared: u32| {
            let text = "Rss: 900 kB\nPss: 500 kB\nPss_Anon: 30 kB\nPss_File: 400 kB\n";
            memory(&format!("{text}Pss_Shmem: {shared} kB\nPrivate_Dirty: {} kB\n", 2 * shared))
        };
        assert_eq!(of(8), 38.0 * 1024.0);
        assert_eq!(memory(""), 0.0);
    }

    #[test]
    fn the_daemon_is_found_where_it_is_installed() {
        let root = tempfile::tempdir().unwrap();
        let [bin, sbin] = ["bin", "sbin"].map(|name| root.path().join(name));
        for folder in [&bin, &sbin] {
            fs::create_dir(folder).unwrap();
        }
        assert_eq!(daemon(&bin), bin.join("millraced"));
        fs::write(sbin.join("millraced"), "").unwrap();
        assert_eq!(daemon(&bin), bin.join("../sbin/millraced"));
        fs::write(bin.join("millraced"), "").unwrap();
        assert_eq!(daemon(&bin), bin.join("millraced"));
    }

    #[test]
    fn programs_of_programs_count() {
        let stat = |parent: u32, own: u32, ended: u32| {
            format!("1 (x) S {parent} 1 1 0 -1 4 0 0 0 0 {own} 0 {ended} 0 20 0")
        };
        let all = [(1, stat(0, 64, 0)), (5, stat(1, 1, 2)), (7, stat(5, 4, 0)), (3, stat(7, 8, 0))];
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!((total(5, all.to_vec()) * ticks).round(), 15.0);
        assert_eq!((total(1, all.to_vec()) * ticks).round(), 79.0);
        assert_eq!(total(9, all.to_vec()), 0.0);
        assert!(cpu_of_all() > 0.0);
    }
}
