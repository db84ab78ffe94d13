//! Pools and buffers: bounds, ownership, leaks. One EAL in ordinary memory for all tests here.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exemption for tests misses test files' own functions"
)]

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use millrace_dpdk::{
    Buffer, BufferPool, Eal, EalError, EalOptions, HEADROOM, Memory, PoolError, ThreadError,
    free_bulk, lcore_id, register_thread, tsc, tsc_hz,
};

/// One test at a time has the pool, so that its count can be watched.
fn pool() -> (BufferPool, MutexGuard<'static, ()>) {
    static POOL: OnceLock<BufferPool> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = POOL.get_or_init(|| {
        let options = EalOptions { memory: Memory::Plain, megabytes: 128, ..EalOptions::default() };
        let allowed = std::thread::available_parallelism().unwrap();
        Eal::init(&options).unwrap();
        assert_eq!(std::thread::available_parallelism().unwrap(), allowed, "affinity is kept");
        assert_eq!(Eal::init(&options).unwrap_err(), EalError::Once);
        BufferPool::new("buffers", 1023, 2048, 0, None).unwrap()
    });
    assert_eq!(pool.available(), 1023, "an earlier test has kept buffers");
    (*pool, turn)
}

fn packet(pool: &BufferPool, bytes: &[u8]) -> Buffer {
    let mut buffer = pool.alloc().unwrap();
    buffer.append(bytes.len()).unwrap().copy_from_slice(bytes);
    buffer
}

#[test]
fn a_fresh_buffer_is_empty_with_its_headroom() {
    let (pool, _turn) = pool();
    let buffer = pool.alloc().unwrap();
    assert_eq!((buffer.len(), buffer.is_empty()), (0, true));
    assert_eq!(buffer.headroom(), usize::from(HEADROOM));
    assert_eq!(buffer.tailroom(), 2048);
    assert!(!buffer.is_chained() && buffer.rss_hash().is_none());
    assert!(buffer.stripped_vlan().is_none());
}

#[test]
fn growing_and_shrinking_stops_at_the_bounds() {
    let (pool, _turn) = pool();
    let mut buffer = packet(&pool, b"payload");
    buffer.prepend(4).unwrap().copy_from_slice(b"head");
    buffer.append(4).unwrap().copy_from_slice(b"tail");
    assert_eq!(buffer.data(), b"headpayloadtail");
    assert!(buffer.adjust(4) && buffer.trim(4));
    assert_eq!((buffer.data(), buffer.len()), (&b"payload"[..], 7));
    assert!(!buffer.adjust(8) && !buffer.trim(8));
    assert!(buffer.prepend(usize::from(HEADROOM) + 1).is_none());
    assert!(buffer.append(2048 - 7 + 1).is_none());
    assert!(buffer.prepend(1 << 20).is_none() && buffer.append(1 << 20).is_none());
    assert_eq!(buffer.data(), b"payload", "a refusal changes nothing");
    assert!(buffer.prepend(usize::from(HEADROOM)).is_some());
    assert!(buffer.append(2048 - 7).is_some());
    assert_eq!((buffer.headroom(), buffer.tailroom()), (0, 0));
    assert_eq!(buffer.len(), usize::from(HEADROOM) + 2048);
}

#[test]
fn any_series_of_operations_matches_a_vector() {
    let (pool, _turn) = pool();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..200 {
        let mut buffer = pool.alloc().unwrap();
        let mut model: Vec<u8> = Vec::new();
        let mut head = usize::from(HEADROOM);
        for _ in 0..40 {
            let n = random(300) as usize;
            let fill = random(256) as u8;
            match random(4) {
                0 => {
                    let grown = buffer.prepend(n).map(|new| new.fill(fill)).is_some();
                    assert_eq!(grown, n <= head);
                    if grown {
                        head -= n;
                        model.splice(0..0, std::iter::repeat_n(fill, n));
                    }
                }
                1 => {
                    let grown = buffer.append(n).map(|new| new.fill(fill)).is_some();
                    assert_eq!(grown, head + model.len() + n <= 2048 + usize::from(HEADROOM));
                    if grown {
                        model.extend(std::iter::repeat_n(fill, n));
                    }
                }
                2 => {
                    assert_eq!(buffer.adjust(n), n <= model.len());
                    if n <= model.len() {
                        head += n;
                        model.drain(..n);
                    }
                }
                _ => {
                    assert_eq!(buffer.trim(n), n <= model.len());
                    model.truncate(if n <= model.len() { model.len() - n } else { model.len() });
                }
            }
            assert_eq!(buffer.data(), model);
            assert_eq!((buffer.len(), buffer.headroom()), (model.len(), head));
        }
    }
}

#[test]
fn dropping_gives_every_buffer_back() {
    let (pool, _turn) = pool();
    let held: Vec<Buffer> = std::iter::from_fn(|| pool.alloc()).collect();
    assert_eq!((held.len(), pool.available()), (1023, 0));
    assert!(pool.alloc().is_none());
    drop(held);
    assert_eq!(pool.available(), 1023);
}

#[test]
fn bulk_is_all_or_nothing_and_frees_around_gaps() {
    let (pool, _turn) = pool();
    let mut slots: Vec<Option<Buffer>> = (0..1000).map(|_| None).collect();
    assert_eq!(pool.alloc_bulk(&mut slots), 1000);
    assert!(slots.iter().all(Option::is_some));
    let mut more: Vec<Option<Buffer>> = (0..100).map(|_| None).collect();
    assert_eq!(pool.alloc_bulk(&mut more), 0);
    assert!(more.iter().all(Option::is_none));
    let kept = slots[500].take();
    free_bulk(&mut slots);
    assert!(slots.iter().all(Option::is_none));
    assert_eq!(pool.available(), 1022);
    drop(kept);
}

#[test]
fn a_copy_is_independent() {
    let (pool, _turn) = pool();
    let original = packet(&pool, b"abc");
    let mut copy = original.copy(&pool).unwrap();
    copy.data_mut()[0] = b'x';
    assert_eq!((original.data(), copy.data()), (&b"abc"[..], &b"xbc"[..]));
    let small = BufferPool::new("small", 63, 2, 0, None).unwrap();
    assert!(original.copy(&small).is_none(), "three bytes do not fit into two");
    assert_eq!(small.available(), 63);
}

#[test]
fn wrong_pools_are_refused() {
    let (_, _turn) = pool();
    let refused = |name: &str, count, room, cache| {
        BufferPool::new(name, count, room, cache, None).unwrap_err().to_string()
    };
    assert!(refused("", 10, 64, 0).contains("1 to 24"));
    assert!(refused("a\0b", 10, 64, 0).contains("NUL"));
    assert!(refused("p", 0, 64, 0).contains("buffers"));
    assert!(refused("p", 100, 64, 90).contains("cache"));
    assert!(refused("p", 100, 65500, 0).contains("65407"));
    assert!(refused("p", 1 << 24, 9000, 0).contains("memory"));
    let again = BufferPool::new("buffers", 10, 64, 0, None).unwrap_err();
    assert!(matches!(again, PoolError::Refused { .. }) && again.to_string().contains("exists"));
}

#[test]
fn a_registered_thread_has_an_lcore_until_it_ends() {
    let (_, _turn) = pool();
    let cached = BufferPool::new("cached", 255, 64, 32, None).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(lcore_id(), None);
            let registration = register_thread().unwrap();
            assert!(lcore_id().is_some());
            assert_eq!(register_thread().unwrap_err(), ThreadError::Registered);
            drop(cached.alloc());
            drop(registration);
            assert_eq!(lcore_id(), None);
        });
    });
    // Without a cache this thread sees only what the other thread's cache does not keep.
    let all: Vec<Buffer> = std::iter::from_fn(|| cached.alloc()).collect();
    assert_eq!(all.len(), 255);
}

#[test]
fn a_buffer_can_end_on_another_thread() {
    let (pool, _turn) = pool();
    let buffer = packet(&pool, b"moves");
    let length = std::thread::spawn(move || buffer.len()).join().unwrap();
    assert_eq!((length, pool.available()), (5, 1023));
}

#[test]
fn the_counter_counts() {
    let (_, _turn) = pool();
    let before = tsc();
    assert!(tsc() >= before && tsc_hz() > 1_000_000);
}
