//! `dpdk-testpmd`, driven by its commands.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::failure::Failure;
use crate::process::apart;

/// How long it may take to start, or to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines of its output that are shown when it fails.
const LAST: usize = 4;

/// How it is to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// Tells it from others of this run.
    pub(crate) name: &'a str,
    /// Its devices, as `--vdev` takes them.
    pub(crate) devices: &'a [&'a str],
    /// The file of templates of our packet source; without, the device's own packets.
    pub(crate) templates: Option<&'a Path>,
    /// Cores of its main and its forwarding thread.
    pub(crate) cores: [usize; 2],
    pub(crate) hugepages: bool,
    pub(crate) burst: u16,
    /// Packet buffers, and bytes of each, headroom of 128 included.
    pub(crate) buffers: u32,
    pub(crate) buffer_size: u32,
}

/// It runs, and forwards between `start` and `stop`.
pub(crate) struct Testpmd {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    last: Vec<String>,
}

/// Memory without hugepages: MB.
const PLAIN: u32 = 128;

/// What EAL is told: the program's name in files, its devices, the cores of its main and its working thread, and how much
/// ordinary memory it gets (MB) instead of hugepages.
pub(crate) fn eal_arguments(
    name: &str,
    devices: &[&str],
    [main, work]: [usize; 2],
    plain: Option<u32>,
) -> Vec<String> {
    let mut list = vec![
        format!("--lcores=0@{main},1@{work}"),
        format!("--file-prefix=millrace-bench-{}-{name}", std::process::id()),
        "--no-pci".into(),
        "--iova-mode=va".into(),
        "--no-telemetry".into(),
        "--log-level=4".into(),
    ];
    list.extend(devices.iter().map(|device| format!("--vdev={device}")));
    match plain {
        None => list.extend(["--in-memory", "--single-file-segments"].map(String::from)),
        Some(megabytes) => {
            list.extend(["--no-huge", "--no-shconf", "-m"].map(String::from));
            list.push(megabytes.to_string());
        }
    }
    list
}

fn arguments(setup: &Setup<'_>) -> Vec<String> {
    let plain = (!setup.hugepages).then_some(PLAIN);
    let mut list = eal_arguments(setup.name, setup.devices, setup.cores, plain);
    list.extend(["--", "-i", "--disable-link-check", "--nb-cores=1"].map(String::from));
    list.push(format!("--total-num-mbufs={}", setup.buffers));
    list.push(format!("--mbuf-size={}", setup.buffer_size));
    list.push(format!("--burst={}", setup.burst));
    list
}

/// A terminal: our end and its. Into a pipe it would write only when 4 KB have come together.
fn terminal() -> std::io::Result<(File, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((ours.into(), theirs.into()))
}

impl Testpmd {
    /// Starts it and waits until it takes commands.
    pub(crate) fn spawn(setup: &Setup<'_>) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::Testpmd(format!("it does not start: {error}"));
        let (output, theirs) = terminal().map_err(failed)?;
        let mut command = Command::new("dpdk-testpmd");
        if let Some(templates) = setup.templates {
            // Its own `-d` refuses what lies below a folder that all may write to, such as /tmp.
            command.env("LD_PRELOAD", dpdk::yardstick::SOURCE_PLUGIN);
            command.env("MILLRACE_SOURCE", templates);
        }
        let mut child = apart(&mut command)
            .args(arguments(setup))
            .stdin(Stdio::piped())
            .stdout(theirs)
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        // It holds the other end of the terminal, whose closing says that the program has ended.
        drop(command);
        let closed = || Failure::Testpmd("it has no standard input".into());
        let input = child.stdin.take().ok_or_else(closed)?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut started = Self { child, input, lines, last: Vec::new() };
        // It answers when it is ready; the source attaches itself shortly after.
        started.command("show port stats 0")?;
        started.expect("Tx-pps:")?;
        Ok(started)
    }

    /// Starts to forward in a mode, such as `io` or `macswap`.
    pub(crate) fn start(&mut self, mode: &str) -> Result<(), Failure> {
        self.command(&format!("set fwd {mode}"))?;
        self.command("start")?;
        self.rate().map(drop)
    }

    /// The same, and sends one burst of packets of its own first.
    pub(crate) fn start_with_burst(&mut self, mode: &str) -> Result<(), Failure> {
        self.command(&format!("set fwd {mode}"))?;
        self.command("start tx_first")?;
        self.rate().map(drop)
    }

    /// Sets packets per burst, and bytes of a packet of its own; between `stop` and `start`.
    pub(crate) fn set(&mut self, burst: u16, bytes: u16) -> Result<(), Failure> {
        self.command(&format!("set burst {burst}"))?;
        self.command(&format!("set txpkts {bytes}"))
    }

    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        self.command("stop")?;
        self.rate().map(drop)
    }

    /// Packets sent per second since the question before, which may have been the other one.
    pub(crate) fn rate(&mut self) -> Result<f64, Failure> {
        self.rates().map(|[_, sent]| sent)
    }

    /// Packets received per second since the question before.
    pub(crate) fn receive_rate(&mut self) -> Result<f64, Failure> {
        self.rates().map(|[received, _]| received)
    }

    fn rates(&mut self) -> Result<[f64; 2], Failure> {
        self.command("show port stats 0")?;
        // Both are read, or the next question would find what is left of this answer.
        Ok([self.number("Rx-pps:")?, self.number("Tx-pps:")?])
    }

    fn number(&mut self, name: &str) -> Result<f64, Failure> {
        let line = self.expect(name)?;
        let mut words = line.split_whitespace().skip_while(|word| *word != name);
        let number = words.nth(1).and_then(|word| word.parse().ok());
        number.ok_or_else(|| Failure::Testpmd(format!("it answers `{line}`")))
    }

    /// Waits until the source is attached and packets flow.
    pub(crate) fn warm_up(&mut self) -> Result<(), Failure> {
        self.start("io")?;
        self.flows(Self::rate)?;
        self.stop()
    }

    /// Waits until a rate says that packets flow.
    pub(crate) fn flows(
        &mut self,
        rate: impl Fn(&mut Self) -> Result<f64, Failure>,
    ) -> Result<(), Failure> {
        let begin = Instant::now();
        while rate(self)? < 1e5 {
            if begin.elapsed() > PATIENCE {
                return Err(Failure::Idle("dpdk-testpmd"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn command(&mut self, text: &str) -> Result<(), Failure> {
        let failed = |error| Failure::Testpmd(format!("it takes no command: {error}"));
        writeln!(self.input, "{text}").and_then(|()| self.input.flush()).map_err(failed)
    }

    fn expect(&mut self, words: &str) -> Result<String, Failure> {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::Testpmd("it does not answer".into()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let said = self.last.join(" / ");
                    return Err(Failure::Testpmd(format!("it has ended: {said}")));
                }
            };
            if line.contains(words) {
                return Ok(line);
            }
            if self.last.len() == LAST {
                self.last.remove(0);
            }
            self.last.push(line.trim().to_owned());
        }
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.command("quit");
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(3) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_as_the_bench_has_it() {
        let setup = |hugepages| Setup {
            name: "x",
            devices: &["net_null0"],
            templates: None,
            cores: [0, 1],
            hugepages,
            burst: 64,
            buffers: 1024,
            buffer_size: 2176,
        };
        let huge = arguments(&setup(true));
        assert!(huge.contains(&"--in-memory".to_owned()));
        assert!(!huge.contains(&"--no-huge".to_owned()));
        let plain = arguments(&setup(false));
        assert!(plain.contains(&"--no-huge".to_owned()));
        assert!(!plain.contains(&"--in-memory".to_owned()));
    }
}
