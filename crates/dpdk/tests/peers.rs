//! Peers that go away while packets are on their way.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exemption for tests misses test files' own functions"
)]

mod ports;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millrace_dpdk::{Buffer, BufferPool, Health, Opened, RxQueue, TxQueue};

use ports::open;

const BURST: usize = 32;

/// Sends and receives as fast as it can.
fn run(mut rx: RxQueue, mut tx: TxQueue, pool: BufferPool, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let mut slots = [const { None::<Buffer> }; BURST];
        for slot in &mut slots {
            *slot = pool.alloc();
            let Some(buffer) = slot else { break };
            buffer.append(1500).unwrap().fill(7);
        }
        tx.burst(&mut slots);
        let mut slots = [const { None::<Buffer> }; BURST];
        rx.burst(&mut slots);
    }
}

/// The driver takes the memory of a peer down in a thread of DPDK's, whatever the port's own does meanwhile.
#[test]
fn a_peers_memory_stays_until_bursts_are_over() {
    ports::start(128);
    let pool = BufferPool::new("peers", 8191, 2048, 64, None).unwrap();
    let folder = std::env::temp_dir().join(format!("millrace-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("socket");
    let device = |role: &str| format!("memif:{},role={role}", socket.display());
    let Opened { port, rx, tx, .. } = open(&device("server"), pool);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The cores have others to run, too, so that some bursts are interrupted.
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        for (rx, tx) in rx.into_iter().zip(tx) {
            scope.spawn(|| run(rx, tx, pool, &stop));
        }
        for _ in 0..300 {
            let mut peer = open(&device("client"), pool);
            let begin = Instant::now();
            let mut received = 0;
            while received < 64 {
                assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", port.health());
                let mut slots = [const { None::<Buffer> }; BURST];
                received += peer.rx[0].burst(&mut slots);
                if port.health() != Health::Up {
                    std::thread::yield_now();
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(port);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(pool.available(), 8191, "every buffer came back");
}
