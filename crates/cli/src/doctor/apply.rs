//! `--apply`: makes the changes that can be undone, with the script that undoes them.

use std::io::{BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use doctor::apply::{ApplyError, apply, replace_script, undo_script, write_script};
use doctor::{Change, Finding};
use serde::Serialize;

use crate::args::Doctor;
use crate::failure::Failure;
use crate::output::{self, printable};

/// Where the script goes when nobody says.
const SCRIPT: &str = "millrace-undo.sh";

/// What was done.
#[derive(Serialize)]
struct Applied<'a> {
    changes: Vec<Made<'a>>,
    /// Absent: nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo_script: Option<&'a Path>,
}

#[derive(Serialize)]
struct Made<'a> {
    #[serde(flatten)]
    change: &'a Change,
    /// The command that does the same.
    command: String,
    /// Why it was not made; absent: it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn run(
    mut findings: Vec<Finding>,
    json: bool,
    options: &Doctor,
) -> Result<ExitCode, Failure> {
    if options.root != Path::new("/") {
        // `systemctl` would stop those of this machine.
        let here = |change: &Change| matches!(change, Change::Write { .. });
        findings.iter_mut().for_each(|finding| finding.changes.retain(here));
    }
    let changes: Vec<_> = findings.iter().flat_map(|finding| &finding.changes).cloned().collect();
    let script = options.undo_script.clone().unwrap_or_else(|| PathBuf::from(SCRIPT));
    if changes.is_empty() {
        tell(json, "nothing to change that could be undone")?;
        return if json { report(&[], Vec::new(), None) } else { Ok(ExitCode::SUCCESS) };
    }
    list(json, &findings)?;
    if !options.yes && !agreed(&script)? {
        return Err(Failure::NotAgreed);
    }
    write_script(&script, &undo_script(&options.root, &changes)).map_err(|error| {
        match error.kind() {
            ErrorKind::AlreadyExists => Failure::ScriptExists(script.clone()),
            _ => Failure::file(&script, error),
        }
    })?;
    let results: Vec<_> = changes.iter().map(|change| apply(&options.root, change)).collect();
    let made = results.iter().filter(|result| result.is_ok()).count();
    // A number that the kernel made smaller has changed all the same.
    let has_changed = |result: &Result<(), ApplyError>| {
        result.as_ref().map_or_else(ApplyError::has_changed, |_| true)
    };
    let both = changes.iter().zip(&results);
    let undo: Vec<Change> =
        both.filter(|(_, result)| has_changed(result)).map(|(change, _)| change.clone()).collect();
    if undo.is_empty() {
        // Nothing to undo, and in the way of the next attempt.
        std::fs::remove_file(&script).map_err(|error| Failure::file(&script, error))?;
    } else if undo.len() < changes.len() {
        // What was left alone may be what somebody else has set: it is to stay.
        let replaced = replace_script(&script, &undo_script(&options.root, &undo));
        if let Err(error) = replaced {
            let name = script.display();
            tell(json, &format!("{name} undoes also what was not changed, because of {error}"))?;
        }
    }
    let kept = (!undo.is_empty()).then_some(script.as_path());
    if json {
        return report(&changes, results, kept);
    }
    for (change, result) in changes.iter().zip(&results) {
        if let Err(error) = result {
            output::line(printable(&format!("not changed: {change}: {error}")))?;
        }
    }
    output::line(format!("{made} of {} changed", changes.len()))?;
    if let Some(script) = kept {
        output::line(format!("undo with: sh {}", printable(&script.display().to_string())))?;
    }
    Ok(if made == changes.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(
    changes: &[Change],
    results: Vec<Result<(), ApplyError>>,
    undo_script: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let error = |result: Result<(), ApplyError>| result.err().map(|error| error.to_string());
    let made = changes.iter().zip(results).map(|(change, result)| Made {
        change,
        command: change.to_string(),
        error: error(result),
    });
    let applied = Applied { changes: made.collect(), undo_script };
    output::json(&applied)?;
    let all = applied.changes.iter().all(|made| made.error.is_none());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What will be changed, and for what.
fn list(json: bool, findings: &[Finding]) -> Result<(), Failure> {
    for finding in findings.iter().filter(|finding| !finding.changes.is_empty()) {
        let subject =
            finding.subject.as_ref().map(|subject| format!(", {subject}")).unwrap_or_default();
        let better = finding.better.as_deref().unwrap_or_default();
        tell(json, &format!("{}{subject}: {better}", finding.name))?;
        for change in &finding.changes {
            tell(json, &format!("  {change}"))?;
        }
    }
    Ok(())
}

/// On standard output, or on standard error where that is for JSON.
fn tell(json: bool, line: &str) -> Result<(), Failure> {
    let line = printable(line);
    if json {
        // Nobody can be told when standard error is closed.
        let _ = writeln!(std::io::stderr(), "{line}");
        return Ok(());
    }
    output::line(line)
}

/// Asks whoever sits at the terminal.
fn agreed(script: &Path) -> Result<bool, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::NobodyToAsk);
    }
    let mut error = std::io::stderr();
    let question =
        format!("Change this? {} will undo it. [y/N] ", printable(&script.display().to_string()));
    let asked = error.write_all(question.as_bytes()).and_then(|()| error.flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| input.lock().read_line(&mut answer));
    read.map_err(|_| Failure::NobodyToAsk)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
