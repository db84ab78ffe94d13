//! The command line of `compare`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Results before: a file that `--json` has written, or a folder of them. Several runs of one command are repeated trials.
    #[arg(value_name = "A")]
    pub(super) before: PathBuf,
    /// Results after.
    #[arg(value_name = "B")]
    pub(super) after: PathBuf,
    /// Fail if something got worse by more than this and by more than noise: percent.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(super) fail_on_worse: Option<f64>,
    /// Write the comparisons to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
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

    #[test]
    fn percentages() {
        assert_eq!(percent("5"), Ok(5.0));
        assert_eq!(percent("0.5%"), Ok(0.5));
        for wrong in ["", "%", "-1", "NaN", "inf", "five"] {
            assert_eq!(percent(wrong), Err(NoPercentage), "{wrong}");
        }
    }
}
