//! TSC cycles of look-ups and updates of the tables on one core, least of many runs:
//! `cargo run --release -p millrace-tables --example cycles [PREFIXES.gz [FLOWS]]`.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, Ipv6Addr},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use flate2::read::GzDecoder;
use millrace_tables::{Address, Epoch, FlowTable, Lpm, LpmCapacity, Prefix};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Nanoseconds where there is no TSC.
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a counter.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = self.0;
        (word ^ (word >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (word >> 29)
    }
}

/// Cycles for each of `items`, by parts so small that other programs leave some runs alone: the sum
/// of each part's least.
fn least<T>(items: &[T], mut run: impl FnMut(&[T])) -> f64 {
    let parts = items.chunks(1 << 13);
    let mut best = vec![u64::MAX; parts.len()];
    for _ in 0..25 {
        for (part, best) in parts.clone().zip(&mut best) {
            let start = cycles();
            run(part);
            *best = (cycles() - start).min(*best);
        }
    }
    best.iter().sum::<u64>() as f64 / items.len() as f64
}

fn lpm<A: Address>(
    name: &str,
    prefixes: &[(A, u8)],
    host: impl Fn(u64) -> A,
    mix: impl Fn(A, A, u8) -> A,
) -> Outcome<()> {
    let epoch = Epoch::new();
    let mut table = Lpm::new(LpmCapacity::routes(2_000_000), &epoch)?;
    let mut random = Random(1);
    let start = Instant::now();
    for &(bits, len) in prefixes {
        table.insert(Prefix::new(bits, len)?, 1 + (random.next() % 250) as u32)?;
    }
    println!(
        "{name}: {} routes in {:.0} ms, trie {:.1} MB, all {:.1} MB",
        table.len(),
        start.elapsed().as_secs_f64() * 1e3,
        table.trie_bytes() as f64 / 1e6,
        table.memory_bytes() as f64 / 1e6
    );
    let reader = table.reader();
    let addresses: Vec<A> = (0..1 << 20)
        .map(|_| {
            let (bits, len) = prefixes[(random.next() % prefixes.len() as u64) as usize];
            mix(bits, host(random.next()), len)
        })
        .collect();
    let mut values = vec![0; 256];
    for size in [32, 64, 256] {
        let batch = least(&addresses, |addresses| {
            for chunk in addresses.chunks(size) {
                reader.lookup_batch(chunk, &mut values);
                std::hint::black_box(&mut values);
            }
        });
        println!("{name}: batch of {size}: {batch:.1} cycles");
    }
    let single = least(&addresses, |addresses| {
        std::hint::black_box(
            addresses.iter().fold(0, |all, address| all ^ reader.lookup(*address)),
        );
    });
    println!("{name}: one by one: {single:.1} cycles");
    let slot = epoch.register()?;
    let (done, updates) = (AtomicBool::new(false), 1_000_000);
    let seconds = std::thread::scope(|scope| -> Outcome<f64> {
        let (done, addresses) = (&done, &addresses);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for chunk in addresses.chunks(values.len()) {
                    slot.quiescent();
                    reader.lookup_batch(chunk, &mut values);
                }
            }
        });
        let start = Instant::now();
        for _ in 0..updates / 2 {
            let (bits, len) = prefixes[(random.next() % prefixes.len() as u64) as usize];
            let prefix = Prefix::new(bits, len)?;
            let value = table.remove(prefix).unwrap_or(1);
            table.insert(prefix, value)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        Ok(seconds)
    })?;
    println!("{name}: {:.2} M updates/s beside a reader", f64::from(updates) / seconds / 1e6);
    Ok(())
}

fn flow<const K: usize>(entries: usize) -> Outcome<()> {
    let key = |number: u64| {
        let mut key = [0; K];
        let mut random = Random(number);
        for bytes in key.chunks_exact_mut(8) {
            bytes.copy_from_slice(&random.next().to_le_bytes());
        }
        key
    };
    let mut table = FlowTable::<K>::new(entries)?;
    let start = Instant::now();
    let mut window = Vec::new();
    for number in 0..entries as u64 {
        window.push((key(number), number as u32));
        if window.len() == 4096 || number + 1 == entries as u64 {
            table.insert_batch(&window)?;
            window.clear();
        }
    }
    println!(
        "flow{K}: {entries} entries, {:.2} M inserts/s, {:.1} B/entry",
        entries as f64 / start.elapsed().as_secs_f64() / 1e6,
        table.memory_bytes() as f64 / entries as f64
    );
    let reader = table.reader();
    let mut random = Random(5);
    let mut keys: Vec<_> = (0..1 << 20).map(|_| key(random.next() % entries as u64)).collect();
    let mut values = vec![0; 256];
    for what in ["hits", "misses"] {
        for size in [32, 64, 256] {
            let batch = least(&keys, |keys| {
                for chunk in keys.chunks(size) {
                    reader.lookup_batch(chunk, &mut values);
                    std::hint::black_box(&mut values);
                }
            });
            println!("flow{K}: {what}, batch of {size}: {batch:.1} cycles");
        }
        keys.iter_mut().for_each(|key| key[0] ^= 0x55);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "../shared/data/internet-prefixes.txt.gz".into());
    let flows = arguments.next().map_or(Ok(1 << 25), |text| text.parse())?;
    let (mut four, mut six) = (Vec::new(), Vec::new());
    for line in BufReader::new(GzDecoder::new(File::open(path)?)).lines() {
        let line = line?;
        let (address, len) = line.split_once('/').ok_or("no prefix length")?;
        match address.parse::<Ipv4Addr>() {
            Ok(address) => four.push((address.to_bits(), len.parse()?)),
            Err(_) => six.push((address.parse::<Ipv6Addr>()?.to_bits(), len.parse()?)),
        }
    }
    lpm(
        "ipv4",
        &four,
        |random| random as u32,
        |bits, host, len| bits | (host & !u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)),
    )?;
    lpm(
        "ipv6",
        &six,
        |random| u128::from(random) << 64 | u128::from(random),
        |bits, host, len| bits | (host & !u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)),
    )?;
    if flows > 0 {
        flow::<16>(flows)?;
        flow::<40>(flows / 4)?;
    }
    Ok(())
}
