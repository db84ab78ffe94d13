//! The tester's ports, and the device between them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dpdk::{BufferPool, Eal, EalOptions, Memory, Port};
use measure::frame::Stream;
use wire::build::Link;
use wire::vlan::VlanId;

use super::addresses::{PORTS, TESTER_MACS};
use super::device::{Place, UnderTest};
use super::lane::Lane;
use super::scenario::{Device, Scenario};
use super::trial::{Load, Tester, Traffic};
use crate::failure::Failure;
use crate::port;

/// Packet buffers: more than both ports' rings hold. Frames of any size fit.
const BUFFERS: u32 = 16_384;
const DATA_ROOM: u16 = 9_600;
const CACHE: u32 = 256;
/// DPDK's memory: MB.
const MEGABYTES: u32 = 256;
/// How long links may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The tester with its device.
pub(super) struct Bed {
    pub(super) tester: Tester,
    // Closed after the queues.
    ports: Ports,
    _device: UnderTest,
}

/// Open ports.
struct Ports(Vec<Port>);

impl Drop for Ports {
    fn drop(&mut self) {
        // If they are joined to each other, a thread of DPDK's disconnects the one when the other closes; both must not be closed
        // at once. The one that was opened last is the one that has connected.
        while let Some(port) = self.0.pop() {
            drop(port);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Starts DPDK for the tester.
pub(super) fn environment(scenarios: &[Scenario], memory: Memory) -> Result<&'static Eal, Failure> {
    let external = scenarios.iter().filter_map(|scenario| match &scenario.device {
        Device::External { ports, .. } => Some(ports),
        _ => None,
    });
    let devices = external.flatten().map(|port| port.parse()).collect::<Result<_, _>>()?;
    let options = EalOptions { megabytes: MEGABYTES, memory, devices, ..EalOptions::default() };
    Ok(Eal::init(&options)?)
}

impl Bed {
    /// Starts the device, opens the ports, waits for their links.
    pub(super) fn new(
        scenario: &Scenario,
        place: &Place,
        pool: BufferPool,
    ) -> Result<Self, Failure> {
        let device = UnderTest::start(scenario, place)?;
        let mut ports = Vec::new();
        let mut lanes = Vec::new();
        for name in &device.ports {
            let (port, rx, tx) = port::open(name, pool)?;
            ports.push(port);
            lanes.push(Lane { rx, tx, pool });
        }
        let Ok(lanes) = <[Lane; 2]>::try_from(lanes) else { return Err(Failure::NoQueue) };
        let tester = Tester {
            lanes,
            traffic: traffic(scenario, device.macs)?,
            last: std::process::id() as u16,
            tagged: scenario.frames.vlan.is_some(),
        };
        let mut bed = Self { tester, ports: Ports(ports), _device: device };
        bed.await_links()?;
        bed.warm_up(scenario)?;
        Ok(bed)
    }

    fn await_links(&self) -> Result<(), Failure> {
        let begin = Instant::now();
        while !self.ports.0.iter().all(|port| port.health() == dpdk::Health::Up) {
            if begin.elapsed() > PATIENCE {
                return Err(Failure::UnderTest(
                    "the links to the device do not come up: is it running, and are its ports the right ones?".into(),
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Sends a few frames each way until some come back: a device needs its time until it has its links, routes and neighbours
    /// (RFC 2544 23).
    fn warm_up(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        let Some(sizes) = scenario.sizes().first().copied() else { return Ok(()) };
        let settle = Duration::from_millis(100);
        let load = Load { sizes, rate: 1e6, frames: 8, settle };
        let (begin, never) = (Instant::now(), AtomicBool::new(false));
        while self.tester.run(&load, &never)?.counts.iter().any(|way| way.delivered == 0) {
            if begin.elapsed() > PATIENCE {
                let why =
                    "it forwards nothing: are its routes and MAC addresses those of the scenario?";
                return Err(Failure::UnderTest(why.into()));
            }
        }
        // What it says of itself when its links come up.
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    }

    /// Whether both links are up: a device that vanishes takes them along.
    pub(super) fn is_whole(&self) -> bool {
        self.ports.0.iter().all(|port| port.health() == dpdk::Health::Up)
    }
}

fn traffic(scenario: &Scenario, macs: [wire::MacAddr; 2]) -> Result<Traffic, Failure> {
    let vlan = scenario.frames.vlan.map(VlanId::new).transpose();
    let vlan = vlan.map_err(|_| Failure::UnderTest("the VLAN id is out of bounds".into()))?;
    let ends = TESTER_MACS.into_iter().zip(macs);
    let mut streams = ends.zip(scenario.addresses()).map(|((source, destination), addresses)| {
        let [from, to] = addresses;
        Stream {
            link: Link { destination, source, vlan },
            source: from,
            destination: to,
            ports: PORTS,
            transport: scenario.frames.transport(),
            vary: scenario.flows.vary(),
        }
    });
    let (Some(left), Some(right)) = (streams.next(), streams.next()) else {
        return Err(Failure::NoQueue);
    };
    Ok(Traffic {
        streams: [left, right],
        both_ways: scenario.trials.both_ways,
        flows: scenario.flows.count,
        order: scenario.flows.order(),
        least: scenario.frames.layout().least(),
    })
}

/// Packet buffers for two ports.
pub(super) fn pool(name: &str) -> Result<BufferPool, Failure> {
    Ok(BufferPool::new(name, BUFFERS, DATA_ROOM, CACHE, None)?)
}
