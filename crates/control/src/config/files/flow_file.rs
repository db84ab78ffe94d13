//! Flow files: CSV with a header that names the columns, in any order.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::str::FromStr;

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::lines::{BoundedLines, Source};
use crate::config::read::nearest;
use crate::config::{ConfigError, Flow, Reach, protocol_number};
use crate::net::shortened;

/// Columns, the required ones first.
const COLUMNS: [&str; 12] = [
    "source",
    "destination",
    "protocol",
    "source_port",
    "destination_port",
    "egress_port",
    "source_mac",
    "destination_mac",
    "new_source",
    "new_destination",
    "new_source_port",
    "new_destination_port",
];

/// How many of them a file must have.
const REQUIRED: usize = 6;

/// The flows of a file, in order. A bad line is an error and the next call goes on behind it;
/// where the file itself fails, the error is the last item.
pub struct FlowFile {
    source: Source,
    reader: Reader<BufReader<BoundedLines<File>>>,
    /// Reused for every line.
    record: StringRecord,
    /// Where each of `COLUMNS` stands.
    places: [Option<usize>; COLUMNS.len()],
    line: u64,
    over: bool,
}

impl FlowFile {
    /// Opens a file for who has named it, and reads its header. Errors quote what is wrong.
    ///
    /// # Errors
    /// When it cannot be read, or its header lacks columns or has unknown ones.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        Self::of(Source::open(path, &Reach::Anywhere, true)?)
    }

    /// Opens a file that a configuration names. No error quotes a header without any known column: it may be any file.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it is out of reach.
    pub fn within(path: &Path, reach: &Reach) -> Result<Self, ConfigError> {
        Self::of(Source::open(path, reach, false)?)
    }

    fn of(
        (mut source, reader): (Source, BufReader<BoundedLines<File>>),
    ) -> Result<Self, ConfigError> {
        // Without quoting a record is a line, which is bounded; `field` takes quotes off.
        let mut builder = ReaderBuilder::new();
        builder.quoting(false).trim(Trim::All).flexible(true).comment(Some(b'#'));
        let mut reader = builder.from_reader(reader);
        let header = reader.headers().map_err(|error| fault(&source, 1, &error))?;
        if header.iter().any(|name| COLUMNS.contains(&plain(name))) {
            source.is_sound();
        } else if !source.quotes() && !header.is_empty() {
            return Err(source.wrong(1, "line", &NO_HEADER));
        }
        let places = columns(header).map_err(|(key, text)| source.wrong(1, &key, &text))?;
        let record = StringRecord::new();
        Ok(Self { source, reader, record, places, line: 1, over: false })
    }

    /// Line of the flow that came last, from 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// An error about the flow that came last.
    #[must_use]
    pub fn wrong(&self, key: &str, error: &dyn std::fmt::Display) -> ConfigError {
        self.source.wrong(self.line, key, error)
    }

    /// A column's text; empty where the line has none.
    fn field(&self, column: usize) -> &str {
        let place = self.places.get(column).copied().flatten();
        let text = place.and_then(|place| self.record.get(place)).unwrap_or_default();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.unwrap_or(text)
    }

    fn flow(&self) -> Result<Flow, ConfigError> {
        let egress_port = self.field(5);
        if egress_port.is_empty() {
            return Err(self.wrong("egress_port", &"is missing; name a port"));
        }
        Ok(Flow {
            source: self.required(0, ADDRESS)?,
            destination: self.required(1, ADDRESS)?,
            protocol: self.protocol()?,
            source_port: self.optional(3, PORT)?.unwrap_or_default(),
            destination_port: self.optional(4, PORT)?.unwrap_or_default(),
            egress_port: egress_port.to_owned(),
            source_mac: self.optional(6, MAC)?,
            destination_mac: self.optional(7, MAC)?,
            new_source: self.optional(8, ADDRESS)?,
            new_destination: self.optional(9, ADDRESS)?,
            new_source_port: self.optional(10, PORT)?,
            new_destination_port: self.optional(11, PORT)?,
        })
    }

    fn protocol(&self) -> Result<u8, ConfigError> {
        let text = self.field(2);
        protocol_number(text).ok_or_else(|| {
            let remedy = "use 0 to 255, tcp, udp, sctp, icmp or ipv6-icmp";
            self.wrong("protocol", &format!("'{}' is wrong; {remedy}", shortened(text)))
        })
    }

    fn optional<T: FromStr>(&self, column: usize, remedy: &str) -> Result<Option<T>, ConfigError> {
        if self.field(column).is_empty() {
            Ok(None)
        } else {
            self.required(column, remedy).map(Some)
        }
    }

    fn required<T: FromStr>(&self, column: usize, remedy: &str) -> Result<T, ConfigError> {
        let text = self.field(column);
        text.parse().map_err(|_| {
            let key = COLUMNS.get(column).copied().unwrap_or_default();
            let text = shortened(text);
            let problem =
                if text.is_empty() { "is missing".into() } else { format!("'{text}' is wrong") };
            self.wrong(key, &format!("{problem}; {remedy}"))
        })
    }
}

const ADDRESS: &str = "use an address, as in 192.0.2.1 or 2001:db8::1";
const PORT: &str = "use 0 to 65535";
const MAC: &str = "use six hexadecimal bytes, as in 02:00:00:00:00:01";

/// What is said of a first line without any known column.
const NO_HEADER: &str = "names no column of a flow file; the first line is \
     source,destination,protocol,source_port,destination_port,egress_port";

/// A column's name as it is meant.
fn plain(name: &str) -> &str {
    name.trim_matches('"').trim_start_matches('\u{feff}')
}

/// Where each of `COLUMNS` stands, or which one is wrong and how.
fn columns(header: &StringRecord) -> Result<[Option<usize>; COLUMNS.len()], (String, String)> {
    let mut places = [None; COLUMNS.len()];
    for (place, name) in header.iter().enumerate() {
        let name = plain(name);
        let slot = COLUMNS.iter().position(|known| *known == name).and_then(|c| places.get_mut(c));
        match slot {
            Some(slot @ None) => *slot = Some(place),
            Some(Some(_)) => {
                return Err((name.to_owned(), "is there twice; name each column once".to_owned()));
            }
            None => {
                let remedy = match nearest(name, COLUMNS) {
                    Some(known) => format!("did you mean '{known}'?"),
                    None => format!("columns are {}", COLUMNS.join(",")),
                };
                return Err((shortened(name), format!("is not a known column; {remedy}")));
            }
        }
    }
    for (column, place) in COLUMNS.iter().zip(places).take(REQUIRED) {
        if place.is_none() {
            let needed = COLUMNS.get(..REQUIRED).unwrap_or_default().join(",");
            let text = format!("is missing; the first line names the columns: {needed}");
            return Err(((*column).to_owned(), text));
        }
    }
    Ok(places)
}

fn fault(source: &Source, line: u64, error: &csv::Error) -> ConfigError {
    let line = error.position().map_or(line, csv::Position::line);
    let remedy = "write comma-separated UTF-8 text, lines of at most 8192 bytes";
    source.wrong(line, "line", &format!("cannot be read ({error}); {remedy}"))
}

impl Iterator for FlowFile {
    type Item = Result<Flow, ConfigError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        match self.reader.read_record(&mut self.record) {
            Ok(false) => {
                self.over = true;
                None
            }
            Ok(true) => {
                self.line = self.record.position().map_or(self.line + 1, csv::Position::line);
                let (fields, columns) = (self.record.len(), self.places.iter().flatten().count());
                if fields != columns {
                    let remedy = format!("the header names {columns}");
                    return Some(Err(
                        self.wrong("line", &format!("has {fields} columns; {remedy}"))
                    ));
                }
                Some(self.flow())
            }
            Err(error) => {
                // A line that is not UTF-8 is passed over; all else ends the file.
                self.over = !matches!(error.kind(), csv::ErrorKind::Utf8 { .. });
                Some(Err(fault(&self.source, self.line + 1, &error)))
            }
        }
    }
}
