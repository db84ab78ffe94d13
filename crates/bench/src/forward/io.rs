//! The least that can be done with packets through our binding: receive and transmit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use dpdk::{Buffer, RxQueue, TxQueue};
use graph::CAPACITY;

use crate::failure::Failure;
use crate::machine;

#[derive(Default)]
struct Shared {
    packets: AtomicU64,
    stop: AtomicBool,
}

/// A thread that sends what it receives.
pub(crate) struct Loop {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(RxQueue, TxQueue), Failure>>,
}

impl Loop {
    pub(crate) fn start(core: usize, burst: u16, rx: RxQueue, tx: TxQueue) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || run(core, burst, rx, tx, &theirs));
        Self { shared, thread }
    }

    /// Packets sent so far.
    pub(crate) fn packets(&self) -> u64 {
        self.shared.packets.load(Ordering::Relaxed)
    }

    /// Ends it; gives the queues back.
    pub(crate) fn stop(self) -> Result<(RxQueue, TxQueue), Failure> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Failure::Thread)?
    }
}

fn run(
    core: usize,
    burst: u16,
    mut rx: RxQueue,
    mut tx: TxQueue,
    shared: &Shared,
) -> Result<(RxQueue, TxQueue), Failure> {
    machine::pin(core)?;
    let _registration = dpdk::register_thread().map_err(|_| Failure::Thread)?;
    let mut slots: [Option<Buffer>; CAPACITY] = [const { None }; CAPACITY];
    let burst = usize::from(burst).clamp(1, CAPACITY);
    let mut packets = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let got = rx.burst(&mut slots[..burst]);
        let sent = tx.burst(&mut slots[..got]).packets;
        // net_null takes everything.
        if sent < got {
            dpdk::free_bulk(&mut slots[sent..got]);
        }
        packets += sent as u64;
        shared.packets.store(packets, Ordering::Relaxed);
    }
    Ok((rx, tx))
}
