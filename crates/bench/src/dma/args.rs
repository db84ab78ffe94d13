//! The command line of `dma`.

use std::path::PathBuf;

use super::memory::SLOTS;
use super::pcie::Generation;
use super::{LONGEST, SHORTEST};
use crate::command_line::{Json, number};

/// Most descriptors in a fetch, and packets to a write-back: half a ring.
const MOST_AT_ONCE: u64 = SLOTS / 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) json: Json,
    /// PCIe generations.
    #[arg(long, value_delimiter = ',', default_value = "2,3,4,5")]
    pub(super) generations: Vec<Generation>,
    /// Widths of the link: lanes, 1 to 16.
    #[arg(long, value_delimiter = ',', default_value = "8", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) lanes: Vec<u32>,
    /// Packet sizes: bytes, 64 to 1518.
    #[arg(long, value_delimiter = ',', default_value = "64,128,256,512,1024,1518", value_parser = clap::value_parser!(u64).range(SHORTEST..=LONGEST))]
    pub(super) sizes: Vec<u64>,
    /// Maximum payload size: bytes, a power of two.
    #[arg(long, default_value = "256", value_parser = power::<128, 4096>)]
    pub(super) payload: u64,
    /// Maximum read request size: bytes, a power of two.
    #[arg(long, default_value = "512", value_parser = power::<128, 4096>)]
    pub(super) read_request: u64,
    /// Pieces in which the host answers reads: bytes, a power of two, from the read completion
    /// boundary of 64 to the maximum payload.
    #[arg(long, default_value = "256", value_parser = power::<64, 4096>)]
    pub(super) completion: u64,
    /// Addresses of 32 bits: the headers of requests are a word shorter.
    #[arg(long)]
    pub(super) narrow: bool,
    /// Descriptors that the device fetches at once: a power of two.
    #[arg(long, default_value = "32", value_parser = power::<1, MOST_AT_ONCE>)]
    pub(super) fetch: u64,
    /// Packets after which descriptors are written back: a power of two.
    #[arg(long, default_value = "1", value_parser = power::<1, MOST_AT_ONCE>)]
    pub(super) write_back: u64,
    /// Packets of each stream through the soft device: a number such as 10k.
    #[arg(long, default_value = "10k", value_parser = number)]
    pub(super) packets: usize,
    /// Rounds between two cores, in which the layouts take turns.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// Write plots into this folder (SVG).
    #[arg(long, value_name = "DIR")]
    pub(super) plots: Option<PathBuf>,
    /// A short run, to see whether everything works.
    #[arg(long)]
    pub(super) quick: bool,
}

/// A power of two in a range.
#[derive(Debug, thiserror::Error)]
#[error("a power of two from {least} to {most} is expected")]
struct NotAPower {
    least: u64,
    most: u64,
}

/// A power of two from `LEAST` to `MOST`.
fn power<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, NotAPower> {
    let number = text.parse().ok().filter(|number: &u64| number.is_power_of_two());
    let wrong = NotAPower { least: LEAST, most: MOST };
    number.filter(|number| (LEAST..=MOST).contains(number)).ok_or(wrong)
}
