//! The command line of `report`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Results: files that `--json` has written, or folders of them; without any, all that is kept of runs without `--json`.
    /// Several machines are shown side by side.
    #[arg(value_name = "DIR")]
    pub(super) results: Vec<PathBuf>,
    /// The page: HTML that needs no other file.
    #[arg(long, value_name = "FILE", default_value = "out/report.html")]
    pub(super) output: PathBuf,
    /// Write each plot into this folder as well (SVG).
    #[arg(long, value_name = "DIR")]
    pub(super) plots: Option<PathBuf>,
    /// Earlier results: the page shows what has changed since.
    #[arg(long, value_name = "DIR")]
    pub(super) before: Option<PathBuf>,
    /// Print the tables as Markdown, for a README, and write no page.
    #[arg(long, conflicts_with_all = ["output", "plots", "before"])]
    pub(super) markdown: bool,
    /// Replace the tables of this file between `<!-- millrace-bench COMMAND -->` and `<!-- /millrace-bench -->`,
    /// and write no page. `COMMAND: NAME; NAME` takes only results whose name and case contain one of these.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "plots", "before", "markdown"])]
    pub(super) readme: Option<PathBuf>,
    /// Only results whose name and case, as in `forward rate (flows 1`, contain one of these.
    #[arg(long, value_name = "NAME")]
    pub(super) only: Vec<String>,
}
