//! The prefixes of a full Internet routing table: from a file, or made up in its shape.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tables::{Address, Prefix};

use super::random::Random;
use crate::failure::Failure;

/// How many IPv4 prefixes of each length a full table has. Counted in the table of 901,899 IPv4
/// and 160,147 IPv6 prefixes among the test data of the Go project gaissmai/bart (MIT), as are the
/// next ones.
const LENGTHS4: [(u8, usize); 25] = [
    (8, 16),
    (9, 13),
    (10, 38),
    (11, 103),
    (12, 299),
    (13, 581),
    (14, 1203),
    (15, 2100),
    (16, 13490),
    (17, 8235),
    (18, 13798),
    (19, 24870),
    (20, 42611),
    (21, 50750),
    (22, 108_623),
    (23, 96510),
    (24, 537_698),
    (25, 20),
    (26, 3),
    (27, 11),
    (28, 18),
    (29, 17),
    (30, 3),
    (31, 3),
    (32, 886),
];

/// How many IPv6 prefixes of each length a full table has.
const LENGTHS6: [(u8, usize); 46] = [
    (16, 1),
    (19, 1),
    (20, 16),
    (21, 3),
    (22, 7),
    (23, 8),
    (24, 30),
    (25, 8),
    (26, 15),
    (27, 20),
    (28, 193),
    (29, 4371),
    (30, 650),
    (31, 284),
    (32, 22548),
    (33, 2926),
    (34, 2603),
    (35, 1043),
    (36, 5996),
    (37, 880),
    (38, 1617),
    (39, 1377),
    (40, 13418),
    (41, 903),
    (42, 2301),
    (43, 1001),
    (44, 14365),
    (45, 1553),
    (46, 3039),
    (47, 3153),
    (48, 75488),
    (49, 11),
    (50, 3),
    (52, 1),
    (55, 1),
    (56, 24),
    (58, 20),
    (60, 2),
    (64, 184),
    (112, 2),
    (122, 1),
    (124, 4),
    (125, 9),
    (126, 19),
    (127, 42),
    (128, 6),
];

/// The large blocks of IPv6 addresses that the regional registries give out (IANA, IPv6 Global Unicast Address Assignments).
const BLOCKS6: [(u128, u8); 7] = [
    (0x2001 << 112, 16),
    (0x2400 << 112, 12),
    (0x2600 << 112, 12),
    (0x2800 << 112, 12),
    (0x2a00 << 112, 12),
    (0x2a10 << 112, 12),
    (0x2c00 << 112, 12),
];
/// From this length on prefixes of IPv6 are parts of what one network was given.
const GIVEN6: u8 = 28;
/// Of so many longer prefixes one is not a part of another that is in the table.
const APART6: usize = 4;

/// Where the table is looked for when nobody says, from the checkout's folder.
const USUAL: &str = "../shared/data/internet-prefixes.txt.gz";

/// A full table, without what cannot be routed to a host.
#[derive(Debug)]
pub(crate) struct Prefixes {
    pub(crate) v4: Vec<Prefix<u32>>,
    pub(crate) v6: Vec<Prefix<u128>>,
    /// Where it comes from, in words.
    pub(crate) origin: String,
}

impl Prefixes {
    /// The table in `file`, else the one in the usual place, else one that is made up.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        let usual = || {
            let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?.join(USUAL);
            [PathBuf::from(USUAL), checkout].into_iter().find(|path| path.is_file())
        };
        match file.map(Path::to_path_buf).or_else(usual) {
            Some(path) => {
                let failed = |source| Failure::File { path: path.clone(), source };
                let text = File::open(&path).map_err(failed)?;
                let plain: Box<dyn Read> = match path.extension() {
                    Some(extension) if extension == "gz" => Box::new(GzDecoder::new(text)),
                    _ => Box::new(text),
                };
                Self::read(BufReader::new(plain), &path)
            }
            None => Ok(Self::generate(1)),
        }
    }

    fn read(text: impl BufRead, path: &Path) -> Result<Self, Failure> {
        let origin = path.display().to_string();
        let mut all = Self { v4: Vec::new(), v6: Vec::new(), origin };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.map_err(|source| Failure::File { path: path.into(), source })?;
            if !line.trim().is_empty() && all.add(line.trim()).is_none() {
                return Err(Failure::Prefix { path: path.into(), line: number });
            }
        }
        Ok(all)
    }

    fn add(&mut self, text: &str) -> Option<()> {
        let (address, length) = text.split_once('/')?;
        let length = length.parse().ok()?;
        if let Ok(address) = address.parse::<Ipv4Addr>() {
            self.v4.push(Prefix::new(address.to_bits(), length).ok()?);
        } else {
            let address: Ipv6Addr = address.parse().ok()?;
            self.v6.push(Prefix::new(address.to_bits(), length).ok()?);
        }
        Some(())
    }

    /// A table of the same size and the same lengths. IPv6 prefixes lie where registries give them out, and most of the
    /// longer ones in shorter ones, as they do in the Internet; all else is chance.
    pub(crate) fn generate(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let v4 = generate(&LENGTHS4, |_| {
            let word = random.next() as u32;
            // 1.0.0.0 to 223.255.255.255 without the private and the loopback network.
            let first = word >> 24;
            (1..224).contains(&first).then_some(word).filter(|_| first != 10 && first != 127)
        });
        let v6 = generate(&LENGTHS6, |shorter| {
            let apart = random.below(APART6) == 0;
            let given =
                shorter.get(random.below(shorter.len())).filter(|given| given.len() >= GIVEN6);
            match given.filter(|_| !apart) {
                Some(given) => Some(host(*given, &mut random)),
                None => BLOCKS6
                    .get(random.below(BLOCKS6.len()))
                    .map(|(block, length)| block | random.wide() >> length),
            }
        });
        Self { v4, v6, origin: "made up, with a full table's histogram of lengths".into() }
    }
}

fn generate<A: Address>(
    lengths: &[(u8, usize)],
    mut address: impl FnMut(&[Prefix<A>]) -> Option<A>,
) -> Vec<Prefix<A>> {
    let mut all = Vec::new();
    let mut known = HashSet::new();
    for (length, count) in lengths {
        let end = all.len() + count;
        while all.len() < end {
            let prefix = address(&all).and_then(|address| Prefix::covering(address, *length).ok());
            // Short prefixes are few, so chance finds others soon.
            if let Some(prefix) = prefix.filter(|prefix| known.insert(*prefix)) {
                all.push(prefix);
            }
        }
    }
    all.sort_unstable();
    all
}

/// `count` of them, chosen by chance; all when there are not more.
pub(crate) fn sample<A: Address>(all: &[Prefix<A>], count: usize, seed: u64) -> Vec<Prefix<A>> {
    if count >= all.len() {
        return all.to_vec();
    }
    let mut random = Random::new(seed);
    let mut chosen = HashSet::new();
    let mut list = Vec::with_capacity(count);
    while list.len() < count {
        let at = random.below(all.len());
        if chosen.insert(at) {
            list.extend(all.get(at));
        }
    }
    list
}

/// A random address in a prefix.
pub(crate) fn host<A: Inside>(prefix: Prefix<A>, random: &mut Random) -> A {
    A::inside(prefix, random.wide())
}

/// Addresses of which one in a prefix can be made of random bits.
pub(crate) trait Inside: Address {
    fn inside(prefix: Prefix<Self>, random: u128) -> Self;
}

impl Inside for u32 {
    fn inside(prefix: Prefix<Self>, random: u128) -> Self {
        prefix.bits() | (random as u32).checked_shr(prefix.len().into()).unwrap_or(0)
    }
}

impl Inside for u128 {
    fn inside(prefix: Prefix<Self>, random: u128) -> Self {
        prefix.bits() | random.checked_shr(prefix.len().into()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn histogram<A: Address>(prefixes: &[Prefix<A>]) -> BTreeMap<u8, usize> {
        let mut counts = BTreeMap::new();
        prefixes.iter().for_each(|prefix| *counts.entry(prefix.len()).or_default() += 1);
        counts
    }

    #[test]
    fn a_made_up_table_has_the_lengths_of_a_real_one() {
        let all = Prefixes::generate(7);
        assert_eq!(histogram(&all.v4), LENGTHS4.into_iter().collect());
        assert_eq!(histogram(&all.v6), LENGTHS6.into_iter().collect());
        assert_eq!(all.v4.len(), 901_899);
        let unique: HashSet<_> = all.v4.iter().collect();
        assert_eq!(unique.len(), all.v4.len());
        assert_eq!(histogram(&all.v6), LENGTHS6.into_iter().collect());
        assert!(all.v6.iter().all(|prefix| prefix.bits() >> 125 == 1), "2000::/3, RFC 4291 2.4");
    }

    /// A table of the size that `millrace-bench forward` has must take it.
    #[test]
    fn a_made_up_table_fits_like_a_real_one() {
        let all = Prefixes::generate(1);
        let capacity = tables::LpmCapacity::routes(500_000);
        let mut table = tables::Lpm6::new(capacity, &tables::Epoch::new()).unwrap();
        for prefix in &all.v6 {
            table.insert(*prefix, 1).unwrap();
        }
        let used = table.trie_bytes();
        assert!(used < capacity.trie_bytes / 4 * 3, "{used} of {} bytes", capacity.trie_bytes);
    }

    #[test]
    fn a_file_is_read_line_by_line() {
        let text = "1.0.0.0/24\n\n2001:db8::/32\n";
        let all = Prefixes::read(text.as_bytes(), Path::new("x")).unwrap();
        assert_eq!((all.v4.len(), all.v6.len()), (1, 1));
        let wrong = Prefixes::read("1.0.0.0/24\n1.0.0.1/24\n".as_bytes(), Path::new("x"));
        assert!(matches!(wrong, Err(Failure::Prefix { line: 2, .. })), "{wrong:?}");
    }

    #[test]
    fn hosts_lie_in_their_prefix_and_a_sample_is_of_the_table() {
        let all = Prefixes::generate(7);
        let mut random = Random::new(3);
        for prefix in sample(&all.v4, 100, 1) {
            assert!(all.v4.contains(&prefix));
            assert!(prefix.contains(host(prefix, &mut random)));
        }
        for prefix in sample(&all.v6, 100, 1) {
            assert!(prefix.contains(host(prefix, &mut random)));
        }
        assert_eq!(sample(&all.v4, 100, 1).len(), 100);
        assert_eq!(sample(&all.v4[..5], 100, 1).len(), 5);
    }
}
