//! Results: samples and what they come to, the one form of JSON that every measurement has, and tables and plots
//! for people.

mod kept;
mod outcome;
mod plot;
mod report;
mod samples;
mod table;

pub(crate) use kept::{folder as kept_folder, runs as kept_runs};
pub(crate) use outcome::{Better, Outcome};
pub(crate) use plot::{Axis, Line, Picture, Plot};
pub(crate) use report::{Report, check_writable, write_json};
pub(crate) use samples::Samples;
pub(crate) use table::{print, table, verdict};

/// Name of the result that is a curve: the share of frames that took no longer.
pub(crate) const LATENCY_DISTRIBUTION: &str = "latency distribution";
