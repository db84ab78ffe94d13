//! A stack's process, beside the router.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, missing_docs, reason = "test bed")]

use std::net::SocketAddr;
use std::sync::Arc;

use graph::{
    ClientChannel, ClientPace, ClientWake, Doorbell, Errand, StackCounters, StackId, StackSetup,
};
use millrace_forward::nodes;
use millrace_forward::steering::{Bind, Claims, ListenerId, SteeringError};
use shm::claims::{self, ClaimsReader, ClaimsWriter};
use shm::session::TransportProtocol;
use shm::{Consumer, Layout, Meta, Producer, Segment};
use wire::build::Payload;
use wire::tcp::{Fields, Flags};

use super::router::{Router, ip};

const PLACES: u32 = 1024;
const KEY: [u64; 2] = [11, 12];

/// The stack's ends.
pub(crate) struct Stack {
    pub(crate) id: StackId,
    pub(crate) from_daemon: Consumer,
    pub(crate) to_daemon: Producer,
    pub(crate) claims: ClaimsWriter,
    pub(crate) counters: Arc<StackCounters>,
}

impl Router {
    pub(crate) fn add_stack(&mut self) -> Stack {
        self.add_stack_with(64)
    }

    pub(crate) fn add_stack_with(&mut self, slots: u32) -> Stack {
        let layout = Layout::new(slots, 2048).unwrap();
        let bytes = claims::bytes(PLACES).unwrap();
        let segment = Arc::new(Segment::create("stack", 2 * layout.bytes() + bytes).unwrap());
        let ring = |which: usize| segment.region(which * layout.bytes(), layout.bytes()).unwrap();
        let region = segment.region(2 * layout.bytes(), bytes).unwrap();
        let reader = ClaimsReader::new(region.clone(), PLACES).unwrap();
        let id =
            self.steering.add_stack(Claims { user: 1000, process: 1, reader, key: KEY }).unwrap();
        let bell = || Errand::new(Arc::new(Doorbell::new().unwrap()));
        let to = Producer::new(ring(0), layout).unwrap();
        let from = Consumer::new(ring(1), layout).unwrap();
        let counters = Arc::new(StackCounters::default());
        let setup = StackSetup {
            channel: ClientChannel::new(to, from, bell()),
            wake: ClientWake::new(shm::bell::inward().unwrap().0, 1, bell()),
            pace: ClientPace::default(),
            pool: self.pool,
            entry: self.graph.find(nodes::FROM_STACK).unwrap(),
            counters: Arc::clone(&counters),
        };
        assert!(self.stacks.add(id, setup).is_none());
        Stack {
            id,
            from_daemon: Consumer::new(ring(0), layout).unwrap(),
            to_daemon: Producer::new(ring(1), layout).unwrap(),
            claims: ClaimsWriter::new(region, PLACES).unwrap(),
            counters,
        }
    }

    pub(crate) fn listen(
        &mut self,
        stack: &Stack,
        protocol: TransportProtocol,
        address: &str,
        weight: u8,
    ) -> Result<ListenerId, SteeringError> {
        let address: SocketAddr = address.parse().unwrap();
        let (address, port) = (address.ip(), address.port());
        self.steering.listen(stack.id, Bind { protocol, address, port, only_v6: false }, weight)
    }

    pub(crate) fn end_stack(&mut self, stack: &Stack) {
        self.steering.remove_stack(stack.id).unwrap();
        assert!(self.stacks.remove(stack.id).is_some());
    }
}

impl Stack {
    /// What it was given.
    pub(crate) fn received(&mut self) -> Vec<(Vec<u8>, Meta)> {
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

    /// The one packet that it was given.
    pub(crate) fn one(&mut self) -> Vec<u8> {
        let mut all = self.received();
        assert_eq!(all.len(), 1, "{all:x?}");
        all.remove(0).0
    }

    pub(crate) fn send(&mut self, packet: &[u8]) {
        self.to_daemon.push(packet, Meta::default()).unwrap();
    }

    pub(crate) fn claim(&mut self, protocol: TransportProtocol, local: &str, remote: &str) {
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        assert!(self.claims.insert(claims::tag(KEY, protocol, local, remote)));
    }

    pub(crate) fn refused(&self) -> Vec<(&'static str, u64)> {
        let all = self.counters.refused().filter(|(_, count)| *count > 0);
        all.map(|(reason, count)| (reason.name(), count)).collect()
    }
}

pub(crate) fn segment(ports: (u16, u16), flags: Flags, data: &[u8]) -> Payload<'_> {
    let (source_port, destination_port) = ports;
    let (sequence, acknowledgment) = (1000, 2000);
    let window = 512;
    let fields = Fields { source_port, destination_port, sequence, acknowledgment, flags, window };
    Payload::Tcp { fields, options: &[], data }
}

/// An IP packet between two addresses.
pub(crate) fn packet(source: &str, destination: &str, payload: &Payload<'_>) -> Vec<u8> {
    let frame = super::frames::from(0, destination).source(source).payload(payload);
    let _ = ip(source);
    frame[14..].to_vec()
}
