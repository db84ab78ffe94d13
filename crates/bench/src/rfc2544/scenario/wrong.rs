//! What can be wrong with a scenario.

use measure::frame::FrameError;

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub(in crate::rfc2544) enum Wrong {
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("frames.sizes: {0}")]
    Frame(FrameError),
    #[error("frames.sizes: {0}")]
    Size(measure::load::SizeError),
    #[error(
        "frames.sizes: a frame of {size} bytes is more than an MTU of 1500 bytes carries; use {most} or fewer"
    )]
    Long { size: u16, most: u16 },
    #[error("{key}: {value} is out of bounds; use {least} to {most}")]
    Bounds { key: &'static str, value: f64, least: f64, most: f64 },
    #[error("{0}: nothing is listed; leave the key out, or name at least one")]
    Empty(&'static str),
    #[error(
        "trials.tests: latency is measured at loads that are shares of the throughput; add `throughput`"
    )]
    NoThroughput,
    #[error("device.forwarding: flows leave by ports, not by VLANs; leave frames.vlan out")]
    FlowVlan,
    #[error(
        "device.routes: {routes} cannot share a network evenly; use a power of two, up to {most} with so many flows"
    )]
    Routes { routes: u32, most: u32 },
    #[error("variant {number}: {why}")]
    Variant { number: usize, why: &'static str },
    #[error(
        "flows.count: {count} flows that differ in their ports alone are too many; use 65536 or fewer, or vary = \"destination\""
    )]
    Ports { count: u32 },
}
