//! What the processes say to each other besides packets: lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// What the other process is to do next. It ends at the end of the orders.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Copy packets to other memory until the turn ends, and measure in samples of so many TSC cycles.
    Drain { bytes: u16, burst: u16, sample: u64 },
    /// The same, but read them where they lie.
    Read { burst: u16, sample: u64 },
    /// Send packets back until the turn ends.
    Carry { burst: u16 },
    /// Sleep for each of so many packets.
    Sleep { packets: u32 },
}

/// What it says when it has done so.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It has begun.
    Ready,
    /// Packets, and TSC cycles per packet.
    Drained {
        packets: u64,
        cycles: Vec<f64>,
    },
    /// The same, and the sum of all words of all packets.
    Read {
        packets: u64,
        cycles: Vec<f64>,
        sum: u32,
    },
    Carried,
    /// TSC cycles from push to look, and how often it slept.
    Woken {
        cycles: Vec<u64>,
        sleeps: u32,
    },
}

/// One end of the line.
pub(super) struct Line {
    reader: BufReader<UnixStream>,
}

impl Line {
    /// `patience`: how long the other side may take to answer.
    pub(super) fn new(stream: UnixStream, patience: Option<Duration>) -> Result<Self, Failure> {
        stream.set_read_timeout(patience)?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    pub(super) fn say(&mut self, what: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(what)?;
        text.push(b'\n');
        Ok(self.reader.get_mut().write_all(&text)?)
    }

    /// The next line; `None` when there will be no more.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        let mut text = String::new();
        if self.reader.read_line(&mut text)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&text)?))
    }
}
