//! DPDK's example router `l3fwd`, as `scripts/l3fwd` builds it: it runs all the time, and stands still while others have their turns.

mod look_up;
mod rules;

pub(crate) use look_up::LookUp;
pub(crate) use rules::Rules;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dpdk::yardstick::Report;
use dpdk::{Eal, EalOptions};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::process::{Running, apart};
use crate::testpmd;

/// How long it may take to load a full table.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to forward anything, once it does.
const SILENCE: Duration = Duration::from_secs(10);
/// Where `scripts/l3fwd` puts it.
const PROGRAM: &str = "target/l3fwd/l3fwd";
/// Memory for its tables: MB. FIB's for IPv6 are the largest.
const MEGABYTES: u32 = 2048;
/// What passes before it is known to forward.
const WARM: Duration = Duration::from_millis(50);
/// What it says on standard error.
const LOG: &str = "l3fwd.log";
/// Lines of it that are shown when it fails.
const LAST: usize = 3;

/// How it is to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// The program; without, the one that `scripts/l3fwd` has built.
    pub(crate) program: Option<&'a Path>,
    pub(crate) look_up: LookUp,
    pub(crate) rules: &'a Rules,
    /// The file of templates of our packet source.
    pub(crate) templates: &'a Path,
    /// Cores of its main and its forwarding thread.
    pub(crate) cores: [usize; 2],
}

/// It runs, or stands still.
pub(crate) struct L3fwd {
    process: Running,
    /// Its rules, its report and what it says.
    folder: TempDir,
    report: File,
    last: Report,
    pub(crate) look_up: LookUp,
    /// Whether its tables are in hugepages.
    pub(crate) hugepages: bool,
}

impl L3fwd {
    /// Starts it, waits until it forwards, and stops it there.
    pub(crate) fn spawn(setup: &Setup<'_>) -> Result<Self, Failure> {
        let program = setup.program.unwrap_or(Path::new(PROGRAM));
        let failed = |error: std::io::Error| {
            Failure::L3fwd(format!("{} does not start: {error}", program.display()))
        };
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report");
        let options = EalOptions { megabytes: MEGABYTES, ..EalOptions::default() };
        let hugepages =
            Eal::get().is_some_and(|eal| eal.hugepages() && eal.has_room_beside(&options));
        let files = setup.rules.write(setup.look_up, folder.path())?;
        File::create(&report).map_err(failed)?;
        let child = apart(&mut Command::new(program))
            .args(arguments(setup, hugepages, &files))
            // Its own `-d` refuses what lies below a folder that all may write to, such as /tmp.
            .env("LD_PRELOAD", dpdk::yardstick::SOURCE_PLUGIN)
            .env("MILLRACE_SOURCE", setup.templates)
            .env("MILLRACE_SOURCE_POOL", "mbuf_pool_0:0")
            .env("MILLRACE_SOURCE_REPORT", &report)
            .stdin(Stdio::null())
            // It names every route.
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join(LOG)).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let report = File::open(&report).map_err(failed)?;
        let process = Running::new(child);
        let (last, look_up) = (Report { packets: 0, time: 0 }, setup.look_up);
        let mut started = Self { process, folder, report, last, look_up, hugepages };
        started.last = started.next(PATIENCE)?;
        // It has its packets from now on.
        thread::sleep(WARM);
        started.cycles()?;
        started.pause()?;
        Ok(started)
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// Lets it stand still.
    pub(crate) fn pause(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)
    }

    /// TSC cycles per packet since the question before.
    pub(crate) fn cycles(&mut self) -> Result<f64, Failure> {
        let (begin, before) = (Instant::now(), self.last);
        loop {
            let now = self.next(SILENCE)?;
            self.last = now;
            let packets = now.packets.saturating_sub(before.packets);
            if packets > 0 {
                return Ok(now.time.saturating_sub(before.time) as f64 / packets as f64);
            }
            // On a machine with much else to do it may not have had the core at all.
            if begin.elapsed() > SILENCE {
                return Err(Failure::Idle("l3fwd"));
            }
        }
    }

    /// What it says next.
    fn next(&mut self, patience: Duration) -> Result<Report, Failure> {
        let begin = Instant::now();
        loop {
            let mut bytes = [0; Report::LENGTH];
            // A file that is still empty has nothing to say.
            let read = self.report.read_exact_at(&mut bytes, 0);
            let said = read.ok().and_then(|()| Report::parse(&bytes));
            if let Some(report) = said.filter(|said| said.time > self.last.time) {
                return Ok(report);
            }
            if self.process.has_ended() {
                return Err(Failure::L3fwd(format!("it has ended: {}", self.last_words())));
            }
            if begin.elapsed() > patience {
                return Err(Failure::L3fwd(format!("it is silent: {}", self.last_words())));
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LAST)..].join(" / ")
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        if self.process.signal(signal) {
            Ok(())
        } else {
            Err(Failure::L3fwd(format!("it is gone: {}", self.last_words())))
        }
    }
}

impl Drop for L3fwd {
    fn drop(&mut self) {
        // So that it ends in order. It may be gone already.
        let _ = self.resume();
    }
}

fn arguments(setup: &Setup<'_>, hugepages: bool, files: &[PathBuf; 2]) -> Vec<String> {
    // One port that packets come in by, two that they leave by, as the bench has them.
    let devices = ["net_null0,no-rx=1", "net_null1,no-rx=1", "net_null2,no-rx=1"];
    let memory = if hugepages { None } else { Some(MEGABYTES) };
    let name = format!("l3fwd-{}", setup.look_up);
    let mut list = testpmd::eal_arguments(&name, &devices, setup.cores, memory);
    let [four, six] = files;
    list.extend(["--", "-p", "0x7", "--config=(0,0,1)", "--parse-ptype"].map(String::from));
    list.push(format!("--lookup={}", setup.look_up));
    list.push(format!("--rule_ipv4={}", four.display()));
    list.push(format!("--rule_ipv6={}", six.display()));
    if setup.look_up == LookUp::Em {
        // Half full at most, as its buckets want it.
        let entries = (2 * setup.rules.flows.len()).next_power_of_two().max(1 << 16);
        list.push(format!("--hash-entry-num={entries:#x}"));
        list.extend(setup.rules.is_ipv6().then(|| "--ipv6".to_owned()));
    }
    list
}
