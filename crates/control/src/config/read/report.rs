//! Where errors are gathered, with the line of each.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::config::ConfigError;

/// Errors kept of one file: more are of no use to a reader.
pub(crate) const MOST_ERRORS: usize = 100;

/// Gathers what is wrong with one file.
pub(crate) struct Report {
    file: PathBuf,
    /// Offset of each line's first byte.
    lines: Vec<usize>,
    errors: RefCell<Vec<ConfigError>>,
}

impl Report {
    /// For a file with that text.
    pub(crate) fn new(text: &str, file: &Path) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { file: file.to_owned(), lines, errors: RefCell::default() }
    }

    /// The file's name.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The line, from 1, of the byte at that offset.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// Adds an error about what stands at that offset.
    pub(crate) fn add(&self, offset: usize, key: &str, problem: String, remedy: String) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MOST_ERRORS {
            errors.push(ConfigError {
                file: self.file.clone(),
                line: self.line(offset),
                key: key.to_owned(),
                problem,
                remedy,
            });
        }
    }

    /// Adds an error whose text is `what is wrong; what would be right`.
    pub(crate) fn add_text(&self, offset: usize, key: &str, error: &dyn std::fmt::Display) {
        let (problem, remedy) = halves(error);
        self.add(offset, key, problem, remedy);
    }

    /// All errors, in the order of their lines.
    pub(crate) fn into_errors(self) -> Vec<ConfigError> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| error.line);
        errors
    }
}

/// The two halves of an error's text: `what is wrong; what would be right`.
pub(crate) fn halves(error: &dyn std::fmt::Display) -> (String, String) {
    let text = error.to_string();
    match text.rsplit_once("; ") {
        Some((problem, remedy)) => (problem.to_owned(), remedy.to_owned()),
        None => (text, "see the configuration reference".to_owned()),
    }
}
