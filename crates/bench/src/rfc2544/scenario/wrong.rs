//! What can be wrong with a scenario.

use measure::frame::FrameError;

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub(in crate::rfc2544) enum Wrong {
    #[error("{}", plain(.0))]
    Toml(#[from] toml::de::Error),
    #[error("frames.sizes: {0}")]
    Frame(FrameError),
    #[error("frames.sizes: {0}")]
    Size(measure::load::SizeError),
    #[error("{key}: {value} is out of bounds ({least} to {most}); use {nearest}")]
    Bounds { key: &'static str, value: f64, least: f64, most: f64, nearest: f64 },
    #[error("{0}: nothing is listed; leave the key out, or name at least one")]
    Empty(&'static str),
    #[error(
        "trials.tests: latency is measured at loads that are shares of the throughput; add `throughput`"
    )]
    NoThroughput,
    #[error("device.forwarding: flows leave by ports, not by VLANs; leave frames.vlan out")]
    FlowVlan,
    #[error(
        "device.routes: {routes} cannot share a network evenly; use {nearest}, or another power of two, up to {most} with so many flows"
    )]
    Routes { routes: u32, most: u32, nearest: u32 },
    #[error("device.ports: {0}")]
    Port(dpdk::DeviceError),
    #[error("device.macs: `{0}` is no MAC address; write six bytes, such as 02:00:00:00:00:01")]
    Mac(String),
    #[error("{key}: core {core} is none of those that the bench may use; use one of {usable}")]
    Core { key: &'static str, core: usize, usable: String },
    #[error(
        "device.other-node: all cores that the bench may use are on one NUMA node; leave the key out, or let it use more (taskset)"
    )]
    OneNode,
    #[error("device.other-node chooses a core, and device.cores names some; leave one of them out")]
    NodeAndCores,
    #[error("trials.rings: {rings} is no power of two; use {nearest}")]
    Rings { rings: u32, nearest: u32 },
    #[error(
        "trials.rings: only links of shared memory have such rings; leave the key out, or use a device that the bench starts between memif ports"
    )]
    NoRings,
    #[error(
        "frames.ipv6-share: {share} is no tenth of the frames; use {nearest}, or another tenth from 0.1 to 0.9"
    )]
    Share { share: f64, nearest: f64 },
    #[error(
        "frames.ipv6 says that all frames are IPv6, and frames.ipv6-share how many; leave one of them out"
    )]
    Versions,
    #[error(
        "device.guest-core: there is no guest; use device.forwarding = \"guest\", or leave the key out"
    )]
    NoGuest,
    #[error("{0}: only a router has it; use device.forwarding = \"routes\", or leave the key out")]
    NotRouted(&'static str),
    #[error("variant {number}: {why}")]
    Variant { number: usize, why: &'static str },
    #[error(
        "flows.count: {count} flows that differ in their ports alone are too many; use 65536 or fewer, or vary = \"destination\""
    )]
    Ports { count: u32 },
}

impl Wrong {
    /// A value that is not within `least` to `most`; a number that is none counts as too small.
    pub(super) fn bounds(key: &'static str, value: f64, [least, most]: [f64; 2]) -> Self {
        let nearest = if value > most { most } else { least };
        Self::Bounds { key, value, least, most, nearest }
    }

    /// A share that is no tenth; a number that is none counts as too small.
    pub(super) fn share(share: f64) -> Self {
        let tenths = if share.is_nan() { 0.0 } else { (share * 10.0).round() };
        Self::Share { share, nearest: tenths.clamp(1.0, 9.0) / 10.0 }
    }

    /// Routes that are no power of two, or more than `most`, which is one.
    pub(super) fn routes(routes: u32, most: u32) -> Self {
        Self::Routes { routes, most, nearest: nearest_power(routes.clamp(1, most)) }
    }

    /// Rings that are no power of two.
    pub(super) fn rings(rings: u32) -> Self {
        Self::Rings { rings, nearest: nearest_power(rings) }
    }
}

/// What the reader of a file says, without names of Rust's types, and what may have been meant.
fn plain(error: &toml::de::Error) -> String {
    let text = [
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected f64", "expected a number"),
    ]
    .into_iter()
    .fold(error.to_string(), |text, (type_name, words)| text.replace(type_name, words));
    let meant = meant(error.message()).map(|name| format!("\ndid you mean `{name}`?"));
    format!("{}{}", text.trim_end(), meant.unwrap_or_default())
}

/// The known name that an unknown one is nearest to, of a text such as 'unknown field `x`, expected one of `a`, `b`'.
fn meant(message: &str) -> Option<&str> {
    let field = message.strip_prefix("unknown field `");
    let rest = field.or_else(|| message.strip_prefix("unknown variant `"))?;
    let (word, known) = rest.split_once("`, expected ")?;
    control::config::nearest(word, known.split('`').skip(1).step_by(2))
}

/// The power of two that is closest to a number from 1 to 2^31, the smaller one of two.
fn nearest_power(number: u32) -> u32 {
    let above = number.next_power_of_two();
    let below = above / 2;
    if number - below <= above - number { below } else { above }
}
