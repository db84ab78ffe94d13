//! The link: what a transaction layer packet (TLP) costs, and how many bytes a link carries.
//!
//! Sections are those of the PCI Express Base Specification, revision 5.0. Left out: acknowledgments,
//! flow control (DLLPs) and skip ordered sets, which do not depend on how a device speaks to its driver.

use clap::ValueEnum;

/// What the document counts in: a transfer takes whole units of so many bytes, overhead included.
pub(super) const UNIT: u64 = 64;
/// The part of a TLP that the transaction layer counts in (2.2.1): bytes.
const WORD: u64 = 4;
/// Header of a completion (2.2.9): words.
const COMPLETION_HEADER: u64 = 3;
/// Check over the whole TLP, LCRC (3.6.2.1): bytes.
const CHECK: u64 = 4;
/// A request must not cross a multiple of so many bytes (2.2.7).
pub(super) const PAGE: u64 = 4096;

/// What a lane does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Generation {
    /// 5 GT/s.
    #[value(name = "2")]
    Two,
    /// 8 GT/s.
    #[value(name = "3")]
    Three,
    /// 16 GT/s.
    #[value(name = "4")]
    Four,
    /// 32 GT/s.
    #[value(name = "5")]
    Five,
}

/// How bits become symbols, and how a TLP begins and ends in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    data_bits: u64,
    line_bits: u64,
    /// Bytes that say that a TLP begins.
    start: u64,
    /// Bytes of the sequence number (3.6.2.1), where it is no part of the start.
    sequence: u64,
    /// Bytes that say that it ends.
    end: u64,
}

/// 4.2.1: 8b/10b. A TLP stands between the symbols STP and END (4.2.1.2).
const SYMBOLS: Encoding = Encoding { data_bits: 8, line_bits: 10, start: 1, sequence: 2, end: 1 };
/// 4.2.2: 128b/130b. The STP token of four bytes has the length and the sequence number (4.2.2.3.1);
/// nothing says the end.
const BLOCKS: Encoding = Encoding { data_bits: 128, line_bits: 130, start: 4, sequence: 0, end: 0 };

impl Generation {
    /// As people write it.
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
            Self::Five => 5,
        }
    }

    /// 4.2.1 for 2.5 and 5 GT/s, 4.2.2 above.
    fn encoding(self) -> Encoding {
        if self == Self::Two { SYMBOLS } else { BLOCKS }
    }

    /// Transfers/s, a bit each, of a lane in one direction (4.2): 5, 8, 16, 32 GT/s.
    fn transfers(self) -> f64 {
        match self {
            Self::Two => 5e9,
            Self::Three => 8e9,
            Self::Four => 16e9,
            Self::Five => 32e9,
        }
    }

    /// Bytes/s of `lanes` in one direction, after the encoding.
    pub(super) fn bytes_per_second(self, lanes: u32) -> f64 {
        let Encoding { data_bits, line_bits, .. } = self.encoding();
        self.transfers() * f64::from(lanes) * data_bits as f64 / line_bits as f64 / 8.0
    }
}

/// The TLPs that devices for packets send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request that carries data and is not answered.
    Write,
    /// A request for data.
    Read,
    /// Data that was asked for.
    Completion,
}

/// What device and host agreed on when the device was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) generation: Generation,
    /// Maximum payload size (7.5.3.4): bytes, a power of two from 128 to 4096.
    pub(super) payload: u64,
    /// Maximum read request size (7.5.3.4): bytes, a power of two from 128 to 4096.
    pub(super) request: u64,
    /// In pieces of how many bytes the host answers reads: from the read completion boundary, 64 B
    /// (2.3.1.1), to the maximum payload. Each piece ends at a multiple of it.
    pub(super) completion: u64,
    /// Addresses of 64 bits, not 32: requests have a word of header more (2.2.4.1).
    pub(super) wide: bool,
}

impl Default for Link {
    fn default() -> Self {
        let generation = Generation::Three;
        Self { generation, payload: 256, request: 512, completion: 256, wide: true }
    }
}

impl Link {
    /// Bytes of a TLP besides its payload.
    pub(super) fn overhead(&self, kind: Kind) -> u64 {
        let Encoding { start, sequence, end, .. } = self.generation.encoding();
        let header = match kind {
            Kind::Completion => COMPLETION_HEADER,
            Kind::Write | Kind::Read => 3 + u64::from(self.wide),
        };
        start + sequence + header * WORD + CHECK + end
    }

    /// Bytes of a TLP with `payload` bytes, which goes in whole words.
    pub(super) fn tlp(&self, kind: Kind, payload: u64) -> u64 {
        self.overhead(kind) + payload.next_multiple_of(WORD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tlp_has_the_overhead_that_the_specification_says() {
        for generation in Generation::value_variants() {
            let wide = Link { generation: *generation, ..Link::default() };
            let narrow = Link { wide: false, ..wide };
            assert_eq!((wide.overhead(Kind::Write), narrow.overhead(Kind::Write)), (24, 20));
            assert_eq!((wide.overhead(Kind::Read), narrow.overhead(Kind::Read)), (24, 20));
            assert_eq!(wide.overhead(Kind::Completion), 20);
            assert_eq!(narrow.overhead(Kind::Completion), 20);
            assert_eq!((wide.tlp(Kind::Write, 61), wide.tlp(Kind::Write, 64)), (88, 88));
            assert_eq!(wide.tlp(Kind::Read, 0), 24);
        }
    }

    #[test]
    fn a_link_has_the_rate_that_is_printed_on_it() {
        let rate = |generation: Generation, lanes| generation.bytes_per_second(lanes) / 1e9;
        assert_eq!(rate(Generation::Two, 8), 4.0);
        assert!((rate(Generation::Three, 8) - 7.877).abs() < 0.001);
        assert!((rate(Generation::Four, 16) - 31.508).abs() < 0.001);
        assert!((rate(Generation::Five, 16) - 63.015).abs() < 0.001);
        assert!((rate(Generation::Five, 1) * 16.0 - rate(Generation::Five, 16)).abs() < 1e-9);
    }
}
