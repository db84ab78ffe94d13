//! The LPM tables against a plain model: a map of prefixes, searched from the longest on.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a failure to set up is a failed test")]

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use flate2::read::GzDecoder;
use millrace_tables::{
    Address, Epoch, Lpm, Lpm4, Lpm6, LpmCapacity, LpmError, MAX_VALUE, MISS, Prefix, PrefixError,
};
use proptest::prelude::*;

type Model<A> = BTreeMap<(A, u8), u32>;

fn model_lookup<A: Address>(model: &Model<A>, address: A) -> u32 {
    let lengths = (0..=A::WIDTH).rev();
    lengths
        .into_iter()
        .find_map(|len| model.get(&(address.truncate(len), len)))
        .map_or(MISS, |v| *v)
}

#[derive(Debug, Clone)]
enum Operation<A> {
    Insert(A, u8, u32),
    Remove(A, u8),
    /// Removes the nth route of the model.
    RemoveHeld(usize),
}

/// Addresses with few different bits in every byte, so that prefixes nest and meet.
fn address4() -> impl Strategy<Value = u32> {
    prop_oneof![
        (any::<u32>(), any::<u32>()).prop_map(|(a, b)| 0x0a40_0000 | (a & b & 0x0103_1313)),
        any::<u32>()
    ]
}

fn address6() -> impl Strategy<Value = u128> {
    let narrow = (any::<u128>(), any::<u128>())
        .prop_map(|(a, b)| (0x2001_0db8 << 96) | (a & b & (u128::MAX / 255 * 0x11) >> 12));
    prop_oneof![4 => narrow, 1 => any::<u128>()]
}

fn operations<A: Address>(
    address: impl Strategy<Value = A> + Clone,
) -> impl Strategy<Value = Vec<Operation<A>>> {
    let operation = prop_oneof![
        6 => (address.clone(), 0..=A::WIDTH, 0..=MAX_VALUE)
            .prop_map(|(a, len, value)| Operation::Insert(a, len, value)),
        1 => (address, 0..=A::WIDTH).prop_map(|(a, len)| Operation::Remove(a, len)),
        4 => any::<usize>().prop_map(Operation::RemoveHeld),
    ];
    prop::collection::vec(operation, 1..120)
}

fn check<A: Address>(operations: Vec<Operation<A>>, mut probes: Vec<A>) {
    let epoch = Epoch::new();
    let mut table = Lpm::new(LpmCapacity { routes: 1000, trie_bytes: 4 << 20 }, &epoch).unwrap();
    let empty = table.trie_bytes();
    let reader = table.reader();
    let mut model = Model::new();
    for operation in operations {
        match operation {
            Operation::Insert(address, len, value) => {
                let prefix = Prefix::covering(address, len).unwrap();
                probes.push(prefix.bits());
                probes.push(address);
                let previous = model.insert((prefix.bits(), len), value);
                assert_eq!(table.insert(prefix, value), Ok(previous));
            }
            Operation::Remove(address, len) => {
                let prefix = Prefix::covering(address, len).unwrap();
                assert_eq!(table.remove(prefix), model.remove(&(prefix.bits(), len)));
            }
            Operation::RemoveHeld(nth) => {
                let Some((&(bits, len), &value)) = model.iter().nth(nth % model.len().max(1))
                else {
                    continue;
                };
                model.remove(&(bits, len));
                assert_eq!(table.remove(Prefix::new(bits, len).unwrap()), Some(value));
            }
        }
        assert_eq!(table.len(), model.len());
    }
    let mut values = vec![7; probes.len()];
    reader.lookup_batch(&probes, &mut values);
    for (&address, &batched) in probes.iter().zip(&values) {
        let expected = model_lookup(&model, address);
        assert_eq!(reader.lookup(address), expected, "{address:x?}");
        assert_eq!(batched, expected, "{address:x?}");
        assert_eq!(table.route(address).map_or(MISS, |(_, value)| value), expected);
    }
    let held: Model<A> = table.iter().map(|(p, value)| ((p.bits(), p.len()), value)).collect();
    assert_eq!(held, model);
    // What is taken away gives its memory back: the same routes fit again and again.
    let used = table.trie_bytes();
    for _ in 0..3 {
        for &(bits, len) in model.keys() {
            table.remove(Prefix::new(bits, len).unwrap());
        }
        assert!(probes.iter().all(|address| reader.lookup(*address) == MISS));
        for (&(bits, len), &value) in &model {
            table.insert(Prefix::new(bits, len).unwrap(), value).unwrap();
        }
    }
    assert!(table.trie_bytes() <= used.max(empty));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn ipv4_agrees_with_a_map(
        operations in operations(address4().boxed()),
        probes in prop::collection::vec(address4(), 150),
    ) {
        check(operations, probes);
    }

    #[test]
    fn ipv6_agrees_with_a_map(
        operations in operations(address6().boxed()),
        probes in prop::collection::vec(address6(), 150),
    ) {
        check(operations, probes);
    }
}

fn prefix4(text: &str) -> Prefix<u32> {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse::<std::net::Ipv4Addr>().unwrap().to_bits(), len.parse().unwrap())
        .unwrap()
}

#[test]
fn default_and_host_routes() {
    let epoch = Epoch::new();
    let mut table = Lpm4::new(LpmCapacity::routes(10), &epoch).unwrap();
    let reader = table.reader();
    assert_eq!(reader.lookup(0xc0a8_0001), MISS);
    table.insert(prefix4("0.0.0.0/0"), 1).unwrap();
    table.insert(prefix4("192.168.0.1/32"), 2).unwrap();
    table.insert(prefix4("255.255.255.255/32"), 3).unwrap();
    assert_eq!(reader.lookup(0xc0a8_0001), 2);
    assert_eq!(reader.lookup(0xc0a8_0000), 1);
    assert_eq!(reader.lookup(0xc0a8_0002), 1);
    assert_eq!(reader.lookup(u32::MAX), 3);
    assert_eq!(table.remove(prefix4("0.0.0.0/0")), Some(1));
    assert_eq!(reader.lookup(0xc0a8_0002), MISS);
    assert_eq!(reader.lookup(0xc0a8_0001), 2);
    let mut six = Lpm6::new(LpmCapacity::routes(10), &epoch).unwrap();
    six.insert(Prefix::new(0, 0).unwrap(), 4).unwrap();
    six.insert(Prefix::host(1), 5).unwrap();
    six.insert(Prefix::host(u128::MAX), 6).unwrap();
    assert_eq!([0, 1, 2, u128::MAX].map(|a| six.reader().lookup(a)), [4, 5, 4, 6]);
}

#[test]
fn prefixes_are_checked_and_shown() {
    assert_eq!(Prefix::new(1u32, 31), Err(PrefixError::HostBits(31)));
    assert_eq!(Prefix::new(0u32, 33), Err(PrefixError::TooLong(33)));
    assert_eq!(Prefix::new(0u128, 129), Err(PrefixError::TooLong(129)));
    assert_eq!(prefix4("10.0.0.0/8").to_string(), "10.0.0.0/8");
    assert_eq!(Prefix::new(0x2001u128 << 112, 16).unwrap().to_string(), "2001::/16");
}

#[test]
fn a_full_table_refuses_and_stays() {
    let epoch = Epoch::new();
    let mut table = Lpm4::new(LpmCapacity { routes: 4, trie_bytes: 2240 }, &epoch).unwrap();
    let reader = table.reader();
    table.insert(prefix4("10.0.0.1/32"), 1).unwrap();
    assert_eq!(table.insert(prefix4("10.0.0.0/8"), MAX_VALUE + 1), Err(LpmError::Value(1 << 31)));
    // A host route on its own takes blocks of 1024, 64 and 64 bytes: 64 are missing for another.
    assert_eq!(table.insert(prefix4("11.0.0.1/32"), 2), Err(LpmError::Trie(2240)));
    assert_eq!(reader.lookup(0x0b00_0001), MISS);
    assert_eq!(table.len(), 1);
    table.insert(prefix4("11.0.0.0/28"), 3).unwrap();
    assert_eq!(table.remove(prefix4("10.0.0.1/32")), Some(1));
    table.insert(prefix4("12.0.0.1/32"), 4).unwrap();
    table.insert(prefix4("10.0.0.0/8"), 5).unwrap();
    table.insert(prefix4("0.0.0.0/0"), 6).unwrap();
    assert_eq!(table.insert(prefix4("9.0.0.0/8"), 7), Err(LpmError::Routes(4)));
    // A route that is there can still change.
    assert_eq!(table.insert(prefix4("0.0.0.0/0"), 8), Ok(Some(6)));
    assert_eq!([0x0b00_0001, 0x0c00_0001, 0x0a00_0001, 1].map(|a| reader.lookup(a)), [3, 4, 5, 8]);
}

#[test]
fn blocks_wait_for_readers() {
    let epoch = Epoch::new();
    let mut table = Lpm4::new(LpmCapacity { routes: 4, trie_bytes: 1024 }, &epoch).unwrap();
    let slot = epoch.register().unwrap();
    slot.quiescent();
    table.insert(prefix4("10.0.0.0/24"), 1).unwrap();
    table.remove(prefix4("10.0.0.0/24")).unwrap();
    assert_eq!(table.insert(prefix4("11.0.0.0/24"), 1), Err(LpmError::Trie(1024)));
    slot.quiescent();
    assert_eq!(table.insert(prefix4("11.0.0.0/24"), 1), Ok(None));
}

/// Prefixes of a full Internet table when one is at hand, else as many of the same kind: close together,
/// most of them /24.
fn internet() -> Vec<Prefix<u32>> {
    let default =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/internet-prefixes.txt.gz");
    let path = std::env::var("MILLRACE_PREFIXES").unwrap_or_else(|_| default.into());
    if let Ok(file) = File::open(&path) {
        let lines = BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap);
        return lines.filter(|line| !line.contains(':')).map(|line| prefix4(&line)).collect();
    }
    eprintln!("no route table at {path} (MILLRACE_PREFIXES): made-up prefixes instead");
    let lengths = [24, 24, 23, 24, 22, 24, 24, 20, 24, 24, 16];
    let length = |n: u32| lengths[n as usize % lengths.len()];
    (0..900_000).map(|n| Prefix::covering(0x0100_0000 + n * 0x380, length(n)).unwrap()).collect()
}

#[test]
fn a_full_table_loads_and_unloads() {
    let prefixes = internet();
    let mut table = Lpm4::new(LpmCapacity::routes(1_000_000), &Epoch::new()).unwrap();
    let empty = table.trie_bytes();
    let mut model = Model::new();
    for (&prefix, value) in prefixes.iter().zip(1..) {
        let previous = model.insert((prefix.bits(), prefix.len()), value);
        assert_eq!(table.insert(prefix, value), Ok(previous));
    }
    assert!(table.memory_bytes() <= 64_000_000, "{}", table.memory_bytes());
    let hosts = prefixes.iter().zip(0u32..).step_by(61);
    let addresses: Vec<u32> = hosts
        .map(|(p, n)| p.bits() | (n.wrapping_mul(0x85eb_ca6b) & !u32::MAX.truncate(p.len())))
        .collect();
    let mut values = vec![0; addresses.len()];
    table.reader().lookup_batch(&addresses, &mut values);
    for (address, value) in addresses.iter().zip(&values) {
        assert_eq!(*value, model_lookup(&model, *address));
    }
    let full = table.trie_bytes();
    for (bits, len) in model.keys() {
        assert!(table.remove(Prefix::new(*bits, *len).unwrap()).is_some());
    }
    assert!(addresses.iter().all(|address| table.reader().lookup(*address) == MISS));
    for (&(bits, len), value) in &model {
        table.insert(Prefix::new(bits, len).unwrap(), *value).unwrap();
    }
    assert!(empty < full && table.trie_bytes() == full, "blocks were not used again");
}

#[test]
fn scattered_neighbours_fit() {
    let mut table = Lpm6::new(LpmCapacity::routes(65_536), &Epoch::new()).unwrap();
    let host = |n: u64| {
        let interface = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0x2001_0db8u128 << 96) | u128::from(interface)
    };
    for n in 0..65_536u64 {
        table.insert(Prefix::host(host(n)), n as u32 + 1).unwrap();
    }
    assert!((0..65_536).all(|n| table.reader().lookup(host(n)) == n as u32 + 1));
    assert_eq!(table.reader().lookup(host(65_536)), MISS);
}

/// While 100,000 routes come, go and change over and over, every address keeps the value of its own
/// route when that is there, and of the covering one when not; never a miss, never a stranger.
#[test]
fn readers_see_no_half_made_change() {
    const ROUTES: u32 = 100_000;
    let epoch = Epoch::new();
    let mut table = Lpm4::new(LpmCapacity::routes(200_000), &epoch).unwrap();
    table.insert(prefix4("0.0.0.0/0"), 1).unwrap();
    // Route n is 10.n*16/28, value 16 * n + a version from 2 on; the low 4 bits of it never 0 or 1.
    let prefix = |n: u32| Prefix::new(0x0a00_0000 + n * 16, 28).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2u32 {
            let (reader, slot) = (table.reader(), epoch.register().unwrap());
            let done = &done;
            scope.spawn(move || {
                let mut random = thread + 1;
                let (mut addresses, mut values) = ([0; 256], [0; 256]);
                let mut seen = [0u64; 2];
                while !done.load(Ordering::Relaxed) || seen[0] == 0 {
                    slot.quiescent();
                    for address in &mut addresses {
                        random = random.wrapping_mul(0x915f_77f5).wrapping_add(0x3c6e_f35f);
                        *address = 0x0a00_0000 + (random >> 4) % (ROUTES * 16);
                    }
                    reader.lookup_batch(&addresses, &mut values);
                    for (address, value) in addresses.iter().zip(values) {
                        let own = (address - 0x0a00_0000) / 16;
                        assert!(value == 1 || (value / 16 == own && value % 16 >= 2), "{value}");
                        seen[usize::from(value != 1)] += 1;
                    }
                }
            });
        }
        for round in 0..4 {
            for n in 0..ROUTES {
                table.insert(prefix(n), 16 * n + 2 + round).unwrap();
            }
            for n in (0..ROUTES).rev() {
                assert_eq!(table.remove(prefix(n)), Some(16 * n + 2 + round));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(table.len(), 1);
}
