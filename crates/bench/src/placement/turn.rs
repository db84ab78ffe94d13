//! A turn of a row: a process of its own, and what the machine did meanwhile.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::memory::Pages;
use super::rows::Setup;
use super::stage::Taken;
use crate::failure::Failure;
use crate::machine::{self, Disturbance, Look, Rounds, same_phase};
use crate::namespace::bound;
use crate::process::Running;
use crate::results::Samples;

/// The hidden command of the process.
const COMMAND: &str = "placement-stage";
/// How long the process may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is the same for all turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) frame: u16,
    pub(super) samples: u32,
    /// A file of prefixes.
    pub(super) routes: &'a Path,
}

/// A turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    /// What came of it; or why nothing did.
    pub(super) taken: Result<Taken, String>,
    /// What others did meanwhile.
    pub(super) disturbance: Disturbance,
    /// TSC cycles in which a cache line goes from the first core to the last and back, before and after; nothing where there is
    /// one core.
    pub(super) probes: Samples,
}

impl Turn {
    /// Takes one.
    pub(super) fn take(setup: &Setup, load: Load<'_>) -> Result<Self, Failure> {
        let (before, look) = (probe()?, Look::now());
        let taken = ask(setup, load).unwrap_or_else(|failure| Err(failure.to_string()));
        let disturbance = look.since();
        let probes = Samples([before, probe()?].into_iter().flatten().collect());
        let turn = Self { taken, disturbance, probes };
        Rounds::count(turn.is_disturbed());
        Ok(turn)
    }

    /// Packets/s.
    pub(super) fn rate(&self) -> Option<f64> {
        self.taken.as_ref().ok().map(|taken| taken.rate)
    }

    /// Whether the host or other programs took time, or the machine changed its phase.
    pub(super) fn is_disturbed(&self) -> bool {
        self.disturbance.counts() || !(self.probes.0.is_empty() || same_phase(&self.probes.0))
    }

    /// Whether another turn can be compared with it: nothing disturbed either, and the machine was in one phase.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let probes = Samples([self.probes.0.as_slice(), other.probes.0.as_slice()].concat());
        let one_phase = probes.0.is_empty() || same_phase(&probes.0);
        one_phase && !self.is_disturbed() && !other.is_disturbed()
    }
}

fn probe() -> Result<Option<f64>, Failure> {
    let [first, last] = machine::outermost();
    if first == last { Ok(None) } else { machine::round_trip([first, last]).map(Some) }
}

/// What the process says.
fn ask(setup: &Setup, load: Load<'_>) -> Result<Result<Taken, String>, Failure> {
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(PATIENCE))?;
    let mut command = bound();
    command.arg(std::env::current_exe()?).arg(COMMAND).args(words(setup, load));
    command.stdin(Stdio::null()).stdout(Stdio::from(OwnedFd::from(theirs)));
    let running = Running::new(command.spawn()?);
    // It holds the process's end, whose closing says that it has ended.
    drop(command);
    let mut said = String::new();
    ours.read_to_string(&mut said).map_err(|_| {
        Failure::Placement(format!("its process has said nothing for {PATIENCE:?}"))
    })?;
    // Its memory is free when it has ended.
    drop(running);
    let line = said.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| Failure::Placement("its process ended early".into()))
}

/// The arguments of the process.
fn words(setup: &Setup, load: Load<'_>) -> Vec<String> {
    let Setup { cores, memory } = setup;
    let mut words: Vec<String> = cores.iter().map(u16::to_string).collect();
    if let Pages::Huge(size) = memory.pages {
        words.push(format!("--huge={size}"));
    }
    words.push(format!("--megabytes={}", memory.megabytes));
    words.extend(memory.channels.map(|channels| format!("--channels={channels}")));
    words.push(format!("--frame={}", load.frame));
    words.push(format!("--samples={}", load.samples));
    words.push(format!("--prefixes={}", load.routes.display()));
    words
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use super::super::args::Stage;
    use super::super::memory::Memory;
    use super::*;
    use crate::command_line::parse;

    fn turn(stolen: f64, probes: &[f64]) -> Turn {
        let disturbance = Disturbance { stolen, others: 0.0 };
        Turn { taken: Err(String::new()), disturbance, probes: Samples(probes.to_vec()) }
    }

    #[test]
    fn the_process_is_told_what_is_wanted() {
        let huge = Memory::usual(Pages::Huge(2048));
        let routes = Path::new("/tmp/routes");
        let load = Load { frame: 64, samples: 3, routes };
        let told = |memory| {
            let setup = Setup { cores: [5, 0, 7], memory };
            parse::<Stage>(&words(&setup, load).join(" ")).unwrap()
        };
        let stage = told(Memory { channels: NonZeroU8::new(3), ..huge });
        assert_eq!([stage.receive, stage.worker, stage.transmit], [5, 0, 7]);
        assert_eq!((stage.huge, stage.megabytes), (Some(2048), 128));
        assert_eq!((stage.channels, stage.frame, stage.samples), (NonZeroU8::new(3), 64, 3));
        assert_eq!(stage.prefixes, routes);
        let stage = told(Memory::usual(Pages::Ordinary));
        assert_eq!((stage.huge, stage.channels), (None, None));
    }

    #[test]
    fn disturbed_turns_are_told_from_others() {
        assert!(!turn(0.0, &[300.0, 310.0]).is_disturbed());
        assert!(turn(0.02, &[300.0, 310.0]).is_disturbed());
        let busy = Disturbance { stolen: 0.0, others: 1.0 };
        assert!(Turn { disturbance: busy, ..turn(0.0, &[300.0, 310.0]) }.is_disturbed());
        assert!(turn(0.0, &[300.0, 900.0]).is_disturbed());
        assert!(!turn(0.01, &[]).is_disturbed());
        let (near, far) = (turn(0.0, &[300.0, 310.0]), turn(0.0, &[900.0, 910.0]));
        assert!(near.is_like(&near) && !near.is_like(&far));
        assert!(!near.is_like(&turn(0.5, &[300.0, 300.0])));
    }
}
