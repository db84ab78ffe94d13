//! Two `dpdk-testpmd` that share memory: the yardsticks.

use std::path::Path;

use super::cases::{Case, Way};
use super::rounds::{Contestant, Turn};
use crate::failure::Failure;
use crate::results::Samples;
use crate::testpmd::{Setup, Testpmd};
use crate::turns::Sampling;

/// What they share memory by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Memif,
    /// vhost-user at the end that takes, virtio-user at the end that sends.
    Vhost,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Memif, Self::Vhost];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memif => "memif",
            Self::Vhost => "vhost-user",
        }
    }

    /// The devices at both ends: of who listens, of who connects.
    fn devices(self, socket: &Path, slots: u32) -> [String; 2] {
        let socket = socket.display();
        match self {
            Self::Memif => ["server", "client"].map(|role| {
                format!("net_memif0,role={role},socket={socket},socket-abstract=no,rsize=10")
            }),
            Self::Vhost => [
                format!("net_vhost0,iface={socket},queues=1"),
                format!("net_virtio_user0,path={socket},queues=1,queue_size={slots}"),
            ],
        }
    }
}

/// What the frames need.
struct Room {
    /// Buffers, and bytes of each: four programs must find room in 64 hugepages of 2 MB.
    buffers: u32,
    buffer_size: u32,
    /// Slots of virtio's rings. Memif has 1,024 of 2,048 bytes, of which a packet takes several; with larger
    /// ones it was slower.
    slots: u32,
}

const SMALL: Room = Room { buffers: 4096, buffer_size: 2048 + 128, slots: 1024 };
const JUMBO: Room = Room { buffers: 1280, buffer_size: 9216 + 512, slots: 256 };

/// Two of them; the first sends, the second takes or sends back.
pub(super) struct Pair {
    sender: Testpmd,
    taker: Testpmd,
}

impl Pair {
    /// Starts both, and waits until packets flow.
    pub(super) fn start(
        kind: Kind,
        folder: &Path,
        cores: [usize; 2],
        hugepages: bool,
        jumbo: bool,
    ) -> Result<Self, Failure> {
        let socket = folder.join(format!("{}-{jumbo}", kind.name()));
        let Room { buffers, buffer_size, slots } = if jumbo { JUMBO } else { SMALL };
        let devices = kind.devices(&socket, slots);
        let start = |name, device: &str, core| {
            Testpmd::spawn(&Setup {
                name,
                devices: &[device],
                templates: None,
                cores: [core, core],
                hugepages,
                burst: 32,
                buffers,
                buffer_size,
            })
        };
        let [here, there] = cores;
        let [listens, connects] = &devices;
        let taker = start("taker", listens, there)?;
        let sender = start("sender", connects, here)?;
        let mut pair = Self { sender, taker };
        pair.taker.start("rxonly")?;
        pair.sender.start("txonly")?;
        pair.taker.flows(Testpmd::receive_rate)?;
        pair.sender.stop()?;
        pair.taker.stop()?;
        Ok(pair)
    }

    fn samples(testpmd: &mut Testpmd, turn: Turn) -> Result<Samples, Failure> {
        let Turn { samples, sample } = turn;
        Sampling { warm_up: sample, sample, samples }.take(|| testpmd.receive_rate())
    }

    /// Throws away what lies in the rings.
    fn empty(&mut self) -> Result<(), Failure> {
        for testpmd in [&mut self.taker, &mut self.sender] {
            testpmd.start("rxonly")?;
            testpmd.stop()?;
        }
        Ok(())
    }
}

impl Contestant for Pair {
    fn turn(&mut self, case: Case, turn: Turn) -> Result<f64, Failure> {
        let (taker, sender) = (&mut self.taker, &mut self.sender);
        taker.set(case.burst, case.bytes())?;
        sender.set(case.burst, case.bytes())?;
        let rates = match case.way {
            Way::Copied | Way::InPlace => {
                taker.start("rxonly")?;
                sender.start("txonly")?;
                Self::samples(taker, turn)
            }
            Way::Around => {
                taker.start("io")?;
                sender.start_with_burst("io")?;
                Self::samples(sender, turn)
            }
        }?;
        sender.stop()?;
        taker.stop()?;
        self.empty()?;
        Ok(rates.median())
    }
}
