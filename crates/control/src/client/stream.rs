//! Answers that come bit by bit.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use serde::de::DeserializeOwned;

use super::ClientError;

/// Longest line of a stream of lines: bytes.
const LONGEST_LINE: usize = 1 << 20;

/// The body of an answer, as it comes. Dropping it hangs up.
#[derive(Debug)]
pub struct Stream {
    body: Incoming,
}

impl Stream {
    pub(super) const fn new(body: Incoming) -> Self {
        Self { body }
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// `Http` when the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame.map_err(ClientError::Http)?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The body as lines of JSON.
    #[must_use]
    pub const fn lines(self) -> Lines {
        Lines { stream: self, pending: Vec::new() }
    }
}

/// A body of JSON values, one per line.
#[derive(Debug)]
pub struct Lines {
    stream: Stream,
    pending: Vec<u8>,
}

impl Lines {
    /// The next value; `None` at the end.
    ///
    /// # Errors
    /// `Http` when the connection breaks, `Decode` when a line is not such a value, `TooLong` when
    /// a line does not end.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return serde_json::from_slice(&line).map(Some).map_err(ClientError::Decode);
            }
            if self.pending.len() > LONGEST_LINE {
                return Err(ClientError::TooLong);
            }
            match self.stream.next().await? {
                Some(bytes) => self.pending.extend_from_slice(&bytes),
                None if self.pending.trim_ascii().is_empty() => return Ok(None),
                None => self.pending.push(b'\n'),
            }
        }
    }
}
