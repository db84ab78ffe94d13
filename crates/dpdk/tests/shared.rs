//! Receive queues whose buffers lie in a segment of another process: `pcap` in and out, without a network.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exemption for tests misses test files' own functions"
)]

mod captures;

use std::path::PathBuf;
use std::sync::Arc;

use captures::{read_capture, write_capture};
use millrace_dpdk::{
    Buffer, BufferPool, DeviceMemory, Eal, EalOptions, Memory, Opened, Port, PortConfig, PortError,
    SharedBuffer, SharedPool, Taken,
};
use shm::attach::Reference;
use shm::{Buffers, Region, Segment};

const COUNT: u32 = 255;
const ROOM: u16 = 2048;
/// A buffer with its headroom.
const SIZE: usize = 2176;

fn packet(number: u8) -> Vec<u8> {
    (0..60 + u16::from(number)).map(|at| at as u8 ^ number).collect()
}

struct Bed {
    pool: BufferPool,
    shared: Vec<SharedPool>,
    folder: PathBuf,
}

impl Bed {
    /// A port that receives `packets` into buffers of the shared pool.
    fn open(&mut self, packets: &[Vec<u8>]) -> Opened {
        let (from, to) = (self.folder.join("in.pcap"), self.out());
        write_capture(&from, packets);
        let device = format!("pcap:{},out={}", from.display(), to.display());
        let config = PortConfig::new(self.pool);
        Port::open_shared(&device.parse().unwrap(), &config, &mut self.shared).unwrap()
    }

    fn out(&self) -> PathBuf {
        self.folder.join("out.pcap")
    }

    fn close(&mut self, mut opened: Opened) {
        self.shared.extend(opened.rx.remove(0).into_shared().map(|pool| *pool));
        drop(opened.tx);
        opened.port.close().unwrap();
    }
}

fn segment() -> Arc<Segment> {
    Arc::new(Segment::create("test", COUNT as usize * SIZE).unwrap())
}

fn whole(segment: &Arc<Segment>) -> Region {
    segment.region(0, segment.length()).unwrap()
}

/// What the other process sees in the segment.
fn seen(segment: &Arc<Segment>, reference: Reference) -> Vec<u8> {
    // SAFETY: the buffer referred to is left alone meanwhile.
    let buffers = unsafe { Buffers::trust(whole(segment), COUNT, SIZE as u32) }.unwrap();
    buffers.bytes(&buffers.accept(reference).unwrap()).unwrap().to_vec()
}

fn lend(opened: &mut Opened, segment: &Arc<Segment>) -> DeviceMemory {
    let memory = opened.port.reach(whole(segment)).unwrap();
    let pool = opened.rx[0].shared().unwrap();
    pool.lend(&memory).unwrap();
    sweep(pool);
    memory
}

fn sweep(pool: &mut SharedPool) {
    let steps = (0..1000).take_while(|_| pool.sweep()).count();
    assert!((7..1000).contains(&steps), "a few buffers in each step: {steps}");
}

fn receive(opened: &mut Opened) -> (Vec<Buffer>, Vec<SharedBuffer>) {
    let mut slots = [const { None }; 32];
    let got = opened.rx[0].burst(&mut slots);
    let private: Vec<Buffer> = slots.into_iter().flatten().collect();
    assert_eq!(got, private.len());
    let shared = opened.rx[0].shared().unwrap().received().drain(..).collect();
    (private, shared)
}

#[test]
fn buffers_are_lent_and_taken_back() {
    let options = EalOptions { memory: Memory::Plain, megabytes: 64, ..EalOptions::default() };
    Eal::init(&options).unwrap();
    let folder = std::env::temp_dir().join(format!("millrace-shared-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pool = BufferPool::new("ordinary", 1023, ROOM, 64, None).unwrap();
    let shared = vec![SharedPool::new("shared", COUNT, ROOM, None).unwrap()];
    assert_eq!((shared[0].size(), shared[0].bytes()), (SIZE, SIZE * COUNT as usize));
    let mut bed = Bed { pool, shared, folder };
    packets_land_in_the_segment(&mut bed);
    what_is_out_comes_back_later(&mut bed);
    chains_are_copied(&mut bed);
    what_does_not_work_is_refused(&mut bed);
    assert_eq!(pool.available(), 1023, "every buffer came back");
    std::fs::remove_dir_all(&bed.folder).unwrap();
}

fn packets_land_in_the_segment(bed: &mut Bed) {
    let packets: Vec<Vec<u8>> = (0..40).map(packet).collect();
    let mut opened = bed.open(&packets);
    assert!(bed.shared.is_empty(), "the queue has the pool");
    // Nothing is lent yet.
    let (private, shared) = receive(&mut opened);
    assert_eq!((private.len(), shared.len()), (32, 0));
    assert_eq!(private[3].data(), packet(3));
    private.into_iter().for_each(|buffer| opened.rx[0].shared().unwrap().free(buffer));

    let segment = segment();
    let memory = lend(&mut opened, &segment);
    let (private, mut shared) = receive(&mut opened);
    assert_eq!((private.len(), shared.len()), (0, 8));
    let reference = |opened: &mut Opened, buffer: &SharedBuffer| {
        opened.rx[0].shared().unwrap().reference(buffer).unwrap()
    };
    for (number, buffer) in (32..).zip(&shared) {
        let reference = reference(&mut opened, buffer);
        assert_eq!(seen(&segment, reference), packet(number));
        assert_eq!(buffer.copy(&bed.pool).unwrap().data(), packet(number));
    }
    // The other process says that the packet is another part of its buffer.
    let part = shared.last_mut().unwrap();
    assert!(!part.set_span(0, SIZE + 1) && !part.set_span(usize::MAX, 2) && !part.set_span(0, 0));
    assert_eq!(part.len(), packet(39).len(), "a refusal changes nothing");
    assert!(part.set_span(128 + 10, 50) && part.len() == 50);
    // Sent from where they lie.
    let bytes = |part: &[SharedBuffer]| -> u64 { part.iter().map(|b| b.len() as u64).sum() };
    let taken = [&shared[..4], &shared[4..]].map(|part| Taken { packets: 4, bytes: bytes(part) });
    let mut slots: Vec<_> = shared.into_iter().map(Some).collect();
    slots.insert(4, None);
    let first = opened.tx[0].burst_shared(&mut slots);
    assert_eq!(first, taken[0], "a burst ends at the first empty slot");
    slots.drain(..5);
    assert_eq!(opened.tx[0].burst_shared(&mut slots), taken[1]);
    assert!(slots.iter().all(Option::is_none));

    let pool = opened.rx[0].shared().unwrap();
    pool.withdraw();
    sweep(pool);
    assert_eq!(pool.earlier(), 0, "every buffer is at home");
    drop(memory);
    assert_eq!(Arc::strong_count(&segment), 1, "nobody holds the memory");
    bed.close(opened);
    let mut expected: Vec<Vec<u8>> = (32..40).map(packet).collect();
    *expected.last_mut().unwrap() = packet(39)[10..60].to_vec();
    assert_eq!(read_capture(&bed.out()), expected);
}

fn what_is_out_comes_back_later(bed: &mut Bed) {
    let packets: Vec<Vec<u8>> = (0..96).map(packet).collect();
    let mut opened = bed.open(&packets);
    let (first, second) = (segment(), segment());
    let memory = lend(&mut opened, &first);
    let (_, mut held) = receive(&mut opened);
    assert_eq!(held.len(), 32);
    // Another client comes while the first one's packets are out.
    let other = lend(&mut opened, &second);
    drop(memory);
    let pool = opened.rx[0].shared().unwrap();
    assert_eq!(pool.earlier(), 1);
    assert_eq!(pool.reference(&held[0]), None, "not in the second one's memory");
    let copy = held[0].copy(&bed.pool).unwrap();
    assert_eq!(copy.data(), packet(0), "its memory is still there");
    let last = held.pop().unwrap();
    held.drain(..).for_each(|buffer| pool.take_back(buffer));
    assert!(pool.earlier() == 1 && Arc::strong_count(&first) == 2);
    // One that a driver frees goes back as it is; the first segment stays until it was received again.
    drop(last);
    assert_eq!(Arc::strong_count(&first), 2);
    sweep_all(pool);
    let (_, mut received) = receive(&mut opened);
    let pool = opened.rx[0].shared().unwrap();
    for buffer in received.drain(..) {
        let reference = pool.reference(&buffer).unwrap();
        assert!(seen(&second, reference).len() >= 60);
        pool.take_back(buffer);
    }
    pool.withdraw();
    sweep(pool);
    drop(other);
    assert_eq!(pool.earlier(), 0);
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
    bed.close(opened);
}

fn sweep_all(pool: &mut SharedPool) {
    while pool.sweep() {}
}

fn chains_are_copied(bed: &mut Bed) {
    let long: Vec<u8> = (0..5000_u32).map(|at| (at / 7) as u8).collect();
    let mut opened = bed.open(std::slice::from_ref(&long));
    let segment = segment();
    let memory = lend(&mut opened, &segment);
    let (_, mut shared) = receive(&mut opened);
    let mut chained = shared.pop().unwrap();
    assert!(chained.is_chained() && chained.len() == 5000);
    let pool = opened.rx[0].shared().unwrap();
    assert_eq!(pool.reference(&chained), None, "it lies in pieces");
    assert!(!chained.set_span(0, 60) && chained.copy(&bed.pool).is_none());
    let (mut whole, mut part) = (Vec::new(), vec![9]);
    chained.copy_into(&mut whole, usize::MAX);
    chained.copy_into(&mut part, 3000);
    assert_eq!(whole, long);
    assert_eq!((part[0], &part[1..]), (9, &long[..3000]));
    pool.take_back(chained);
    pool.withdraw();
    sweep(pool);
    drop(memory);
    assert_eq!((pool.earlier(), Arc::strong_count(&segment)), (0, 1));
    bed.close(opened);
}

fn what_does_not_work_is_refused(bed: &mut Bed) {
    let mut opened = bed.open(&[packet(0)]);
    let short = Arc::new(Segment::create("test", 4096).unwrap());
    let memory = opened.port.reach(whole(&short)).unwrap();
    let pool = opened.rx[0].shared().unwrap();
    let error = pool.lend(&memory).unwrap_err();
    assert_eq!((error.needed, error.given), (pool.bytes(), 4096));
    bed.close(opened);
    let config = PortConfig::new(bed.pool);
    let missing = "pcap:/nonexistent.pcap".parse().unwrap();
    let error = Port::open_shared(&missing, &config, &mut bed.shared).unwrap_err();
    assert!(matches!(error, PortError::Device(_)), "{error}");
    assert_eq!(bed.shared.len(), 1, "a refusal leaves the pools");
}
