//! IPv4 options (RFC 791 3.1), walked within the header's bounds.

use super::{HEADER_LENGTH, Header};

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

/// One option that is neither end nor padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Option<'a> {
    /// Copied flag, class and number.
    pub kind: u8,
    /// What follows kind and length.
    pub data: &'a [u8],
}

impl Option<'_> {
    /// Whether it asks for source routing, loose or strict.
    #[must_use]
    pub fn is_source_route(&self) -> bool {
        matches!(self.kind, LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE)
    }

    /// Whether every fragment carries it, not only the first (RFC 791 3.1, copied flag).
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.kind & 0x80 != 0
    }
}

/// An option whose length is below 2 or beyond the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the IPv4 option at byte {at} has a length below 2 or beyond the header")]
pub struct OptionError {
    /// Where the option starts, from the start of the header: the pointer of an ICMP parameter
    /// problem.
    pub at: u8,
}

/// The options of a header, in order; ends after an error.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Options<'a> {
    /// The options of a packet whose header was checked; none when there is no whole header.
    #[must_use]
    pub fn new(packet: &'a [u8]) -> Self {
        let length = Header::peek(packet).map_or(0, Header::header_length);
        Self { rest: packet.get(HEADER_LENGTH..length).unwrap_or(&[]), at: HEADER_LENGTH }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Option<'a>, OptionError>;

    fn next(&mut self) -> std::option::Option<Self::Item> {
        loop {
            let (&kind, after) = self.rest.split_first()?;
            match kind {
                END => {
                    self.rest = &[];
                    return None;
                }
                NO_OPERATION => {
                    self.rest = after;
                    self.at += 1;
                }
                _ => break,
            }
        }
        let error = OptionError { at: self.at as u8 };
        let length = self.rest.get(1).map_or(0, |&length| usize::from(length));
        let (option, rest) = match self.rest.split_at_checked(length) {
            Some(([kind, _, data @ ..], rest)) => (Option { kind: *kind, data }, rest),
            _ => {
                self.rest = &[];
                return Some(Err(error));
            }
        };
        self.rest = rest;
        self.at += length;
        Some(Ok(option))
    }
}
