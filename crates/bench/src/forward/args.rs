//! The command line of `forward`, and the cases that it chooses.

use std::path::PathBuf;

use super::cases::{Case, Family, Routes};
use crate::command_line::{Run, decimal, number};
use crate::l3fwd::LookUp;
use crate::load::Frames;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// Flows: numbers such as 1, 10k, 1M. With this, --routes, --frames or --family, every
    /// combination is measured; without them a selection of six.
    #[arg(long, value_delimiter = ',', value_parser = number)]
    pub(super) flows: Vec<usize>,
    /// Routes: numbers, or `full`.
    #[arg(long, value_delimiter = ',')]
    pub(super) routes: Vec<Routes>,
    /// Frame sizes: bytes from 64 to 1500, without check sequence, or `mix`.
    #[arg(long, value_delimiter = ',')]
    pub(super) frames: Vec<Frames>,
    /// 4 or 6.
    #[arg(long, value_delimiter = ',')]
    pub(super) family: Vec<Family>,
    /// How long each contestant is measured in a round, in turns of a tenth of a second: seconds.
    #[arg(long, default_value_t = 0.4, value_parser = decimal::<2, 6_000>)]
    pub(super) seconds: f64,
    /// Packets that a receive queue is asked for at once: 1 to 256.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) vector: u16,
    /// The same for dpdk-testpmd; its own default is 32.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(super) testpmd_burst: u16,
    /// Print each node's cycles.
    #[arg(long)]
    pub(super) profile: bool,
    /// Leave dpdk-testpmd out.
    #[arg(long)]
    pub(super) no_yardstick: bool,
    /// DPDK's example router l3fwd takes turns too, with these look-ups of lpm, fib and em; without a value lpm and fib.
    /// `scripts/l3fwd` builds it. lpm is left out with more than 100k routes, which take minutes to load.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LOOK-UPS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "lpm,fib",
        conflicts_with = "no_yardstick"
    )]
    pub(super) l3fwd: Vec<LookUp>,
    /// The program of --l3fwd [default: where `scripts/l3fwd` puts it, target/l3fwd/l3fwd].
    #[arg(long, value_name = "FILE", requires = "l3fwd")]
    pub(super) l3fwd_program: Option<PathBuf>,
}

impl Args {
    /// Every combination of what the command line names, or a choice of all.
    pub(super) fn cases(&self) -> Vec<Case> {
        let chosen = !(self.flows.is_empty()
            && self.routes.is_empty()
            && self.frames.is_empty()
            && self.family.is_empty());
        if !chosen {
            return usual(self.run.quick);
        }
        let mut cases = Vec::new();
        let flows = if self.flows.is_empty() { &[10_000][..] } else { &self.flows };
        let routes =
            if self.routes.is_empty() { &[Routes::Some(10_000)][..] } else { &self.routes };
        let frames = if self.frames.is_empty() { &[Frames::Fixed(64)][..] } else { &self.frames };
        let families = if self.family.is_empty() { &[Family::V4][..] } else { &self.family };
        for &family in families {
            for &frames in frames {
                for &routes in routes {
                    cases.extend(flows.iter().map(|&flows| Case { family, flows, routes, frames }));
                }
            }
        }
        cases
    }
}

fn usual(quick: bool) -> Vec<Case> {
    use Family::{V4, V6};
    let small = Frames::Fixed(64);
    let few = Routes::Some(2);
    let some = Routes::Some(10_000);
    let all = [
        (V4, 10_000, some, small),
        (V4, 1_000_000, Routes::Full, small),
        (V4, 1, few, small),
        (V4, 10_000, some, Frames::Mix),
        (V6, 10_000, some, small),
        (V6, 1_000_000, Routes::Full, small),
    ];
    let cases = all.map(|(family, flows, routes, frames)| Case { family, flows, routes, frames });
    cases.into_iter().take(if quick { 1 } else { all.len() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

    #[test]
    fn what_is_named_is_combined() {
        let cases = |line| parse::<Args>(line).unwrap().cases();
        let all = cases("--flows 1,10k --routes full,2 --frames mix --family 6");
        assert_eq!(all.len(), 4);
        let first =
            Case { family: Family::V6, flows: 1, routes: Routes::Full, frames: Frames::Mix };
        assert_eq!(all[0], first);
        assert_eq!(cases("--quick").len(), 1);
        assert_eq!(cases("").len(), 6);
        assert!("5".parse::<Family>().is_err());
        assert!(parse::<Args>("--seconds 61").is_err(), "it was taken for 60");
    }

    #[test]
    fn the_example_router_has_a_choice_of_look_ups() {
        let look_ups = |line| parse::<Args>(line).map(|args| args.l3fwd);
        assert_eq!(look_ups("").unwrap(), []);
        assert_eq!(look_ups("--l3fwd").unwrap(), [LookUp::Lpm, LookUp::Fib]);
        assert_eq!(look_ups("--l3fwd=em,lpm").unwrap(), [LookUp::Em, LookUp::Lpm]);
        assert!(look_ups("--l3fwd=acl").is_err());
        assert!(look_ups("--l3fwd --no-yardstick").is_err(), "figures are above testpmd's");
        assert!(look_ups("--l3fwd-program /x").is_err());
    }
}
