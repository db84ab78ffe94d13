//! A report of results: one page of HTML that needs no other file, plots, or tables for a README.
//!
//! | module | job |
//! | --- | --- |
//! | `machines` | what was measured on |
//! | `figures` | a table for each command |
//! | `families`, `plots` | results that differ in one number, and latencies |
//! | `published` | what others have published |
//! | `changes` | what changed since earlier results |
//! | `readme` | tables of a README |
//! | `sheet`, `html` | tables and pages |

mod args;
mod changes;
mod families;
mod figures;
mod html;
mod machines;
mod plots;
mod published;
mod readme;
mod sheet;
#[cfg(test)]
mod tests;

pub(crate) use args::Args;

use crate::archive::{self, Run};
use crate::compare;
use crate::failure::Failure;
use crate::results::Picture;
use crate::terminal::{progress, say};

/// Makes the report.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut runs = Vec::new();
    let kept = args.results.is_empty().then(archive::kept).transpose()?;
    for path in args.results.iter().chain(&kept) {
        runs.extend(archive::load(path)?);
    }
    choose(&mut runs, &args.only);
    if let Some(path) = &args.readme {
        return readme::write(path, &runs);
    }
    let machines = machines::machines(&runs);
    if args.markdown {
        for (command, runs) in by_command(&runs) {
            say!("{}", figures::sheet(&command, &runs, &machines).markdown());
        }
        return Ok(());
    }
    let before = args.before.as_deref().map(archive::load).transpose()?;
    let before = before.map(|mut before| {
        choose(&mut before, &args.only);
        before
    });
    let (html, plots) = page(&runs, before.as_deref())?;
    let failed = |source| Failure::File { path: args.output.clone(), source };
    if let Some(folder) = args.output.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(&args.output, html).map_err(failed)?;
    if let Some(folder) = &args.plots {
        plots.iter().try_for_each(|picture| picture.write(folder))?;
    }
    say!("{}: runs: {}, plots: {}", args.output.display(), runs.len(), plots.len());
    Ok(())
}

/// Leaves the results whose name and case contain one of these texts; all without any.
fn choose(runs: &mut [Run], only: &[String]) {
    for run in runs {
        run.results.retain(|entry| {
            let title = entry.title();
            only.is_empty() || only.iter().any(|text| title.contains(text.as_str()))
        });
    }
}

/// The runs of each command, in the order of their first ones; without those that have no results.
fn by_command(runs: &[Run]) -> Vec<(String, Vec<Run>)> {
    let mut commands: Vec<(String, Vec<Run>)> = Vec::new();
    for run in runs.iter().filter(|run| !run.results.is_empty()) {
        let command = run.command();
        match commands.iter_mut().find(|(other, _)| *other == command) {
            Some((_, runs)) => runs.push(run.clone()),
            None => commands.push((command, vec![run.clone()])),
        }
    }
    commands
}

/// The page, and all of its plots.
fn page(runs: &[Run], before: Option<&[Run]>) -> Result<(String, Vec<Picture>), Failure> {
    let machines = machines::machines(runs);
    let mut body = html::paragraph(
        "Each figure is the median of its samples, with the least and the most; the ratio compares it with the yardstick \
         that was measured beside it in the same run, and above 1 ours is better.",
    );
    body += &html::section("Machines", &machines::environments(runs).html());
    let mut all = Vec::new();
    if let Some(before) = before {
        let judged = compare::compare(before, runs);
        let picture = changes::plot(&judged).map(|plot| plot.rows()).transpose()?;
        let svg = picture.as_ref().map_or("", |picture| picture.svg.as_str());
        let words: String = compare::summary(&judged).lines().map(html::paragraph).collect();
        let part = format!("{words}{svg}{}", changes::list(&judged));
        body += &html::section("What changed", &part);
        all.extend(picture);
    }
    let commands = by_command(runs);
    let bar = progress(commands.len());
    for (command, runs) in &commands {
        bar.set_message(command.clone());
        let families = families::families(runs, &machines);
        let plots = plots::plots(command, runs, &machines, &families);
        let mut part = figures::sheet(command, runs, &machines).html();
        for plot in &plots {
            let picture = plot.picture()?;
            part += &picture.svg;
            all.push(picture);
        }
        body += &html::section(command, &part);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut part = published::sheet(runs, &machines).html();
    for plot in published::plots(runs, &machines) {
        let picture = plot.rows()?;
        part += &picture.svg;
        all.push(picture);
    }
    body += &html::section("Published figures", &part);
    Ok((html::page("Millrace: measurements", &body), all))
}
