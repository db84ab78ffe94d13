//! Its arguments.

use std::fmt;
use std::path::PathBuf;

use crate::command_line::Json;

/// The command's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario: a TOML file.
    pub(super) scenario: PathBuf,
    #[command(flatten)]
    pub(super) json: Json,
    /// Trials of at most 2 s, and one latency trial: a first look, not a result to publish.
    #[arg(long)]
    pub(super) quick: bool,
    /// Check the scenario, and what it needs of this machine, and say what would be measured.
    #[arg(long)]
    pub(super) check: bool,
    /// Folder of millraced [default: that of this program, or `sbin` beside it].
    #[arg(long, value_name = "DIR")]
    pub(super) programs: Option<PathBuf>,
    /// Do without hugepages, even if there are some.
    #[arg(long)]
    pub(super) no_huge: bool,
}

/// Those of the device with known faults.
#[derive(Debug, clap::Args)]
pub(crate) struct Impaired {
    /// Its two ports: device strings.
    pub(super) ports: Vec<String>,
    /// The core that it keeps to.
    #[arg(long)]
    pub(super) core: usize,
    #[command(flatten)]
    pub(super) faults: Faults,
}

/// What it does to frames; each way counts for itself.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, clap::Args, serde::Deserialize, serde::Serialize,
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Faults {
    /// Drop every so many-th frame; 0: none.
    #[arg(long, default_value_t = 0)]
    pub(super) drop: u64,
    /// Send every so many-th frame twice; 0: none.
    #[arg(long, default_value_t = 0)]
    pub(super) duplicate: u64,
    /// Send every so many-th frame after the one that follows it; 0: none.
    #[arg(long, default_value_t = 0)]
    pub(super) reorder: u64,
    /// Flip a bit at the end of every so many-th frame; 0: none.
    #[arg(long, default_value_t = 0)]
    pub(super) corrupt: u64,
    /// Hold each frame so long: microseconds.
    #[arg(long, default_value_t = 0)]
    pub(super) delay: u64,
    /// Drop 5,000 frames in a row once, from this one on; 0: none.
    #[arg(long, default_value_t = 0)]
    pub(super) lapse: u64,
    /// Do nothing for 400 ms once, at this frame; 0: never.
    #[arg(long, default_value_t = 0)]
    pub(super) pause: u64,
}

impl Faults {
    /// Names and values.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let Self { drop, duplicate, reorder, corrupt, delay, lapse, pause } = *self;
        [
            ("drop", drop),
            ("duplicate", duplicate),
            ("reorder", reorder),
            ("corrupt", corrupt),
            ("delay", delay),
            ("lapse", lapse),
            ("pause", pause),
        ]
        .into_iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.all().filter(|(_, value)| *value > 0);
        let own: Vec<String> = own.map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&if own.is_empty() { "none".to_owned() } else { own.join(", ") })
    }
}
