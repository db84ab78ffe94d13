//! Ports without a network: `pcap` from and to files, `null`.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exemption for tests misses test files' own functions"
)]

mod captures;
mod ports;

use std::path::Path;

use millrace_dpdk::{
    Buffer, BufferPool, Health, Opened, Port, PortConfig, PortError, RxQueue, Taken, TxQueue,
};

use captures::{read_capture, write_capture};
use ports::open;

const NONE: Option<Buffer> = None;

fn drain(rx: &mut RxQueue, tx: &mut TxQueue) -> usize {
    let mut count = 0;
    loop {
        let mut slots = [NONE; 32];
        let n = rx.burst(&mut slots);
        if n == 0 {
            return count;
        }
        assert!(slots[..n].iter().all(Option::is_some) && slots[n..].iter().all(Option::is_none));
        let sent = tx.burst(&mut slots).packets;
        assert_eq!(sent, n);
        assert!(slots.iter().all(Option::is_none), "sent packets are not ours any more");
        count += sent;
    }
}

#[test]
fn files_and_null() {
    ports::start(128);
    let pool = BufferPool::new("files", 2047, 2048, 64, None).unwrap();
    let directory = std::env::temp_dir().join(format!("millrace-files-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    capture_in_is_capture_out(&directory, pool);
    long_packets_are_chains(&directory, pool);
    null_takes_and_gives(pool);
    refusals_leave_nothing(pool);
    assert_eq!(pool.available(), 2047, "every buffer came back");
    std::fs::remove_dir_all(&directory).unwrap();
}

fn capture_in_is_capture_out(directory: &Path, pool: BufferPool) {
    let (from, to) = (directory.join("in.pcap"), directory.join("out.pcap"));
    let packets: Vec<Vec<u8>> =
        (0..100_u8).map(|i| (0..60 + u16::from(i)).map(|at| at as u8 ^ i).collect()).collect();
    write_capture(&from, &packets);
    let Opened { port, mut rx, mut tx, .. } =
        open(&format!("pcap:{},out={}", from.display(), to.display()), pool);
    assert_eq!(port.info().driver, "net_pcap");
    assert_eq!(drain(&mut rx[0], &mut tx[0]), 100);
    assert_eq!(port.stats().unwrap().rx_packets, 100);
    assert_eq!(port.health(), Health::Up);
    drop(tx);
    let busy = port.close().unwrap_err();
    assert!(matches!(busy, PortError::Busy { queues: 1, .. }), "{busy}");
    // The last queue closes the port, which writes the file out.
    drop(rx);
    assert_eq!(read_capture(&to), packets);
}

fn long_packets_are_chains(directory: &Path, pool: BufferPool) {
    let (from, to) = (directory.join("long.pcap"), directory.join("long-out.pcap"));
    let long: Vec<u8> = (0..5000_u32).map(|at| (at / 7) as u8).collect();
    write_capture(&from, &[long.clone(), long.clone(), long[..60].to_vec()]);
    let Opened { port, mut rx, mut tx, .. } =
        open(&format!("pcap:{},out={}", from.display(), to.display()), pool);
    let mut slots = [NONE; 4];
    assert_eq!(rx[0].burst(&mut slots), 3);
    let first = slots[0].as_mut().unwrap();
    assert!(first.is_chained() && first.len() == 5000 && first.data().len() < 5000);
    let whole = |buffer: &Buffer| -> Vec<u8> {
        buffer.segments().flat_map(|segment| segment.data.to_vec()).collect()
    };
    assert_eq!(whole(first), long);
    assert!(!first.linearize(), "5000 bytes do not fit into 2048");
    assert_eq!(whole(first), long, "a refusal changes nothing");
    let large = BufferPool::new("large", 15, 8192, 0, None).unwrap();
    assert_eq!(first.copy(&large).unwrap().data(), long);
    assert!(first.copy(&pool).is_none());

    // Shorten it from both ends until it fits into its first segment.
    let front = first.data().len();
    assert!(first.adjust(front - 100));
    let last = first.segments().last().unwrap().data.len();
    assert!(first.trim(last) && !first.trim(3000));
    let expected = whole(first);
    assert_eq!(expected.len(), 5000 - (front - 100) - last);
    let room = 2048 - front;
    assert_eq!(first.linearize(), expected.len() - 100 <= room);
    assert_eq!(whole(first), expected);
    let second = slots[1].as_mut().unwrap();
    assert!(!second.truncate(3000) && whole(second) == long, "that is not in the first segment");
    let free = pool.available();
    assert!(second.truncate(6000) && second.len() == 5000, "it is shorter already");
    assert!(second.truncate(100) && !second.is_chained() && second.data() == &long[..100]);
    assert_eq!(pool.available(), free + 2, "its other segments are back");
    let bytes = (expected.len() + 100 + 60) as u64;
    assert_eq!(tx[0].burst(&mut slots), Taken { packets: 3, bytes });
    drop((rx, tx));
    port.close().unwrap();
    assert_eq!(read_capture(&to), [expected, long[..100].to_vec(), long[..60].to_vec()]);
}

fn null_takes_and_gives(pool: BufferPool) {
    let Opened { port, mut rx, mut tx, .. } = open("null,size=128", pool);
    let mut slots = [NONE; 64];
    assert_eq!(rx[0].burst(&mut slots), 64);
    assert!(slots.iter().flatten().all(|buffer| buffer.len() == 128));
    assert_eq!(slots[0].as_ref().unwrap().port(), port.id());
    let hole = slots[10].take();
    let taken = Taken { packets: 10, bytes: 1280 };
    assert_eq!(tx[0].burst(&mut slots), taken, "a burst ends at the first empty slot");
    drop((hole, slots));
    assert!(rx[0].interrupt().is_err());
    let silent = open("null,no-rx=1", pool).rx[0].burst(&mut [NONE; 8]);
    assert_eq!(silent, 0);
}

fn refusals_leave_nothing(pool: BufferPool) {
    let fails = |device: &str, config: &PortConfig| {
        Port::open(&device.parse().unwrap(), config).unwrap_err().to_string()
    };
    let mut config = PortConfig::new(pool);
    assert!(fails("pcap:/nonexistent.pcap", &config).contains("/nonexistent.pcap"));
    assert!(fails("pci:0000:ff:1f.7", &config).contains("vfio-pci"));
    config.mtu = Some(40);
    assert!(fails("null", &config).contains("out of range"));
    config.mtu = Some(9000);
    assert!(fails("null", &config).contains("larger buffers"));
    config.mtu = None;
    config.rx_queues = 0;
    assert!(fails("null", &config).contains("at least one"));
    config.rx_queues = 1;
    config.pools.clear();
    assert!(fails("null", &config).contains("buffer pool"));
}
