//! A daemon for tests: it answers at a socket of its own, makes the memory, and moves what the test says.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may; each uses its part"
)]

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millrace::{Client, PROTOCOL, Port, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    shutdown, socket_with,
};
use shm::attach::{
    BufferPlace, Channel, ChannelPlace, Open, Opened, Reference, Refusal, RefusalKind, Reply,
    Request, RingPlace, Welcome, flag,
};
use shm::{Consumer, Doorbell, Layout, Meta, Producer, Segment};

/// Rings between one worker and one channel.
pub struct Rings {
    pub to_client: Producer,
    pub from_client: Consumer,
}

/// What was opened.
pub struct Queue {
    pub number: u32,
    pub asked: Open,
    pub closed: bool,
    /// By channel, then by worker.
    pub rings: Vec<Vec<Rings>>,
    pub channel_bells: Vec<Doorbell>,
    pub worker_bells: Vec<Doorbell>,
    segment: Arc<Segment>,
    /// Where the device's buffers begin in it.
    area: u64,
}

/// The device's buffers, of a queue of the client's own: how many, bytes of each.
pub const BUFFERS: (u32, u32) = (20, 2176);

/// Changes an answer on its way.
pub type Tamper = Box<dyn FnMut(&Request, &mut Reply, &mut Vec<OwnedFd>) + Send>;

pub struct State {
    pub workers: u16,
    pub queues: Vec<Queue>,
    pub names: Vec<String>,
    pub tamper: Option<Tamper>,
    /// Whether a queue of the client's own comes with buffers.
    pub lends: bool,
    connections: Vec<OwnedFd>,
}

/// It stops when dropped.
pub struct Stub {
    folder: tempfile::TempDir,
    pub state: Arc<Mutex<State>>,
    listener: Option<Arc<OwnedFd>>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Stub {
    pub fn new(workers: u16) -> Self {
        let state = State {
            workers,
            queues: Vec::new(),
            names: Vec::new(),
            tamper: None,
            lends: true,
            connections: Vec::new(),
        };
        let mut stub = Self {
            folder: tempfile::tempdir().unwrap(),
            state: Arc::new(Mutex::new(state)),
            listener: None,
            threads: Arc::default(),
        };
        stub.start();
        stub
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("attach.sock")
    }

    pub fn client(&self) -> Client {
        Client::attach(Some(&self.path()), "test").unwrap()
    }

    pub fn start(&mut self) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let listener = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(self.path()).unwrap()).unwrap();
        listen(&listener, 8).unwrap();
        let listener = Arc::new(listener);
        self.listener = Some(Arc::clone(&listener));
        let (state, threads) = (Arc::clone(&self.state), Arc::clone(&self.threads));
        let inner = Arc::clone(&self.threads);
        let accepting = std::thread::spawn(move || {
            while let Ok(socket) = accept_with(&*listener, SocketFlags::CLOEXEC) {
                state.lock().unwrap().connections.push(socket.try_clone().unwrap());
                let state = Arc::clone(&state);
                let serving = std::thread::spawn(move || serve(&Channel::of(socket), &state));
                inner.lock().unwrap().push(serving);
            }
        });
        threads.lock().unwrap().push(accepting);
    }

    /// As a daemon that is killed: every connection ends.
    pub fn stop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        let _ = std::fs::remove_file(self.path());
        shutdown(&*listener, Shutdown::Both).unwrap();
        loop {
            // What it serves was noted before it began.
            let thread = self.threads.lock().unwrap().pop();
            for socket in self.state.lock().unwrap().connections.drain(..) {
                let _ = shutdown(&socket, Shutdown::Both);
            }
            let Some(thread) = thread else { break };
            thread.join().unwrap();
        }
    }

    /// What the daemon does with the newest queues.
    pub fn with<T>(&self, work: impl FnOnce(&mut Queue) -> T) -> T {
        work(self.state.lock().unwrap().queues.last_mut().unwrap())
    }

    /// A packet to a channel, and the doorbell.
    pub fn inject(&self, channel: usize, worker: usize, bytes: &[u8], meta: Meta) {
        self.with(|queue| {
            let ring = &mut queue.rings[channel][worker].to_client;
            ring.push(bytes, meta).unwrap();
            queue.channel_bells[channel].ring(ring.consumer_sleeps());
        });
    }

    fn at(&self, reference: Reference) -> (File, u64) {
        self.with(|queue| {
            let file = queue.segment.as_fd().try_clone_to_owned().unwrap();
            let at = reference.place * BUFFERS.1 + reference.offset;
            (file.into(), queue.area + u64::from(at))
        })
    }

    /// A packet in one of the device's buffers, and the doorbell.
    pub fn lend(&self, place: u32, bytes: &[u8], port: u8) {
        let reference = Reference { place, offset: 128, length: bytes.len() as u32 };
        let (file, at) = self.at(reference);
        file.write_all_at(bytes, at).unwrap();
        self.inject(0, 0, &reference.encode(), Meta { port, flags: flag::REFERENCE });
    }

    /// What lies where a reference says.
    pub fn see(&self, reference: Reference) -> Vec<u8> {
        let mut bytes = vec![0; reference.length as usize];
        let (file, at) = self.at(reference);
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    /// The doorbell alone.
    pub fn ring(&self, channel: usize, worker: usize) {
        self.with(|queue| {
            let ring = &queue.rings[channel][worker].to_client;
            queue.channel_bells[channel].ring(ring.consumer_sleeps());
        });
    }

    /// Whether the client rings a worker within so many seconds. Takes it back.
    pub fn is_rung(&self, worker: usize, seconds: i64) -> bool {
        self.with(|queue| {
            let bell = &queue.worker_bells[worker];
            let longest = Timespec { tv_sec: seconds, tv_nsec: 0 };
            let rung = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&longest)).unwrap() > 0;
            bell.clear();
            rung
        })
    }

    /// The next packet from a channel to a worker.
    pub fn take(&self, channel: usize, worker: usize) -> Option<(Vec<u8>, Meta)> {
        self.with(|queue| {
            let ring = &mut queue.rings[channel][worker].from_client;
            let taken = ring.next()?;
            let mut bytes = vec![0; taken.length()];
            ring.copy(&taken, &mut bytes);
            let meta = taken.meta();
            ring.release(taken);
            Some((bytes, meta))
        })
    }

    /// Waits for it, longer than any machine is slow.
    pub fn next(&self, channel: usize, worker: usize) -> (Vec<u8>, Meta) {
        let start = Instant::now();
        loop {
            if let Some(taken) = self.take(channel, worker) {
                return taken;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "nothing came");
            std::thread::yield_now();
        }
    }

    pub fn on_answer(
        &self,
        tamper: impl FnMut(&Request, &mut Reply, &mut Vec<OwnedFd>) + Send + 'static,
    ) {
        self.state.lock().unwrap().tamper = Some(Box::new(tamper));
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(socket: &Channel, state: &Mutex<State>) {
    while let Ok(received) = socket.receive::<Request>() {
        let mut state = state.lock().unwrap();
        let (mut reply, mut files) = answer(&received.message, &mut state);
        if let Some(tamper) = &mut state.tamper {
            tamper(&received.message, &mut reply, &mut files);
        }
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        if socket.send(&reply, &files).is_err() {
            break;
        }
    }
}

pub fn ports() -> Vec<Port> {
    let port = |name: &str, number| Port {
        name: name.into(),
        number,
        mac: [2, 0, 0, 0, 0, number],
        mtu: 1500,
    };
    vec![port("left", 0), port("right", 1)]
}

fn answer(request: &Request, state: &mut State) -> (Reply, Vec<OwnedFd>) {
    match request {
        Request::Hello(hello) if hello.protocol != PROTOCOL => {
            let text = format!("version {VERSION} with protocol {PROTOCOL}");
            (Reply::Refused(Refusal::new(RefusalKind::Version, text)), Vec::new())
        }
        Request::Hello(hello) => {
            state.names.push(hello.name.clone());
            let welcome =
                Welcome { protocol: PROTOCOL, daemon: VERSION.into(), client: 7, ports: ports() };
            (Reply::Welcome(welcome), Vec::new())
        }
        Request::Ports => (Reply::Ports(ports()), Vec::new()),
        Request::Open(open) => opened(open, state),
        Request::Start(number) => (Reply::Started(*number), Vec::new()),
        Request::Close(number) => {
            for queue in state.queues.iter_mut().filter(|queue| queue.number == *number) {
                queue.closed = true;
            }
            (Reply::Closed(*number), Vec::new())
        }
    }
}

fn opened(open: &Open, state: &mut State) -> (Reply, Vec<OwnedFd>) {
    if let Some(name) = open.ports.iter().find(|name| *name != "left" && *name != "right") {
        let text = format!("there is no port '{name}'; there are left and right");
        return (Reply::Refused(Refusal::new(RefusalKind::Unknown, text)), Vec::new());
    }
    let Ok(layout) = Layout::new(open.slots, open.capacity) else {
        let text = "slots and capacity are out of range";
        return (Reply::Refused(Refusal::new(RefusalKind::Invalid, text)), Vec::new());
    };
    let step = layout.bytes().next_multiple_of(64);
    let count = usize::from(open.channels) * usize::from(state.workers) * 2;
    let lends = state.lends && open.queue.is_some();
    let (buffers, size) = if lends { BUFFERS } else { (0, 0) };
    let (rings_end, area) = (step * count, (buffers * size) as usize);
    let segment = Arc::new(Segment::create("stub", rings_end + area).unwrap());
    let mut next = 0;
    let mut place = || {
        let offset = next;
        next += step;
        let place = RingPlace { offset: offset as u64, slots: open.slots, capacity: open.capacity };
        (place, segment.region(offset, layout.bytes()).unwrap())
    };
    let (mut places, mut rings) = (Vec::new(), Vec::new());
    for _ in 0..open.channels {
        let (mut pairs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..state.workers {
            let ((receive, to), (transmit, from)) = (place(), place());
            pairs.push([receive, transmit]);
            ours.push(Rings {
                to_client: Producer::new(to, layout).unwrap(),
                from_client: Consumer::new(from, layout).unwrap(),
            });
        }
        places.push(ChannelPlace { rings: pairs });
        rings.push(ours);
    }
    let bells =
        |count: u16| -> (Vec<_>, Vec<_>) { (0..count).map(|_| Doorbell::pair().unwrap()).unzip() };
    let (channel_bells, theirs) = bells(open.channels);
    let (worker_bells, workers) = bells(state.workers);
    let mut files = vec![segment.as_fd().try_clone_to_owned().unwrap()];
    files.extend(theirs.into_iter().chain(workers));
    let number = state.queues.len() as u32 + 1;
    let asked = open.clone();
    let queue = Queue {
        number,
        asked,
        closed: false,
        rings,
        channel_bells,
        worker_bells,
        segment,
        area: rings_end as u64,
    };
    state.queues.push(queue);
    let place = BufferPlace { offset: rings_end as u64, count: buffers, size };
    let buffers = lends.then_some(place);
    (
        Reply::Opened(Opened { queues: number, workers: state.workers, channels: places, buffers }),
        files,
    )
}

/// A path at which nobody listens.
pub fn nowhere(folder: &Path) -> PathBuf {
    folder.join("nobody.sock")
}
