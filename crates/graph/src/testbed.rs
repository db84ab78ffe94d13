//! What the tests share: DPDK without hugepages or devices, packets, exits, nodes made of closures.

use std::sync::{Arc, OnceLock};

use dpdk::{Buffer, BufferPool, Eal, EalOptions, Memory};

use crate::{
    Context, Counters, Doorbell, Exits, GraphBuilder, HandoffReceiver, Node, Output, PortId, Punt,
    Slot, TransmitPath, Vector, ring,
};

/// A pool for all tests of the process. It is large enough for all of them at once.
pub(crate) fn pool() -> BufferPool {
    static POOL: OnceLock<BufferPool> = OnceLock::new();
    *POOL.get_or_init(|| {
        let options = EalOptions { megabytes: 128, memory: Memory::Plain, ..EalOptions::default() };
        Eal::init(&options).unwrap();
        BufferPool::new("tests", 16_383, 2048, 0, None).unwrap()
    })
}

/// A pool of one test's own, so that it can count what came back.
pub(crate) fn own_pool(name: &str, count: u32) -> BufferPool {
    pool();
    BufferPool::new(name, count, 2048, 0, None).unwrap()
}

pub(crate) fn packet(pool: &BufferPool, bytes: &[u8]) -> Buffer {
    let mut buffer = pool.alloc().unwrap();
    buffer.append(bytes.len()).unwrap().copy_from_slice(bytes);
    buffer
}

/// A vector of one-byte packets, numbered.
pub(crate) fn numbered(pool: &BufferPool, count: u8) -> Box<Vector> {
    let mut vector = Vector::new();
    (0..count).for_each(|n| assert!(vector.push(packet(pool, &[n])).is_ok()));
    vector
}

/// Exits with `ports` ports that lead into rings.
pub(crate) struct Outside {
    pub(crate) exits: Exits,
    pub(crate) counters: Arc<Counters>,
    pub(crate) punts: HandoffReceiver<Punt>,
    pub(crate) ports: Vec<HandoffReceiver<Buffer>>,
}

impl Outside {
    /// `drain`: cycles. `room`: packets that each ring holds.
    pub(crate) fn new(ports: usize, drain: u64, room: usize) -> Self {
        pool();
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let (to_control, punts) = ring(room, Arc::clone(&doorbell));
        let counters = Arc::new(Counters::new(8, ports));
        let mut exits = Exits::new(Output::new(ports, drain), Arc::clone(&counters), to_control);
        let ports = (0..ports)
            .map(|port| {
                let (sender, receiver) = ring(room, Arc::clone(&doorbell));
                exits.set_path(PortId::new(port as u16), Some(TransmitPath::Worker(sender)));
                receiver
            })
            .collect();
        Self { exits, counters, punts, ports }
    }

    pub(crate) fn drops(&self, reason: crate::Reason) -> u64 {
        self.counters.drops[reason as usize].get()
    }

    /// The first bytes of the packets that left by a port.
    pub(crate) fn sent(&mut self, port: usize) -> Vec<u8> {
        std::iter::from_fn(|| self.ports[port].pop().ok()).map(|p| p.data()[0]).collect()
    }
}

crate::edges! {
    /// The edges of a [`Scripted`] node; it names where they lead.
    pub(crate) Out { First => "first", Second => "second" }
}

type Script = Box<dyn FnMut(&[Slot], &mut Context<'_, Out>) + Send>;

/// A node made of a closure.
pub(crate) struct Scripted {
    name: &'static str,
    targets: &'static [&'static str],
    script: Script,
}

impl Node for Scripted {
    type Next = Out;

    fn name(&self) -> &'static str {
        self.name
    }

    fn edges(&self) -> Vec<(Out, &'static str)> {
        [Out::First, Out::Second].into_iter().zip(self.targets.iter().copied()).collect()
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Out>) {
        (self.script)(slots, cx);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        format!("{} bytes", vector.buffer(slot).map_or(0, |buffer| buffer.data().len()))
    }
}

/// Adds nodes made of closures to a graph.
pub(crate) trait WithScript {
    /// A node that gets each slot by itself.
    fn each(
        self,
        name: &'static str,
        targets: &'static [&'static str],
        script: impl FnMut(Slot, &mut Context<'_, Out>) + Send + 'static,
    ) -> Self;
}

impl WithScript for GraphBuilder {
    fn each(
        self,
        name: &'static str,
        targets: &'static [&'static str],
        mut script: impl FnMut(Slot, &mut Context<'_, Out>) + Send + 'static,
    ) -> Self {
        let script: Script =
            Box::new(move |slots, cx| slots.iter().for_each(|slot| script(*slot, cx)));
        self.with(Scripted { name, targets, script })
    }
}

/// The first byte of a packet.
pub(crate) fn number(cx: &Context<'_, Out>, slot: Slot) -> u8 {
    cx.vector.buffer(slot).map_or(0, |buffer| buffer.data()[0])
}
