//! Runs for which `--json` names no file: the newest of them are kept in one folder.

use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::failure::Failure;

/// Names the folder, in place of the one below the user's home.
const VARIABLE: &str = "MILLRACE_BENCH_RESULTS";
/// Runs that stay in it.
const MOST: usize = 200;

/// A run in the folder: `forward-20261127-113000.json`, or `forward-20261127-113000-2.json`, the second one of that second.
/// Their order is that in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    day: u64,
    time: u64,
    number: u32,
    pub(crate) command: String,
    pub(crate) path: PathBuf,
}

impl Kept {
    /// What a file's name says; `None`: it is not the name of a run.
    fn of(path: PathBuf) -> Option<Self> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".json")?;
        let (rest, last) = stem.rsplit_once('-')?;
        let (rest, time, number) = match digits(last, 6) {
            Some(time) => (rest, time, 1),
            None => {
                let (rest, time) = rest.rsplit_once('-')?;
                (rest, digits(time, 6)?, last.parse::<u32>().ok()?)
            }
        };
        let (command, day) = rest.rsplit_once('-')?;
        let (command, day) = (command.to_owned(), digits(day, 8)?);
        Some(Self { day, time, number, command, path })
    }
}

/// The number that so many digits are.
fn digits(text: &str, count: usize) -> Option<u64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The folder: `$MILLRACE_BENCH_RESULTS`, or else `millrace/bench` where programs keep their state.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    folder_by(|name| std::env::var_os(name).map(PathBuf::from)).ok_or(Failure::NoFolder)
}

fn folder_by(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
    // XDG Base Directory Specification: a relative path there is to be ignored.
    let state = path("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = || state.or_else(|| Some(path("HOME")?.join(".local/state")));
    path(VARIABLE).or_else(|| Some(state()?.join("millrace/bench")))
}

/// The runs in a folder, the newest last.
pub(crate) fn runs(folder: &Path) -> Result<Vec<Kept>, Failure> {
    let failed = |source| Failure::File { path: folder.into(), source };
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        runs.extend(Kept::of(entry.map_err(failed)?.path()));
    }
    runs.sort();
    Ok(runs)
}

/// Writes a run of a command into the folder, and leaves the newest ones there. Gives its file.
pub(super) fn keep(command: &str, run: &impl Serialize) -> Result<PathBuf, Failure> {
    keep_in(&folder()?, command, SystemTime::now(), run)
}

fn keep_in(
    folder: &Path,
    command: &str,
    now: SystemTime,
    run: &impl Serialize,
) -> Result<PathBuf, Failure> {
    let failed = |source| Failure::File { path: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    // It gets its name when it is complete: whoever reads the folder meanwhile finds no half of a file.
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(&serde_json::to_vec_pretty(run)?).map_err(failed)?;
    let stem = format!("{command}-{}", stamp(now));
    let mut number = 1;
    let path = loop {
        let more = if number > 1 { format!("-{number}") } else { String::new() };
        let path = folder.join(format!("{stem}{more}.json"));
        match file.persist_noclobber(&path) {
            Ok(_) => break path,
            Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => file = taken.file,
            Err(why) => return Err(Failure::File { path, source: why.error }),
        }
        number += 1;
    };
    prune(folder);
    Ok(path)
}

/// Leaves the newest runs. Files with other names stay, and what cannot be removed now may be the next time.
fn prune(folder: &Path) {
    let runs = runs(folder).unwrap_or_default();
    let old = runs.len().saturating_sub(MOST);
    for run in runs.iter().take(old) {
        let _ = std::fs::remove_file(&run.path);
    }
}

/// A moment in UTC: `20261127-113000`.
fn stamp(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (minute, hour) = (seconds / 60 % 60, seconds / 3600 % 24);
    // Days since 0000-03-01, in eras of 400 years: the leap day is the last one of its year, and each month's first day follows from
    // its number (H. Hinnant, "chrono-compatible low-level date algorithms").
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = 400 * era + year + later;
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{:02}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn names(folder: &Path) -> Vec<String> {
        let runs = runs(folder).unwrap().into_iter();
        runs.map(|run| run.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn moments_are_dates() {
        for (seconds, date) in [
            (0, "19700101-000000"),
            (951_782_400, "20000229-000000"),
            (1_709_164_799, "20240228-235959"),
            (1_709_164_800, "20240229-000000"),
            (1_795_778_256, "20261127-111736"),
            (4_102_444_800, "21000101-000000"),
        ] {
            assert_eq!(stamp(at(seconds)), date);
        }
    }

    #[test]
    fn the_folder_is_the_one_that_is_named_or_the_users() {
        let of = |all: &[(&str, &str)]| {
            let value = |name: &str| all.iter().find(|(own, _)| *own == name);
            folder_by(|name| value(name).map(|(_, value)| PathBuf::from(value)))
        };
        let (own, xdg, home) = ((VARIABLE, "here"), ("XDG_STATE_HOME", "/s"), ("HOME", "/h"));
        assert_eq!(of(&[own, xdg, home]), Some("here".into()));
        assert_eq!(of(&[(VARIABLE, ""), xdg, home]), Some("/s/millrace/bench".into()));
        assert_eq!(of(&[home]), Some("/h/.local/state/millrace/bench".into()));
        let relative = ("XDG_STATE_HOME", "s");
        assert_eq!(of(&[relative, home]), Some("/h/.local/state/millrace/bench".into()));
        assert_eq!(of(&[relative, ("HOME", "")]), None);
    }

    #[test]
    fn each_run_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new/folder");
        let keep = |command, seconds, run: u32| keep_in(&folder, command, at(seconds), &run);
        let first = keep("forward", 0, 1).unwrap();
        for (command, seconds, run) in [("forward", 0, 2), ("forward", 60, 3), ("dma", 30, 4)] {
            keep(command, seconds, run).unwrap();
        }
        let expected = [
            "forward-19700101-000000.json",
            "forward-19700101-000000-2.json",
            "dma-19700101-000030.json",
            "forward-19700101-000100.json",
        ];
        assert_eq!(names(&folder), expected);
        assert_eq!(std::fs::read_to_string(first).unwrap(), "1");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4, "nothing else is left");
        let below = keep_in(&folder.join(expected[0]), "x", at(0), &1).unwrap_err().to_string();
        assert!(below.contains(expected[0]), "{below}");
    }

    #[test]
    fn the_newest_runs_stay_and_so_do_others_files() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = ["forward.json", "forward-1970-01.json", "x-19700101-000000.txt"];
        for name in foreign {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for second in 0..MOST as u64 {
            keep_in(folder.path(), "dma", at(1_000_000 - second), &0).unwrap();
        }
        let oldest = names(folder.path())[0].clone();
        keep_in(folder.path(), "queue", at(1_000_000), &0).unwrap();
        let left = names(folder.path());
        assert!(left.len() == MOST && !left.contains(&oldest), "{left:?}");
        assert!(left.last().unwrap().starts_with("queue-"), "{left:?}");
        assert!(foreign.iter().all(|name| folder.path().join(name).exists()));
    }
}
