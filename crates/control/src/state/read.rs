//! Reads kept state, and believes nothing that it reads.

use std::io::{self, BufRead, Read as _};

use serde::Deserialize;

use super::{LONGEST_LINE, MOST_RECORDS, Record, STATE_VERSION};

/// How the last line begins, and no record.
const END: &[u8] = b"{\"end\":";

/// The first line, of this form and of others.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "millrace-state")]
    version: u32,
}

/// The last line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    end: u64,
}

/// Why a file of kept state is refused.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It can't be read.
    #[error("it cannot be read: {0}")]
    System(#[from] io::Error),
    /// It is something else.
    #[error("it is no state of millraced: its first line says nothing of it")]
    Foreign,
    /// Another millraced wrote it.
    #[error("it has form {0}, and this millraced knows form {STATE_VERSION}")]
    Version(u32),
    /// A line makes no sense.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1 on.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// It breaks off.
    #[error("it ends after line {0}, without its last line")]
    Truncated(u64),
    /// Records are missing, or too many.
    #[error("it has {found} records, and its last line says {said}")]
    Count {
        /// By its last line.
        said: u64,
        /// In it.
        found: u64,
    },
}

/// The records of a file, in order; the first error is the last item.
#[derive(Debug)]
pub struct Reader<R> {
    inner: R,
    line: Vec<u8>,
    number: u64,
    records: u64,
    over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// [`StateError`]: the file can't be read, or is of another form.
    pub fn new(inner: R) -> Result<Self, StateError> {
        let mut reader = Self { inner, line: Vec::new(), number: 0, records: 0, over: false };
        if !reader.advance().map_err(|error| match error {
            StateError::Line { .. } => StateError::Foreign,
            error => error,
        })? {
            return Err(StateError::Foreign);
        }
        let head: Head = serde_json::from_slice(&reader.line).map_err(|_| StateError::Foreign)?;
        if head.version != STATE_VERSION {
            return Err(StateError::Version(head.version));
        }
        Ok(reader)
    }

    /// Takes the next line in, without its end. `false`: there is none.
    fn advance(&mut self) -> Result<bool, StateError> {
        self.line.clear();
        let most = LONGEST_LINE as u64 + 1;
        let count = self.inner.by_ref().take(most).read_until(b'\n', &mut self.line)?;
        if count == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.line.pop() != Some(b'\n') {
            return Err(if count > LONGEST_LINE {
                self.wrong(format!("it is longer than {LONGEST_LINE} bytes"))
            } else {
                StateError::Truncated(self.number - 1)
            });
        }
        Ok(true)
    }

    fn wrong(&self, problem: String) -> StateError {
        StateError::Line { line: self.number, problem }
    }

    fn step(&mut self) -> Result<Option<Record>, StateError> {
        if !self.advance()? {
            return Err(StateError::Truncated(self.number));
        }
        if self.line.starts_with(END) {
            return self.end().map(|()| None);
        }
        self.records += 1;
        if self.records > MOST_RECORDS {
            return Err(self.wrong(format!("there are more than {MOST_RECORDS} records")));
        }
        let record = serde_json::from_slice(&self.line);
        record.map(Some).map_err(|error| self.wrong(error.to_string()))
    }

    fn end(&mut self) -> Result<(), StateError> {
        let read = serde_json::from_slice(&self.line);
        let End { end } = read.map_err(|error| self.wrong(error.to_string()))?;
        if end != self.records {
            return Err(StateError::Count { said: end, found: self.records });
        }
        if self.advance()? {
            return Err(self.wrong("it follows the last line".to_owned()));
        }
        Ok(())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let step = self.step();
        self.over = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}
