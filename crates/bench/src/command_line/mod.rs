//! What the command lines of several measurements are made of.

mod json;
mod number;
mod run;

pub(crate) use json::Json;
pub(crate) use number::{NotANumber, decimal, number, short};
pub(crate) use run::Run;

/// The arguments that stand on a line.
#[cfg(test)]
pub(crate) fn parse<A: clap::Args>(line: &str) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("bench").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}
