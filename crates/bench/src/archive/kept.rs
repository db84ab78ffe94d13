//! Runs for which `--json` has named no file.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::results::{kept_folder, kept_runs};

/// The folder where they are.
pub(crate) fn kept() -> Result<PathBuf, Failure> {
    let folder = kept_folder()?;
    if folder.is_dir() { Ok(folder) } else { Err(Failure::NothingKept(folder)) }
}

/// The files of the two newest runs of the command that ran last, the earlier one first.
pub(crate) fn two_newest() -> Result<[PathBuf; 2], Failure> {
    two_newest_in(&kept()?)
}

fn two_newest_in(folder: &Path) -> Result<[PathBuf; 2], Failure> {
    let mut runs = kept_runs(folder)?;
    let last = runs.pop().ok_or_else(|| Failure::NothingKept(folder.into()))?;
    match runs.into_iter().rfind(|run| run.command == last.command) {
        Some(before) => Ok([before.path, last.path]),
        None => Err(Failure::KeptOnce { folder: folder.into(), command: last.command }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_the_last_command_are_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            std::fs::write(folder.path().join(name), "").unwrap();
            two_newest_in(folder.path())
        };
        let named = |found: Result<[PathBuf; 2], Failure>| {
            found.unwrap().map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        };
        let why = put("notes.json").unwrap_err().to_string();
        assert!(why.contains("no results are kept there"), "{why}");
        let why = put("dma-20261127-113000.json").unwrap_err().to_string();
        assert!(why.contains("one run of `dma`"), "{why}");
        assert!(put("queue-20261127-113001.json").is_err());
        let [first, second] = ["dma-20261127-113000.json", "dma-20261127-120000.json"];
        assert_eq!(named(put(second)), [first, second]);
        let [third, tenth] = ["dma-20261127-120000-2.json", "dma-20261127-120000-10.json"];
        assert_eq!(named(put(third)), [second, third]);
        assert_eq!(named(put(tenth)), [third, tenth]);
    }
}
