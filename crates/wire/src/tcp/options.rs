//! TCP options (RFC 9293 3.2, RFC 7323, RFC 2018), walked within the header's bounds.

/// One option that is neither end nor padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Option<'a> {
    /// Largest segment that the sender takes: bytes (SYN only).
    MaximumSegmentSize(u16),
    /// The window is shifted left by this many bits; above 14 counts as 14 (RFC 7323 2.3).
    WindowScale(u8),
    /// Selective acknowledgments may be sent (SYN only).
    SackPermitted,
    /// What arrived out of order.
    Sack(SackBlocks<'a>),
    /// Time stamps (RFC 7323 3).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The peer's clock, echoed.
        echo: u32,
    },
    /// Anything else; a known kind with an unknown length too.
    Other {
        /// Its number.
        kind: u8,
        /// What follows kind and length.
        data: &'a [u8],
    },
}

/// One to four pairs of left edge and right edge, in sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackBlocks<'a>(&'a [u8]);

impl<'a> SackBlocks<'a> {
    /// The blocks in order: (first byte, byte behind the last).
    pub fn iter(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.0.chunks_exact(8).filter_map(|block| match *block {
            [a, b, c, d, e, f, g, h] => {
                Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
            }
            _ => None,
        })
    }
}

/// An option whose length is below 2 or beyond the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a TCP option of kind {kind} has a length below 2 or beyond the header")]
pub struct OptionError {
    /// The option's number.
    pub kind: u8,
}

/// The options, in order; ends after an error.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// The options in these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes behind the last option that was given out.
    pub(super) fn rest(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Option<'a>, OptionError>;

    fn next(&mut self) -> std::option::Option<Self::Item> {
        loop {
            let (&kind, after) = self.rest.split_first()?;
            match kind {
                0 => {
                    self.rest = &[];
                    return None;
                }
                1 => self.rest = after,
                _ => {
                    let length = after.first().map_or(0, |&length| usize::from(length));
                    let Some(([_, _, data @ ..], rest)) = self.rest.split_at_checked(length) else {
                        self.rest = &[];
                        return Some(Err(OptionError { kind }));
                    };
                    self.rest = rest;
                    return Some(Ok(read(kind, data)));
                }
            }
        }
    }
}

fn read(kind: u8, data: &[u8]) -> Option<'_> {
    match (kind, data) {
        (2, &[a, b]) => Option::MaximumSegmentSize(u16::from_be_bytes([a, b])),
        (3, &[shift]) => Option::WindowScale(shift),
        (4, []) => Option::SackPermitted,
        (5, blocks) if matches!(blocks.len(), 8 | 16 | 24 | 32) => Option::Sack(SackBlocks(blocks)),
        (8, &[a, b, c, d, e, f, g, h]) => Option::Timestamps {
            value: u32::from_be_bytes([a, b, c, d]),
            echo: u32::from_be_bytes([e, f, g, h]),
        },
        _ => Option::Other { kind, data },
    }
}
