//! A port whose queue can be a client's, and the client's side of it.

#[path = "../../../../../dpdk/tests/captures/mod.rs"]
mod captures;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use dpdk::{Port, PortConfig};
use shm::attach::Reference;
use shm::{Consumer, Layout, Producer, Segment};

use super::super::*;
use crate::function::Functions;
use crate::testbed::{Outside, own_pool};
use crate::{KeptLane, RxAssignment, TransmitPath};
use captures::{read_capture, write_capture};

pub(super) const COUNT: u32 = 127;
pub(super) const SIZE: u32 = 2176;

/// The client's side.
pub(super) struct Client {
    pub(super) segment: Arc<Segment>,
    /// Where the buffers begin in it.
    pub(super) area: u64,
    pub(super) from_daemon: Consumer,
    pub(super) to_daemon: Producer,
    pub(super) counters: Arc<ClientCounters>,
    pub(super) memory: DeviceMemory,
}

impl Client {
    pub(super) fn file(&self) -> File {
        self.segment.as_fd().try_clone_to_owned().unwrap().into()
    }

    pub(super) fn at(&self, reference: Reference) -> u64 {
        self.area + u64::from(reference.place * SIZE + reference.offset)
    }

    /// What lies where a reference says.
    pub(super) fn see(&self, reference: Reference) -> Vec<u8> {
        let mut bytes = vec![0; reference.length as usize];
        self.file().read_exact_at(&mut bytes, self.at(reference)).unwrap();
        bytes
    }

    pub(super) fn write(&self, reference: Reference, bytes: &[u8]) {
        self.file().write_all_at(bytes, self.at(reference)).unwrap();
    }

    /// The slots that it was given.
    pub(super) fn slots(&mut self) -> Vec<(Vec<u8>, Meta)> {
        std::iter::from_fn(|| {
            let taken = self.from_daemon.next()?;
            let mut bytes = vec![0; taken.length()];
            self.from_daemon.copy(&taken, &mut bytes);
            let meta = taken.meta();
            self.from_daemon.release(taken);
            Some((bytes, meta))
        })
        .collect()
    }

    /// The packets that it was referred to.
    pub(super) fn references(&mut self) -> Vec<Reference> {
        let slots = self.slots();
        let reference = |(bytes, meta): &(Vec<u8>, Meta)| {
            assert_eq!(*meta, Meta { port: 7, flags: flag::REFERENCE });
            Reference::decode(bytes).unwrap()
        };
        slots.iter().map(reference).collect()
    }

    pub(super) fn say(&mut self, bytes: &[u8], port: u8, flags: u8) {
        self.to_daemon.push(bytes, Meta { port, flags }).unwrap();
    }

    pub(super) fn send(&mut self, reference: Reference, port: u8, flags: u8) {
        self.say(&reference.encode(), port, flags | flag::REFERENCE);
    }

    pub(super) fn give_back(&mut self, places: &[u32]) {
        let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
        self.say(&bytes, 0, flag::RETURN);
    }

    /// Whether nobody else holds its segment.
    pub(super) fn ends_last(self) -> bool {
        let Self { segment, from_daemon, to_daemon, memory, .. } = self;
        drop((from_daemon, to_daemon, memory));
        Arc::strong_count(&segment) == 1
    }

    /// Malformed, refused, sent.
    pub(super) fn counted(&self) -> (u64, u64, u64) {
        let ClientCounters { malformed, refused, sent, .. } = &*self.counters;
        (malformed.get(), refused.get(), sent.get())
    }
}

/// A port from a capture file and into one; its queue can be a client's.
pub(super) struct Bed {
    pub(super) outside: Outside,
    pub(super) vector: Box<Vector>,
    pub(super) rx: RxAssignment,
    pub(super) port: Port,
    pub(super) files: [PathBuf; 2],
}

pub(super) fn frame(number: u8) -> Vec<u8> {
    vec![number; 60 + usize::from(number)]
}

impl Bed {
    pub(super) fn new(name: &str, packets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let at = |end| {
            std::env::temp_dir().join(format!("millrace-{name}-{end}-{}", std::process::id()))
        };
        let files = [at("in"), at("out")];
        write_capture(&files[0], &packets.into_iter().collect::<Vec<_>>());
        let device = format!("pcap:{},out={}", files[0].display(), files[1].display());
        Self::on(name, &device, files)
    }

    pub(super) fn on(name: &str, device: &str, files: [PathBuf; 2]) -> Self {
        let mut outside = Outside::new(8, 0, 64);
        let pool = own_pool(&format!("copies-{name}"), 255);
        let KeptLane { pool: shared, lane } =
            KeptLane::new(SharedPool::new(name, COUNT, 2048, None).unwrap(), pool);
        let mut shared = vec![shared];
        let config = PortConfig::new(pool);
        let mut opened = Port::open_shared(&device.parse().unwrap(), &config, &mut shared).unwrap();
        let id = opened.port.id();
        let path = TransmitPath::Queue(opened.tx.remove(0));
        outside.exits.set_path(PortId::new(id), Some(path));
        let rx = RxAssignment::new(PortId::new(id), opened.rx.remove(0)).with_lane(lane);
        let (vector, port) = (Vector::new(), opened.port);
        Self { outside, vector, rx, port, files }
    }

    pub(super) fn client(&mut self, slots: u32) -> Client {
        let layout = Layout::new(slots, 60).unwrap();
        let rings = 2 * layout.bytes();
        let segment = Arc::new(Segment::create("test", rings + (COUNT * SIZE) as usize).unwrap());
        let ring = |which: usize| segment.region(which * layout.bytes(), layout.bytes()).unwrap();
        let area = segment.region(rings, (COUNT * SIZE) as usize).unwrap();
        let sends = Arc::new(ClientPorts::default());
        sends.set(7, Some((PortId::new(self.port.id()), 1500)));
        let counters = Arc::new(ClientCounters::default());
        let errand = crate::Errand::new(Arc::new(crate::Doorbell::new().unwrap()));
        let wake = ClientWake::new(shm::bell::inward().unwrap().0, 1, errand.clone());
        let to = Producer::new(ring(0), layout).unwrap();
        let from = Consumer::new(ring(1), layout).unwrap();
        let channel = ClientChannel::new(to, from, errand);
        let client = LaneClient {
            token: 1,
            number: 7,
            sends,
            channel,
            wake,
            pace: ClientPace::default(),
            counters: Arc::clone(&counters),
        };
        let memory = self.port.reach(area).unwrap();
        self.rx.give(client, &memory).unwrap();
        let from_daemon = Consumer::new(ring(0), layout).unwrap();
        let to_daemon = Producer::new(ring(1), layout).unwrap();
        self.settle();
        let area = rings as u64;
        Client { segment, area, from_daemon, to_daemon, counters, memory }
    }

    /// Rounds without room for packets, until every buffer is where it belongs.
    pub(super) fn settle(&mut self) {
        while self.poll(0) > 0 {}
    }

    /// Buffers of the queue's pool that nobody holds.
    pub(super) fn free(&mut self) -> u32 {
        self.rx.queue.shared().unwrap().available()
    }

    pub(super) fn drops(&self, reason: Reason) -> u64 {
        self.outside.drops(reason)
    }

    pub(super) fn poll(&mut self, limit: usize) -> usize {
        let mut functions = Functions::new();
        let Self { outside, vector, rx, .. } = self;
        let found = rx.poll(limit, vector, &mut outside.exits, &mut functions, 0);
        let counters = Arc::clone(&outside.counters);
        outside.exits.output.flush(&counters);
        found
    }

    /// What has entered the graph.
    pub(super) fn entered(&mut self) -> Vec<(Vec<u8>, PortId)> {
        let count = self.vector.len();
        let packets = self.vector.buffers[..count].iter_mut().filter_map(Option::take);
        let packets = packets.map(|buffer| (buffer.data().to_vec(), PortId::of(&buffer))).collect();
        self.vector.clear();
        packets
    }

    /// Ends it; gives what was sent.
    pub(super) fn end(self) -> Vec<Vec<u8>> {
        let Self { rx, mut outside, port, files: [from, to], .. } = self;
        outside.exits.set_path(PortId::new(port.id()), None);
        drop(rx);
        port.close().unwrap();
        let packets = read_capture(&to);
        std::fs::remove_file(from).unwrap();
        std::fs::remove_file(to).unwrap();
        packets
    }
}
