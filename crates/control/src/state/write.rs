//! Writes kept state.

use std::io::{self, Write};

use serde::Serialize;

use super::{LONGEST_LINE, Record, STATE_VERSION};

/// The first line.
#[derive(Serialize)]
struct Head {
    #[serde(rename = "millrace-state")]
    version: u32,
    by: &'static str,
}

/// The last line.
#[derive(Serialize)]
struct End {
    end: u64,
}

/// A file that is being written.
#[derive(Debug)]
pub struct Writer<W> {
    inner: W,
    line: Vec<u8>,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of `inner`, as everywhere here.
    pub fn new(inner: W) -> io::Result<Self> {
        let mut writer = Self { inner, line: Vec::new(), records: 0 };
        writer.write(&Head { version: STATE_VERSION, by: env!("CARGO_PKG_VERSION") })?;
        Ok(writer)
    }

    /// Writes a record. `false`: it is too long for a line, and is left out.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn record(&mut self, record: &Record) -> io::Result<bool> {
        let written = self.write(record)?;
        self.records += u64::from(written);
        Ok(written)
    }

    /// Ends the file. Gives what it was written to.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn finish(mut self) -> io::Result<W> {
        self.write(&End { end: self.records })?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    fn write(&mut self, value: &impl Serialize) -> io::Result<bool> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        if self.line.len() > LONGEST_LINE {
            return Ok(false);
        }
        self.line.push(b'\n');
        self.inner.write_all(&self.line)?;
        Ok(true)
    }
}
