//! Which of many filters a packet may match: its headers are read once, into four words, and compared with eight filters
//! at a time.
//!
//! What is found is a candidate: addresses of IPv6 are folded into a word, so that the filter itself decides. What is not
//! found matches no filter.

use std::net::IpAddr;

use wire::{EtherType, Protocol};

use crate::Filter;
use crate::filter::{Match, Seen};

/// Filters that are compared at once: two registers of SSE2 for each word, one of AVX2.
const LANES: usize = 8;
/// What the words of a packet are: EtherType and protocol, ports, source, destination.
const WORDS: usize = 4;
/// Protocols of [`Match`] in a word beside the EtherType: those of IP, ARP, none.
const ARP: u32 = 0x100;
const NONE: u32 = 0x200;

type Words = [u32; WORDS];

/// Eight comparisons.
#[derive(Debug, Clone)]
struct Block {
    masks: [[u32; LANES]; WORDS],
    values: [[u32; LANES]; WORDS],
    /// Whose they are.
    owners: [u16; LANES],
}

impl Block {
    /// Comparisons that never succeed.
    fn empty() -> Self {
        let (masks, values) = ([[0; LANES]; WORDS], [[1; LANES]; WORDS]);
        Self { masks, values, owners: [0; LANES] }
    }

    /// A bit for each comparison that succeeds.
    #[inline(always)]
    fn compare(&self, words: &Words) -> u32 {
        let mut differs = [0_u32; LANES];
        for (word, (masks, values)) in words.iter().zip(self.masks.iter().zip(&self.values)) {
            for lane in 0..LANES {
                differs[lane] |= (word & masks[lane]) ^ values[lane];
            }
        }
        let mut found = 0;
        for (lane, differs) in differs.iter().enumerate() {
            found |= u32::from(*differs == 0) << lane;
        }
        found
    }
}

/// Filters, each with its owner's number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classifier {
    blocks: Vec<Block>,
}

impl Classifier {
    /// Of these filters: owner `n` has the `n`th.
    pub(crate) fn new<'a>(filters: impl Iterator<Item = Option<&'a Filter>>) -> Self {
        let mut blocks: Vec<Block> = Vec::new();
        let mut count = 0;
        for (owner, filter) in filters.enumerate() {
            for (mask, value) in filter.into_iter().flat_map(comparisons) {
                let lane = count % LANES;
                if lane == 0 {
                    blocks.push(Block::empty());
                }
                if let Some(block) = blocks.last_mut() {
                    for word in 0..WORDS {
                        block.masks[word][lane] = mask[word];
                        block.values[word][lane] = value[word];
                    }
                    block.owners[lane] = owner as u16;
                }
                count += 1;
            }
        }
        Self { blocks }
    }

    /// Calls `found` for each filter that the frame may match, by its owner's number; an owner whose filter has two
    /// comparisons may be told twice in a row.
    #[inline]
    pub(crate) fn find(&self, frame: &[u8], mut found: impl FnMut(u16)) {
        let words = words(frame);
        for block in &self.blocks {
            let mut bits = block.compare(&words);
            while bits != 0 {
                found(block.owners[bits.trailing_zeros() as usize % LANES]);
                bits &= bits - 1;
            }
        }
    }
}

fn fold(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            ((bits >> 96) ^ (bits >> 64) ^ (bits >> 32) ^ bits) as u32
        }
    }
}

fn protocol(protocol: Option<Match>) -> u32 {
    match protocol {
        Some(Match::Ip(protocol)) => protocol.0.into(),
        Some(Match::Arp) => ARP,
        None => NONE,
    }
}

fn kind(ether_type: EtherType) -> u32 {
    u32::from(ether_type.0) << 16
}

/// Masks and values: one of each, or two for an address of either end.
fn comparisons(filter: &Filter) -> Vec<(Words, Words)> {
    let (mut mask, mut value) = (Words::default(), Words::default());
    let mut want = |word: usize, bits: u32, wanted: Option<u32>| {
        if let Some(wanted) = wanted {
            mask[word] |= bits;
            value[word] |= wanted;
        }
    };
    want(0, 0xffff_0000, filter.ether_type.map(kind));
    want(0, 0xffff, filter.protocol.map(|wanted| protocol(Some(wanted))));
    want(1, 0xffff_0000, filter.source_port.map(|port| u32::from(port) << 16));
    want(1, 0xffff, filter.destination_port.map(u32::from));
    want(2, u32::MAX, filter.source.map(fold));
    want(3, u32::MAX, filter.destination.map(fold));
    let Some(host) = filter.host.map(fold) else { return vec![(mask, value)] };
    let end = |word: usize| {
        let (mut mask, mut value) = (mask, value);
        // One that wants two addresses in the same place is decided by the filter itself.
        if mask[word] == 0 {
            (mask[word], value[word]) = (u32::MAX, host);
        }
        (mask, value)
    };
    vec![end(2), end(3)]
}

/// What filters look at in a frame.
#[inline]
fn words(frame: &[u8]) -> Words {
    if let Some(head) = frame.first_chunk::<38>() {
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let protocol = Protocol(head[23]);
        // An untagged IPv4 packet without options, which is no fragment: most are.
        let is_plain = word(12) >> 8 == 0x0008_0045 && word(20) >> 16 & 0x3fff == 0;
        if is_plain {
            let ports = if protocol.has_ports() { word(34) } else { 0 };
            return [kind(EtherType::IPV4) | u32::from(protocol.0), ports, word(26), word(30)];
        }
    }
    other_words(frame)
}

#[cold]
fn other_words(frame: &[u8]) -> Words {
    let Some(seen) = Seen::of(frame) else { return [NONE, 0, 0, 0] };
    let (source, destination) = seen.ports().unwrap_or_default();
    let [from, to] = seen.ends.map(|end| end.map_or(0, fold));
    let first = kind(seen.ether_type) | protocol(seen.protocol);
    [first, u32::from(source) << 16 | u32::from(destination), from, to]
}

#[cfg(test)]
mod tests;
