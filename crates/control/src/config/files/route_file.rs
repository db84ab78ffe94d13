//! Route files: one route per line in the words of `ip route`, `#` starts a comment.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::RouteTextError;
use super::lines::{BoundedLines, Source};
use crate::config::{self, ConfigError, Reach, Route};

/// What is said of a line before any was a route.
const NO_ROUTE: &str = "is not a route; write PREFIX via ADDRESS, PREFIX dev NAME, PREFIX lookup VRF or PREFIX blackhole";

/// What is said of a route from somewhere else in a configuration's file.
const NOT_STATIC: &str =
    "has another source than static; leave it out, or load the file with 'millrace route load'";

/// The routes of a file, in order, each with its line. A bad line is an error and the next call
/// goes on behind it; where the file itself fails, the error is the last item.
pub struct RouteFile {
    source: Source,
    reader: BufReader<BoundedLines<File>>,
    /// Reused for every line.
    text: Vec<u8>,
    line: u64,
    over: bool,
    /// A configuration's files have static routes alone, which a reload takes away when they are gone.
    only_static: bool,
}

impl RouteFile {
    /// Opens a file for who has named it. Errors quote what is wrong.
    ///
    /// # Errors
    /// When it cannot be opened or is not a regular file.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        Self::of(Source::open(path, &Reach::Anywhere, true)?, false)
    }

    /// Opens a file that a configuration names. Until a line of it is a route no error quotes it: it may be any file.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it is out of reach.
    pub fn within(path: &Path, reach: &Reach) -> Result<Self, ConfigError> {
        Self::of(Source::open(path, reach, false)?, true)
    }

    fn of(
        (source, reader): (Source, BufReader<BoundedLines<File>>),
        only_static: bool,
    ) -> Result<Self, ConfigError> {
        Ok(Self { source, reader, text: Vec::new(), line: 0, over: false, only_static })
    }

    /// Line of the route that came last, from 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// An error about the route that came last.
    #[must_use]
    pub fn wrong(&self, key: &str, error: &dyn std::fmt::Display) -> ConfigError {
        self.source.wrong(self.line, key, error)
    }

    /// The file failed: nothing more can be read.
    fn fail(&mut self, error: &std::io::Error) -> ConfigError {
        self.over = true;
        let remedy = "write one route per line, at most 8192 bytes each";
        self.source.wrong(self.line, "line", &format!("cannot be read ({error}); {remedy}"))
    }
}

impl Iterator for RouteFile {
    type Item = Result<Route, ConfigError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            self.text.clear();
            self.line += 1;
            match self.reader.read_until(b'\n', &mut self.text) {
                Ok(0) => self.over = true,
                Err(error) => return Some(Err(self.fail(&error))),
                Ok(_) => {
                    let Ok(text) = std::str::from_utf8(&self.text) else {
                        return Some(Err(
                            self.wrong("line", &"is not UTF-8 text; save it as UTF-8")
                        ));
                    };
                    let route = text.split('#').next().unwrap_or_default().trim();
                    if route.is_empty() {
                        continue;
                    }
                    return Some(match route.parse::<Route>() {
                        Ok(route) => {
                            self.source.is_sound();
                            if self.only_static && route.source != config::Source::STATIC {
                                return Some(Err(self.wrong("line", &NOT_STATIC)));
                            }
                            Ok(route)
                        }
                        Err(error) if self.source.quotes() => {
                            Err(self.wrong("line", &error as &RouteTextError))
                        }
                        Err(_) => Err(self.wrong("line", &NO_ROUTE)),
                    });
                }
            }
        }
        None
    }
}
