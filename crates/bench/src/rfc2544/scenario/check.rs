//! Whether a scenario can be measured.

use super::device::{Device, Forwarding, Millraced, NEXT_HOPS};
use super::model::{Scenario, Test, USUAL_RINGS, VaryWord};
use super::wrong::Wrong;

/// Most flows each way: those of the carriers' white paper.
const MOST_FLOWS: u32 = 16_777_216;
/// Most routes changed in a second.
const MOST_UPDATES: u32 = 1_000_000;
/// Longest trial: s.
const LONGEST_TRIAL: f64 = 86_400.0;
/// Packet buffers that our daemon may have (docs/forward.md, `[memory]`).
const BUFFERS: [u32; 2] = [1_024, 4_194_304];
/// How long a device with known faults may keep a frame: us.
const LONGEST_DELAY: f64 = 10e6;

impl Scenario {
    /// Whether it can be measured.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let Self { frames, flows, trials, .. } = self;
        if let Some(share) = frames.ipv6_share {
            let tenths = share * 10.0;
            // A number that is none is no tenth.
            if !((tenths - tenths.round()).abs() < 1e-6 && (0.1..=0.9).contains(&share)) {
                return Err(Wrong::share(share));
            }
            if frames.ipv6 {
                return Err(Wrong::Versions);
            }
        }
        for (key, empty) in [
            ("trials.tests", trials.tests.is_empty()),
            ("trials.latency-loads", trials.latency_loads.is_empty()),
        ] {
            if empty {
                return Err(Wrong::Empty(key));
            }
        }
        let share = |key, value| (key, value, 0.001, 1.0);
        let bounds = [
            ("frames.vlan", f64::from(frames.vlan.unwrap_or(1)), 1.0, 4094.0),
            ("flows.count", f64::from(flows.count), 1.0, f64::from(MOST_FLOWS)),
            ("trials.rings", f64::from(trials.rings), 256.0, 16_384.0),
            ("trials.seconds", trials.seconds, 0.1, LONGEST_TRIAL),
            ("trials.settle", trials.settle, 0.0, 600.0),
            ("trials.line-rate", trials.line_rate.unwrap_or(1.0), 0.001, 1000.0),
            ("trials.loss", trials.loss, 0.0, 0.5),
            ("trials.resolution", trials.resolution, 0.0001, 0.5),
            ("trials.latency-seconds", trials.latency_seconds, 0.1, LONGEST_TRIAL),
            ("trials.repeats", f64::from(trials.repeats), 0.0, 100.0),
            ("trials.searches", f64::from(trials.searches), 1.0, 1000.0),
            ("trials.latency-trials", f64::from(trials.latency_trials), 1.0, 1000.0),
            ("trials.burst-searches", f64::from(trials.burst_searches), 1.0, 1000.0),
            ("trials.burst-seconds", trials.burst_seconds, 0.001, 60.0),
        ];
        let loads = trials.latency_loads.iter().map(|load| share("trials.latency-loads", *load));
        bounds.into_iter().chain(loads).try_for_each(within)?;
        if frames.sizes()?.is_empty() {
            return Err(Wrong::Empty("frames.sizes"));
        }
        if !trials.rings.is_power_of_two() {
            return Err(Wrong::rings(trials.rings));
        }
        if trials.rings != USUAL_RINGS && !self.device.shares_memory() {
            return Err(Wrong::NoRings);
        }
        if let Some(daemon) = self.device.millraced() {
            self.check_daemon(daemon)?;
        }
        if let Device::Impaired { faults, .. } = &self.device {
            within(("device.faults.delay", faults.delay as f64, 0.0, LONGEST_DELAY))?;
        }
        if let Device::External { ports, macs } = &self.device {
            for port in ports {
                port.parse::<dpdk::Device>().map_err(Wrong::Port)?;
            }
            let strange = |mac: &&String| mac.parse::<wire::MacAddr>().is_err();
            if let Some(mac) = macs.iter().flatten().find(strange) {
                return Err(Wrong::Mac(mac.clone()));
            }
        }
        if flows.vary == VaryWord::Ports && flows.count > 1 << 16 {
            return Err(Wrong::Ports { count: flows.count });
        }
        if trials.tests.contains(&Test::Latency) && !trials.tests.contains(&Test::Throughput) {
            return Err(Wrong::NoThroughput);
        }
        Ok(())
    }

    /// Whether the cores that it names are among those that may be used, and there is one `far` from the tester if it wants that.
    pub(super) fn check_cores(&self, usable: &[usize], far: Option<usize>) -> Result<(), Wrong> {
        if self.is_far() && far.is_none() {
            return Err(Wrong::OneNode);
        }
        let strange = self.device.cores().into_iter().find(|(_, core)| !usable.contains(core));
        strange.map_or(Ok(()), |(key, core)| {
            let usable: Vec<String> = usable.iter().map(ToString::to_string).collect();
            Err(Wrong::Core { key, core, usable: usable.join(", ") })
        })
    }

    /// Whether our daemon can be such a device.
    fn check_daemon(&self, daemon: &Millraced) -> Result<(), Wrong> {
        let Millraced { forwarding, routes, next_hops, acl, updates, .. } = daemon;
        if daemon.other_node && !daemon.cores.is_empty() {
            return Err(Wrong::NodeAndCores);
        }
        if daemon.guest_core.is_some() && *forwarding != Forwarding::Guest {
            return Err(Wrong::NoGuest);
        }
        if let Some(buffers) = daemon.buffers {
            let [least, most] = BUFFERS.map(f64::from);
            within(("device.buffers", f64::from(buffers), least, most))?;
        }
        for (key, value, least, most) in [
            ("device.next-hops", *next_hops, 1, NEXT_HOPS),
            ("device.acl", *acl, 0, MOST_FLOWS),
            ("device.updates", *updates, 0, MOST_UPDATES),
        ] {
            let routed = *forwarding == Forwarding::Routes;
            let [value, least, most] = [value, least, most].map(f64::from);
            within((key, value, least, most))?;
            if value > least && !routed {
                return Err(Wrong::NotRouted(key));
            }
        }
        let (routes, most) = (*routes, self.most_routes());
        if !routes.is_power_of_two() || routes > most {
            return Err(Wrong::routes(routes, most));
        }
        if *forwarding == Forwarding::FlowTable && self.frames.vlan.is_some() {
            return Err(Wrong::FlowVlan);
        }
        Ok(())
    }
}

/// Refuses a value that is not within its bounds: a key, its value, the least and the most.
fn within((key, value, least, most): (&'static str, f64, f64, f64)) -> Result<(), Wrong> {
    // A number that is none is out of all bounds.
    let is_within = (least..=most).contains(&value);
    if is_within { Ok(()) } else { Err(Wrong::bounds(key, value, [least, most])) }
}
