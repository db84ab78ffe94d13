//! Files that are sent in parts: read whole first, then each part taken whole or not at all.

use std::path::Path;

use serde::Serialize;

use control::ConfigError;
use control::api::Changed;
use control::client::Client;

use crate::failure::Failure;

/// Entries of one part.
const PART: usize = 10_000;

/// Errors told about a file.
const MOST_ERRORS: usize = 20;

/// What is wrong with a file's lines.
pub(super) fn check<T>(
    file: &Path,
    entries: impl Iterator<Item = Result<T, ConfigError>>,
) -> Result<(), Failure> {
    let errors: Vec<_> = entries.filter_map(Result::err).take(MOST_ERRORS).collect();
    if errors.is_empty() { Ok(()) } else { Err(Failure::Lines(file.to_owned(), errors)) }
}

/// Sends all entries, each with its line, to `path` of the API.
pub(super) async fn send<T: Serialize + Sync>(
    client: &Client,
    path: &str,
    file: &Path,
    entries: impl Iterator<Item = Result<(u64, T), ConfigError>>,
) -> Result<Changed, Failure> {
    let mut changed = Changed::default();
    let mut part = Part { entries: Vec::new(), first: 0, last: 0, done: 0 };
    for entry in entries {
        let (line, entry) = entry.map_err(|error| Failure::Lines(file.to_owned(), vec![error]))?;
        if part.entries.is_empty() {
            part.first = line;
        }
        part.last = line;
        part.entries.push(entry);
        if part.entries.len() == PART {
            part.send(client, path, file, &mut changed).await?;
        }
    }
    if !part.entries.is_empty() {
        part.send(client, path, file, &mut changed).await?;
    }
    Ok(changed)
}

/// A part that is filled.
struct Part<T> {
    entries: Vec<T>,
    first: u64,
    last: u64,
    /// Entries sent before.
    done: u64,
}

impl<T: Serialize + Sync> Part<T> {
    async fn send(
        &mut self,
        client: &Client,
        path: &str,
        file: &Path,
        changed: &mut Changed,
    ) -> Result<(), Failure> {
        let answer: Changed =
            client.post(path, &self.entries).await.map_err(|error| Failure::Part {
                file: file.to_owned(),
                first: self.first,
                last: self.last,
                done: self.done,
                error,
            })?;
        changed.added += answer.added;
        changed.replaced += answer.replaced;
        changed.removed += answer.removed;
        self.done += u64::try_from(self.entries.len()).unwrap_or_default();
        self.entries.clear();
        Ok(())
    }
}
