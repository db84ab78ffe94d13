//! The command line of `compare`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Results before: a file that `--json` has written, or a folder of them. Several runs of one command are repeated trials.
    /// Without A and B, the two newest runs of the command that was measured last without `--json`.
    #[arg(value_name = "A", requires = "after")]
    before: Option<PathBuf>,
    /// Results after.
    #[arg(value_name = "B")]
    after: Option<PathBuf>,
    /// Fail if something got worse by more than this and by more than noise: percent.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) fail_on_worse: Option<f64>,
    /// Write the comparisons to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

impl Args {
    /// The results before and after, if they are named.
    pub(super) fn sides(&self) -> Option<[PathBuf; 2]> {
        Some([self.before.clone()?, self.after.clone()?])
    }
}

/// The text is no percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a percentage of 0 or more is expected, such as 5")]
struct NoPercentage;

fn percent(text: &str) -> Result<f64, NoPercentage> {
    let number = text.trim_end_matches('%').parse().map_err(|_| NoPercentage)?;
    if f64::is_finite(number) && number >= 0.0 { Ok(number) } else { Err(NoPercentage) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

    #[test]
    fn both_sides_are_named_or_none() {
        let sides = |line: &str| parse::<Args>(line).map(|args| args.sides());
        assert_eq!(sides("a b").unwrap(), Some(["a".into(), "b".into()]));
        assert_eq!(sides("").unwrap(), None);
        assert!(sides("a").is_err());
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("5"), Ok(5.0));
        assert_eq!(percent("0.5%"), Ok(0.5));
        for wrong in ["", "%", "-1", "NaN", "inf", "five"] {
            assert_eq!(percent(wrong), Err(NoPercentage), "{wrong}");
        }
    }
}
