//! The lines of a file, none longer than a bound.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::config::read::halves;
use crate::config::{ConfigError, Reach};

/// Longest line: bytes. 64 next hops with interfaces and weights fit.
pub(super) const LONGEST_LINE: usize = 8_192;

/// Bytes read at a time.
const BLOCK: usize = 256 << 10;

/// A file that is read in order, and its name for errors.
pub(super) struct Source {
    path: PathBuf,
    /// Whether errors may say what stands in it. Not while it may be any file that somebody has named who may not read it:
    /// only once a part of it was found to be what it should be.
    quotes: bool,
}

impl Source {
    /// Opens a regular file, buffered, with bounded lines. `quotes`: errors may say what stands in it from the beginning.
    pub(super) fn open(
        path: &Path,
        reach: &Reach,
        quotes: bool,
    ) -> Result<(Self, BufReader<BoundedLines<File>>), ConfigError> {
        let source = Self { path: path.to_owned(), quotes };
        let wrong = |error: std::io::Error| {
            let remedy =
                "name a file that can be read; relative names start from the configuration";
            source.wrong(0, "files", &format!("cannot be read ({error}); {remedy}"))
        };
        let file = reach.open(path).map_err(wrong)?;
        Ok((source, BufReader::with_capacity(BLOCK, BoundedLines { inner: file, length: 0 })))
    }

    /// A part of it is what it should be.
    pub(super) fn is_sound(&mut self) {
        self.quotes = true;
    }

    pub(super) fn quotes(&self) -> bool {
        self.quotes
    }

    /// An error whose text is `what is wrong; what would be right`.
    pub(super) fn wrong(&self, line: u64, key: &str, error: &dyn std::fmt::Display) -> ConfigError {
        let (problem, remedy) = halves(error);
        let line = usize::try_from(line).unwrap_or(usize::MAX);
        ConfigError { file: self.path.clone(), line, key: key.to_owned(), problem, remedy }
    }
}

/// Fails on a line that is too long, so that no reader above has to keep it.
pub(super) struct BoundedLines<R> {
    inner: R,
    /// Bytes since the last end of a line.
    length: usize,
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for byte in buffer.iter().take(count) {
            self.length = if *byte == b'\n' { 0 } else { self.length + 1 };
            if self.length > LONGEST_LINE {
                let text = format!("a line is longer than {LONGEST_LINE} bytes");
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
            }
        }
        Ok(count)
    }
}
