//! The machine that was measured on.

use std::path::Path;
use std::process::Command;

use dpdk::Eal;
use serde::Serialize;
use serde_json::{Map, Value};

use super::cores::{cores, outermost};
use super::disturbance::{self, Disturbance, Rounds};
use super::moment::Moment;
use super::settings::Settings;
use crate::interrupt;

/// What a number depends on besides the code.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Environment {
    /// The processor's name.
    cpu: String,
    /// Processors that the run could use.
    cores: usize,
    /// Cycles per second of the time-stamp counter.
    tsc_hz: u64,
    kernel: String,
    dpdk: String,
    /// Whether DPDK's memory was in hugepages.
    hugepages: bool,
    /// Where the routes came from.
    prefixes: String,
    version: &'static str,
    /// Of the checkout that the program was built in, if it is still there.
    revision: Option<String>,
    /// What was asked for.
    command: String,
    /// What files said besides, by the names of what they describe.
    #[serde(skip_serializing_if = "Map::is_empty")]
    configuration: Map<String, Value>,
    #[serde(flatten)]
    settings: Settings,
    /// The machine when the run began.
    began: Moment,
}

/// The environment of a run that is over.
#[derive(Debug, Serialize)]
pub(crate) struct Finished<'a> {
    #[serde(flatten)]
    environment: &'a Environment,
    ended: Moment,
    /// Whether Ctrl-C has ended it early.
    interrupted: bool,
    /// What others did meanwhile.
    #[serde(flatten)]
    disturbance: Option<Disturbance>,
    rounds: Rounds,
    /// What disturbed the run, in words; nothing if nothing did.
    disturbed: Vec<String>,
}

impl Environment {
    pub(crate) fn of(eal: &Eal, prefixes: &str) -> Self {
        let system = rustix::system::uname();
        Self {
            cpu: cpu(),
            cores: cores().len(),
            tsc_hz: dpdk::tsc_hz(),
            kernel: system.release().to_string_lossy().into_owned(),
            dpdk: Eal::version(),
            hugepages: eal.hugepages(),
            prefixes: prefixes.into(),
            version: env!("CARGO_PKG_VERSION"),
            revision: revision(),
            command: command(),
            configuration: Map::new(),
            settings: Settings::read(Path::new("/")),
            began: Moment::now(outermost()),
        }
    }

    /// The same for a run whose other processes had DPDK's memory in hugepages, or had not.
    pub(crate) fn with_hugepages(self, hugepages: bool) -> Self {
        Self { hugepages, ..self }
    }

    /// The same for a run that files have configured.
    pub(crate) fn with_configuration(self, configuration: Map<String, Value>) -> Self {
        Self { configuration, ..self }
    }

    /// Which of our commands it is: the first word of what was asked for.
    pub(crate) fn subcommand(&self) -> &str {
        self.command.split_whitespace().next().unwrap_or_default()
    }

    /// The run is over: how the machine is now.
    pub(crate) fn finish(&self) -> Finished<'_> {
        // Meanwhile this thread may keep to one core.
        let ended = Moment::now(self.began.cores);
        let disturbance = self.began.disturbance_until(&ended);
        let rounds = Rounds::of_this_run();
        let probes = [self.began.core_to_core, ended.core_to_core];
        let disturbed = disturbance::words(&disturbance.unwrap_or_default(), rounds, probes);
        let interrupted = interrupt::came();
        Finished { environment: self, ended, interrupted, disturbance, rounds, disturbed }
    }

    /// For people: a line and, where DPDK has packets and tables in ordinary pages, what that means.
    pub(crate) fn lines(&self) -> String {
        if self.hugepages {
            return self.line();
        }
        format!(
            "{}\nDPDK's memory is in ordinary pages: large tables and pools are slower there, and vary more. `millrace doctor` says how \
             to reserve hugepages",
            self.line()
        )
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let memory = if self.hugepages { "hugepages" } else { "no hugepages" };
        format!(
            "{}, {} cores, TSC {:.2} GHz, Linux {}, {}, {memory}; routes: {}",
            self.cpu,
            self.cores,
            self.tsc_hz as f64 / 1e9,
            self.kernel,
            self.dpdk,
            self.prefixes
        )
    }
}

impl Finished<'_> {
    /// What disturbed the run, for people.
    pub(crate) fn disturbed(&self) -> Option<String> {
        let words = self.disturbed.join("; ");
        (!words.is_empty()).then(|| format!("disturbed: {words}"))
    }
}

fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    line.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn command() -> String {
    let words = std::env::args_os().skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn revision() -> Option<String> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .current_dir(checkout)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
