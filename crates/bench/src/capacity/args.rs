//! Its arguments.

use crate::command_line::{Run, decimal};

/// The command's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) run: Run,
    /// Frame sizes: bytes from 64 to 1518, check sequence included.
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024,1518", value_parser = clap::value_parser!(u16).range(64..=1518))]
    pub(super) frames: Vec<u16>,
    /// The rate for which the largest n without loss is sought: Gbit/s on the wire.
    #[arg(long, default_value_t = 10.0, value_parser = decimal::<1, 100_000>)]
    pub(super) gigabits: f64,
    /// Memory that is read, more than any cache holds: MB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) memory: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

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
