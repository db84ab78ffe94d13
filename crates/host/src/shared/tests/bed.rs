//! A process, its stack worker, and a peer.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use shm::connections::{self, ConnectionsReader, ConnectionsWriter};
use shm::{Segment, SleepWord};
use transport::{Config, Packet, PacketList};

use super::super::*;
use crate::{Domain, Errno, Id, Incoming, Kind, Mask, Outgoing, Parcel, Sessions};

pub(super) const DELAY: u64 = 1_000_000;
pub(super) const SESSIONS: u32 = 64;

/// A stack worker with one process, and a peer.
pub(super) struct Host {
    pub(super) now: u64,
    served: Served,
    pub(super) out: PacketList,
    pub(super) peer: Sessions,
    peer_out: PacketList,
}

fn config(number: u64) -> Config {
    let seed = [number, 7];
    Config { seed, connections_v4: 64, connections_v6: 64, time_waits: 64, ..Config::default() }
}

impl Host {
    /// What the worker's thread does. Gives whether there was something.
    pub(super) fn work(&mut self) -> bool {
        let done = self.served.serve(self.now);
        self.served.turn(self.now, &mut self.out);
        done > 0
    }

    /// The worker's thread goes round once, and packets reach their other end. Gives whether there was something.
    pub(super) fn step(&mut self) -> bool {
        let worked = self.work();
        self.peer.turn(self.now, &mut self.peer_out);
        let out = std::mem::take(&mut self.out.packets);
        let back = std::mem::take(&mut self.peer_out.packets);
        if out.is_empty() && back.is_empty() && !worked {
            return false;
        }
        self.now += DELAY;
        for packet in &out {
            self.peer.input(self.now, &[Packet::new(packet)], &mut self.peer_out);
        }
        self.take_in(&back);
        true
    }

    /// What the peer sends is there before the worker's thread looks for commands.
    pub(super) fn receive(&mut self) {
        self.peer.turn(self.now, &mut self.peer_out);
        self.now += DELAY;
        let back = std::mem::take(&mut self.peer_out.packets);
        assert!(!back.is_empty());
        self.take_in(&back);
    }

    fn take_in(&mut self, packets: &[Vec<u8>]) {
        for packet in packets {
            let sessions = self.served.sessions();
            sessions.input(self.now, &[Packet::new(packet)], &mut self.out);
        }
    }

    /// Until nothing moves.
    fn settle(&mut self) {
        let steps = (0..10_000).take_while(|_| self.step()).count();
        assert!(steps < 10_000, "it does not come to rest");
    }
}

/// The worker works while the process waits for it.
#[derive(Debug)]
struct Loop(Arc<Mutex<Host>>);

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Host")
    }
}

impl Wire for Loop {
    fn ring(&self, _: SleepWord<'_>) {}

    fn wait(&self) -> bool {
        self.0.lock().unwrap().work();
        true
    }

    fn pause(&self) -> bool {
        self.wait()
    }
}

pub(super) struct Bed {
    pub(super) host: Arc<Mutex<Host>>,
    pub(super) remote: Remote,
    pub(super) segment: Arc<Segment>,
    pub(super) plan: Plan,
}

pub(super) const LISTENER: Id = Id(3);
pub(super) const SERVER: Id = Id(4);
pub(super) const CLIENT: Id = Id(5);

pub(super) fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

impl Bed {
    pub(super) fn new(chunks: u32) -> Self {
        let plan = Plan::new(SESSIONS, chunks).unwrap();
        let segment = Arc::new(Segment::create("test", plan.bytes()).unwrap());
        let served = Served::new(plan.worker(&segment).unwrap(), Sessions::new(config(1)).unwrap());
        let mut peer = Sessions::new(config(2)).unwrap();
        peer.add_ports(10_240, 256);
        let (out, peer_out) = (PacketList::default(), PacketList::default());
        let host = Host { now: 1_000_000_000, served, out, peer, peer_out };
        let host = Arc::new(Mutex::new(host));
        let wire = Box::new(Loop(Arc::clone(&host)));
        let remote = Remote::new(plan.process(&segment).unwrap(), wire);
        Self { host, remote, segment, plan }
    }

    /// A connection of the peer's, accepted by the process.
    pub(super) fn connected(chunks: u32) -> Self {
        let mut bed = Self::new(chunks);
        bed.remote.open(LISTENER, Domain::V4, Kind::Stream).unwrap();
        bed.remote.bind(LISTENER, at(1, 80)).unwrap();
        bed.remote.listen(LISTENER, 8).unwrap();
        assert_eq!(bed.remote.accept(LISTENER, SERVER), Err(Errno::AGAIN));
        bed.peer(|peer, now| {
            peer.open(CLIENT, Domain::V4, Kind::Stream).unwrap();
            let begun = peer.connect(CLIENT, now, at(2, 0).ip(), at(1, 80));
            assert_eq!(begun, Err(Errno::INPROGRESS));
        });
        bed.settle();
        assert!(bed.told(LISTENER).has(Mask::IN) && bed.remote.mask(LISTENER).has(Mask::IN));
        let (local, remote) = bed.remote.accept(LISTENER, SERVER).unwrap();
        assert_eq!((local, remote.ip()), (at(1, 80), at(2, 0).ip()));
        bed
    }

    pub(super) fn settle(&mut self) {
        self.remote.ring();
        self.host.lock().unwrap().settle();
    }

    pub(super) fn peer<R>(&mut self, act: impl FnOnce(&mut Sessions, u64) -> R) -> R {
        let mut host = self.host.lock().unwrap();
        let now = host.now;
        act(&mut host.peer, now)
    }

    /// The peer listens at port 80.
    pub(super) fn peer_listens(&mut self) {
        self.peer(|peer, _| {
            peer.open(LISTENER, Domain::V4, Kind::Stream).unwrap();
            peer.bind(LISTENER, at(2, 80)).unwrap();
            peer.listen(LISTENER, 8).unwrap();
        });
    }

    /// What the process is told of a session.
    pub(super) fn told(&mut self, id: Id) -> Mask {
        self.remote.hear();
        let mut woken = Mask::NONE;
        while let Some(ready) = self.remote.next_ready() {
            woken |= if ready.id == id { ready.woken } else { Mask::NONE };
        }
        woken
    }

    pub(super) fn read(&mut self, room: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; room];
        let mut targets = [IoSliceMut::new(&mut bytes)];
        let got = self.remote.recv(SERVER, &mut targets, Incoming::default())?;
        bytes.truncate(got.bytes);
        Ok(bytes)
    }

    pub(super) fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        self.remote.send(SERVER, &[IoSlice::new(data)], Outgoing::default())
    }

    pub(super) fn peer_reads(&mut self, room: usize) -> Result<Vec<u8>, Errno> {
        self.peer(|peer, _| {
            let mut bytes = vec![0; room];
            let mut targets = [IoSliceMut::new(&mut bytes)];
            let got = peer.recv(CLIENT, &mut targets, Incoming::default())?;
            bytes.truncate(got.bytes);
            Ok(bytes)
        })
    }

    /// What the peer gets until the end of what it is sent.
    pub(super) fn peer_reads_to_its_end(&mut self) -> Vec<u8> {
        let mut got = Vec::new();
        for _ in 0..10_000 {
            self.settle();
            match self.peer_reads(50_000) {
                Ok(some) if some.is_empty() => break,
                Ok(some) => got.extend(some),
                Err(error) => assert_eq!(error, Errno::AGAIN),
            }
        }
        got
    }

    pub(super) fn peer_writes(&mut self, data: &[u8]) -> Result<usize, Errno> {
        self.peer(|peer, _| peer.send(CLIENT, &[IoSlice::new(data)], Outgoing::default()))
    }

    /// A table in which the worker shows what there is, with places for four connections.
    pub(super) fn show(&mut self) -> ConnectionsReader {
        let length = connections::bytes(4).unwrap();
        let segment = Arc::new(Segment::create("shown", length).unwrap());
        let region = segment.region(0, length).unwrap();
        let writer = ConnectionsWriter::new(region.clone(), 4).unwrap();
        self.host.lock().unwrap().served.sessions().show_in(writer);
        ConnectionsReader::new(region, 4).unwrap()
    }

    /// The worker's look, when it is due again.
    pub(super) fn look(&mut self) {
        let mut host = self.host.lock().unwrap();
        host.now += 100_000_000;
        let now = host.now;
        host.served.look(now);
    }

    /// The process is gone: all that its worker gives away.
    pub(super) fn leave(&mut self) -> Orphans {
        let mut host = self.host.lock().unwrap();
        let (now, mut all) = (host.now, Orphans::default());
        while let Some(some) = host.served.leave(now) {
            all.closed.extend(some.closed);
            all.waits.extend(some.waits);
            host.served.serve(now);
        }
        all
    }

    /// A connection that was given away goes on, in the same stack again.
    pub(super) fn come_back(&mut self, parcel: &Parcel) {
        let mut host = self.host.lock().unwrap();
        let now = host.now;
        host.served.sessions().import_unheld(now, 0, &parcel.bytes).unwrap();
    }

    /// Whether a command waits that is to be done.
    pub(super) fn has_commands(&self) -> bool {
        self.host.lock().unwrap().served.has_commands()
    }

    pub(super) fn held_beside(&self) -> usize {
        self.host.lock().unwrap().served.held_beside()
    }

    /// Sessions in the lists of those that have chunks: the process's and the worker's.
    pub(super) fn listed(&self) -> (usize, usize) {
        (self.remote.holding.len(), self.host.lock().unwrap().served.holding.len())
    }

    pub(super) fn is_broken(&self) -> bool {
        self.host.lock().unwrap().served.is_broken()
    }
}
