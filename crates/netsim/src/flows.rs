//! Throughput of flows that share a path, for tests of fairness and for plots.

use std::net::SocketAddr;

use transport::{Config, Options};

use crate::link::LinkOptions;
use crate::network::{Network, Side};
use crate::talk::{Plan, Role, Talk};
use crate::talks::Talks;

/// A bulk flow from left to right.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Options of both ends.
    pub options: Options,
    /// When it begins: ns from the start.
    pub begins: u64,
    /// Its own way to the path, added in both directions at its sender: ns.
    pub delay: u64,
}

/// What a flow had in one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The end of the interval: ns from the start.
    pub at: u64,
    /// Bytes per second that arrived.
    pub rate: f64,
    /// Congestion window at the end: bytes.
    pub window: u32,
    /// Bytes on the way at the end.
    pub in_flight: u32,
    /// Smoothed round-trip time at the end: us.
    pub srtt: u32,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Samples of each flow.
    pub flows: Vec<Vec<Sample>>,
    /// Bytes waiting at the path at the end of each interval.
    pub queue: Vec<u64>,
    /// Segments sent again by all senders.
    pub retransmissions: u64,
}

impl Outcome {
    /// Mean rate of a flow from a time on: bytes per second.
    #[must_use]
    pub fn rate(&self, flow: usize, from: u64) -> f64 {
        let samples = self.flows.get(flow).map_or(&[][..], |samples| samples);
        let rates: Vec<f64> =
            samples.iter().filter(|sample| sample.at > from).map(|sample| sample.rate).collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    }

    /// Jain's index of the flows' rates from a time on: 1 when all have the same, 1/n when one has all.
    #[must_use]
    pub fn fairness(&self, from: u64) -> f64 {
        let rates: Vec<f64> = (0..self.flows.len()).map(|flow| self.rate(flow, from)).collect();
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        sum * sum / (rates.len() as f64 * squares).max(f64::MIN_POSITIVE)
    }
}

/// As fast as it can be; contents are of no interest here.
fn plain(bytes: u64, expected: u64) -> Plan {
    Plan { checked: false, ..Plan::bulk(bytes, expected, 0) }
}

/// Lets flows share `path` for `duration` ns, with hosts whose longest packet is `mtu` bytes; the way back has the same delay and nothing else. Samples
/// every `interval` ns. `None`: there was no memory for a stack.
#[must_use]
pub fn share(
    seed: u64,
    path: &LinkOptions,
    mtu: u16,
    flows: &[Flow],
    duration: u64,
    interval: u64,
) -> Option<Outcome> {
    let back = LinkOptions { delay: path.delay, ..LinkOptions::default() };
    let mut network = Network::new(seed, path.clone(), back);
    let config = Config { connections_v4: 64, connections_v6: 64, mtu, ..Config::default() };
    let address = |host: usize| Network::<Talks>::addresses(host).first().copied();
    let start = network.now();
    let mut receiver = Talks::default();
    for (place, flow) in flows.iter().enumerate() {
        let server = SocketAddr::new(address(0)?, 80 + place as u16);
        let client = SocketAddr::new(address(place + 1)?, 4000);
        receiver.listen(server, flow.options.clone());
        receiver.add(Talk::new(Role::Takes(client), plain(0, u64::MAX)));
    }
    network.add(Side::Right, 0, 0, config.clone(), receiver)?;
    for (place, flow) in flows.iter().enumerate() {
        let role = Role::Opens {
            at: start + flow.begins,
            local: SocketAddr::new(address(place + 1)?, 4000),
            remote: SocketAddr::new(address(0)?, 80 + place as u16),
            options: flow.options.clone(),
        };
        let mut sender = Talks::default();
        sender.add(Talk::new(role, plain(u64::MAX, 0)));
        network.add(Side::Left, flow.delay, 0, config.clone(), sender)?;
    }
    let mut outcome =
        Outcome { flows: vec![Vec::new(); flows.len()], queue: Vec::new(), retransmissions: 0 };
    let mut received = vec![0; flows.len()];
    let mut at = 0;
    while at < duration {
        at += interval;
        network.run_until(start + at);
        outcome.queue.push(network.waiting(Side::Left));
        for (place, samples) in outcome.flows.iter_mut().enumerate() {
            let total = network.application(0)?.all().get(place)?.progress().1;
            let info = network.application(place + 1)?.all().first()?.connection();
            let info = info.and_then(|id| network.stack(place + 1)?.info(id));
            let before = received.get_mut(place).map(|last| std::mem::replace(last, total))?;
            samples.push(Sample {
                at,
                rate: (total - before) as f64 * 1e9 / interval as f64,
                window: info.as_ref().map_or(0, |info| info.window),
                in_flight: info.as_ref().map_or(0, |info| info.in_flight),
                srtt: info.as_ref().map_or(0, |info| info.srtt),
            });
        }
    }
    outcome.retransmissions = (1..=flows.len())
        .filter_map(|host| Some(network.stack(host)?.counters().retransmissions))
        .sum();
    Some(outcome)
}
