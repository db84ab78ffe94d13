//! Its arguments.

use crate::command_line::{Run, decimal};

/// Work for each packet at which the rate is measured, unless the command line says so.
const WORK: [u32; 8] = [0, 1, 2, 4, 8, 16, 32, 64];
const WORK_QUICK: [u32; 3] = [0, 1, 8];

/// The command's.
#[derive(Debug, clap::Args)]
#[command(mut_arg("rounds", |rounds| rounds.help("Samples of 20 ms at each amount of work")))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// Frame sizes: bytes from 64 to 1518, check sequence included.
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024,1518", value_parser = clap::value_parser!(u16).range(64..=1518))]
    pub(super) frames: Vec<u16>,
    /// Pieces of work per packet at which the rate is measured: 0 to 64 [default: 0,1,2,4,8,16,32,64].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(super) work: Vec<u32>,
    /// The rate for which the largest n without loss is sought: Gbit/s on the wire.
    #[arg(long, default_value_t = 10.0, value_parser = decimal::<1, 100_000>)]
    pub(super) gigabits: f64,
    /// Memory that is read, more than any cache holds: MB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) memory: u32,
}

impl Args {
    /// Work for each packet at which the rate is measured, in ascending order.
    pub(super) fn work(&self) -> Vec<u32> {
        let mut work = match (self.work.is_empty(), self.run.quick) {
            (false, _) => self.work.clone(),
            (true, true) => WORK_QUICK.to_vec(),
            (true, false) => WORK.to_vec(),
        };
        work.sort_unstable();
        work.dedup();
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

    #[test]
    fn the_rate_is_measured_at_the_work_that_is_named() {
        let work = |line: &str| parse::<Args>(line).map(|args| args.work());
        assert_eq!(work("--work 9,0,9 --quick").unwrap(), [0, 9]);
        assert_eq!((work("").unwrap().len(), work("--quick").unwrap().len()), (8, 3));
        assert!(work("--work 65").is_err());
    }

    #[test]
    fn rates_are_such_as_links_have() {
        let gigabits = |line: &str| parse::<Args>(line).map(|args| args.gigabits);
        assert_eq!((gigabits("").unwrap(), gigabits("--gigabits 400").unwrap()), (10.0, 400.0));
        for wrong in ["0", "-1", "nan", "1001"] {
            let why = gigabits(&format!("--gigabits={wrong}")).unwrap_err().to_string();
            assert!(why.contains("a number from 0.01 to 1000"), "{why}");
        }
    }
}
