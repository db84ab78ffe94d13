//! The tester's ports, and the device between them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dpdk::{BufferPool, Eal, EalOptions, Memory, Port};
use measure::frame::Stream;
use wire::MacAddr;
use wire::build::Link;
use wire::vlan::VlanId;

use super::addresses::{FOUR, PORTS, SIX, TESTER_MACS, subnets};
use super::device::{Place, UnderTest};
use super::lane::Lane;
use super::millraced::Updates;
use super::neighbor::Station;
use super::scenario::{Device, Scenario};
use super::trial::{Load, Outcome, Tester, Traffic, Until};
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
/// How long a device is given to settle: one of somebody else's as long as RFC 2544 23 a) and b) have it.
const SETTLING: Duration = Duration::from_millis(300);
const SETTLING_EXTERNAL: Duration = Duration::from_secs(2);

/// The tester with its device.
pub(super) struct Bed {
    pub(super) tester: Tester,
    // Closed after the queues.
    ports: Ports,
    device: UnderTest,
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

impl Ports {
    /// Whether both links are up: a device that vanishes takes them along.
    fn are_up(&self) -> bool {
        self.0.iter().all(|port| port.health() == dpdk::Health::Up)
    }

    fn await_links(&self) -> Result<(), Failure> {
        let begin = Instant::now();
        while !self.are_up() {
            if begin.elapsed() > PATIENCE {
                return Err(Failure::UnderTest(
                    "the links to the device do not come up: is it running, and are its ports the right ones?".into(),
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
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
        let (mtu, vlan) = (scenario.frames.mtu(), vlan(scenario)?);
        let mut ports = Vec::new();
        let mut lanes = Vec::new();
        for (number, name) in device.ports.iter().enumerate() {
            let (port, rx, tx) = port::open(name, pool, mtu)?;
            ports.push(port);
            let subnets = [FOUR[number], SIX[number]];
            let station = Station { mac: TESTER_MACS[number], vlan, subnets };
            lanes.push(Lane { rx, tx, pool, station });
        }
        let Ok(mut lanes) = <[Lane; 2]>::try_from(lanes) else { return Err(Failure::NoQueue) };
        let ports = Ports(ports);
        ports.await_links()?;
        let macs = match device.macs {
            Some(macs) => macs,
            None => ask(&mut lanes, scenario)?,
        };
        let tester = Tester {
            lanes,
            traffic: traffic(scenario, macs)?,
            last: std::process::id() as u16,
            tagged: vlan.is_some(),
        };
        let mut bed = Self { tester, ports, device };
        bed.warm_up(scenario)?;
        Ok(bed)
    }

    /// Runs a trial.
    pub(super) fn run(&mut self, load: &Load, stop: &AtomicBool) -> Result<Outcome, Failure> {
        let Self { tester, ports, .. } = self;
        tester.run(load, Until { stop, is_whole: &|| ports.are_up() })
    }

    /// Sends a few frames each way until some come back: a device needs its time until it has its links, routes and neighbours
    /// (RFC 2544 23).
    fn warm_up(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        let Some(sizes) = scenario.sizes().first().copied() else { return Ok(()) };
        let settle = Duration::from_millis(100);
        // Frames of both versions are among so many.
        let load = Load { sizes, rate: 1e7, frames: 20, settle, variation: false };
        let (begin, never) = (Instant::now(), AtomicBool::new(false));
        while self.run(&load, &never)?.counts.iter().any(|way| way.delivered == 0) {
            if begin.elapsed() > PATIENCE {
                let why =
                    "it forwards nothing: are its routes and MAC addresses those of the scenario?";
                return Err(Failure::UnderTest(why.into()));
            }
        }
        // What it says of itself when its links come up.
        let is_external = matches!(scenario.device, Device::External { .. });
        std::thread::sleep(if is_external { SETTLING_EXTERNAL } else { SETTLING });
        Ok(())
    }

    /// The changes that are made to the device's routes meanwhile.
    pub(super) fn updates(&self) -> Option<&Updates> {
        self.device.updates.as_ref()
    }
}

/// The MAC addresses of a device's ports, as it tells them itself.
fn ask(lanes: &mut [Lane; 2], scenario: &Scenario) -> Result<[MacAddr; 2], Failure> {
    let ipv6 = scenario.frames.tenths() == 10;
    let mut macs = [MacAddr::ZERO; 2];
    for ((lane, mac), subnet) in lanes.iter_mut().zip(&mut macs).zip(subnets(ipv6)) {
        let (begin, address) = (Instant::now(), subnet.device());
        *mac = loop {
            match lane.ask(address) {
                Some(mac) => break mac,
                None if begin.elapsed() > PATIENCE => {
                    return Err(Failure::UnderTest(format!(
                        "nobody says who has {address}: give the device's port this address, or name the ports' MAC addresses \
                         as device.macs"
                    )));
                }
                None => {}
            }
        };
    }
    Ok(macs)
}

fn vlan(scenario: &Scenario) -> Result<Option<VlanId>, Failure> {
    let vlan = scenario.frames.vlan.map(VlanId::new).transpose();
    vlan.map_err(|_| Failure::UnderTest("the VLAN id is out of bounds".into()))
}

fn traffic(scenario: &Scenario, macs: [MacAddr; 2]) -> Result<Traffic, Failure> {
    let vlan = vlan(scenario)?;
    let stream = |way: usize, ipv6: bool| {
        let [source, destination] = scenario.addresses(ipv6)[way];
        Stream {
            link: Link { destination: macs[way], source: TESTER_MACS[way], vlan },
            source,
            destination,
            ports: PORTS,
            transport: scenario.frames.transport(),
            vary: scenario.flows.vary(),
        }
    };
    Ok(Traffic {
        streams: [0, 1].map(|way| [false, true].map(|ipv6| stream(way, ipv6))),
        tenths: scenario.frames.tenths(),
        both_ways: scenario.trials.both_ways,
        flows: scenario.flows.count,
        order: scenario.flows.order(),
        least: scenario.frames.least(),
        slack: scenario.trials.slack(),
    })
}

/// Packet buffers for two ports.
pub(super) fn pool(name: &str) -> Result<BufferPool, Failure> {
    Ok(BufferPool::new(name, BUFFERS, DATA_ROOM, CACHE, None)?)
}
