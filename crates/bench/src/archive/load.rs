//! Files of results, and folders of them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::{Run, printable};
use crate::failure::Failure;

/// What is read of a file at most: bytes. The whole suite writes less than one MB.
const LONGEST: u64 = 64 << 20;

/// The runs of a file, or of all files in a folder that end in .json, in the order of their names.
pub(crate) fn load(path: &Path) -> Result<Vec<Run>, Failure> {
    let failed = |source| Failure::File { path: path.into(), source };
    let kind = std::fs::metadata(path).map_err(failed)?;
    if kind.is_file() {
        return Ok(vec![read(path)?]);
    }
    if !kind.is_dir() {
        return Err(Failure::NeitherFileNorFolder(path.into()));
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|end| end == "json") && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::NoResults(path.into()));
    }
    files.iter().map(|file| read(file)).collect()
}

fn read(path: &Path) -> Result<Run, Failure> {
    let failed = |source| Failure::File { path: path.into(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Failure::TooLong { path: path.into(), most: LONGEST >> 20 });
    }
    // What is wrong may be quoted from the file.
    let foreign = |why: serde_json::Error| Failure::Foreign {
        path: path.into(),
        why: printable(&why.to_string()),
    };
    let run: Run = serde_json::from_slice(&bytes).map_err(foreign)?;
    Ok(Run { path: path.into(), ..run })
}
