//! The stages that packets go through on a worker, one file each, and the graph of them.

mod arp_input;
mod bucket;
mod cross_connect;
mod ethernet_input;
mod family;
mod fragment;
mod icmp_error;
mod interface_output;
mod ip4_input;
mod ip6_input;
mod ip_group;
mod ip_local;
mod local_reply;
mod lookup;
mod reflect;
mod rewrite;
mod snapshot;

use dpdk::BufferPool;
use graph::{Graph, GraphBuilder, GraphError};

use crate::state::State;
use family::{V4, V6};
use lookup::Lookup;
use rewrite::Rewrite;
use snapshot::Snapshot;

/// Name of the node where received packets enter.
pub const INPUT: &str = "ethernet-input";

/// The forwarder's graph for one worker. New buffers (fragments, flooded copies) come from `pool`.
///
/// # Errors
/// [`GraphError`]: a defect of this crate, since the graph is the same each time.
pub fn build(state: &State, pool: &BufferPool) -> Result<Graph, GraphError> {
    let settings = &state.settings;
    let interfaces = || Snapshot::of(&state.interfaces);
    GraphBuilder::default()
        .with(ethernet_input::EthernetInput::new(interfaces()))
        .with(cross_connect::CrossConnect::new(interfaces()))
        .with(arp_input::ArpInput)
        .with(ip_group::IpGroup::new(interfaces()))
        .with(ip4_input::Ip4Input::new(settings.martians, settings.flows4))
        .with(ip6_input::Ip6Input::new(settings.martians, settings.flows6))
        .with(Lookup::<V4>::forwarding(state.clone()))
        .with(Lookup::<V6>::forwarding(state.clone()))
        .with(Rewrite::<V4>::forwarding(state.clone()))
        .with(Rewrite::<V6>::forwarding(state.clone()))
        .with(fragment::Fragment::new(state.next_hops.clone(), pool.clone()))
        .with(ip_local::IpLocal::new(interfaces()))
        .with(reflect::Reflect::new(interfaces()))
        .with(icmp_error::IcmpError::new(interfaces(), settings))
        .with(Lookup::<V4>::output(state.clone()))
        .with(Lookup::<V6>::output(state.clone()))
        .with(Rewrite::<V4>::output(state.clone()))
        .with(Rewrite::<V6>::output(state.clone()))
        .with(interface_output::InterfaceOutput::new(interfaces()))
        .build()
}
