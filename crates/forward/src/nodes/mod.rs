//! The stages that packets go through on a worker, one file each, and the graph of them.

mod arc;
mod arp_input;
mod bridge;
mod bucket;
mod cross_connect;
mod disposal;
mod ethernet_input;
mod family;
mod flow;
mod fragment;
mod icmp_error;
mod interface_output;
mod ip6_fragment;
mod ip_group;
mod ip_input;
mod ip_local;
mod local_reply;
mod lookup;
mod neighbor_resolved;
mod plain;
mod port_output;
mod reflect;
mod rewrite;
mod short_path;
mod snapshot;
mod stack_input;
mod tcp_mss;
mod translate;
mod translate_error;
mod vrf;

use dpdk::BufferPool;
use graph::{Graph, GraphBuilder, GraphError};

use crate::bridge::{LearnSender, MacReader};
use crate::flow::FlowReaders;
use crate::state::{InputFeature, OutputFeature, Settings, State};
use crate::steering::SteeringReader;
use arc::{Begin, OnArc};
use bridge::Switch;
use family::{V4, V6};
use flow::FlowLookup;
use ip_input::IpInput;
use lookup::Lookup;
use rewrite::Rewrite;
use snapshot::Snapshot;
use tcp_mss::TcpMss;
use vrf::{VrfInput, VrfLookup};

pub use vrf::MOST_LEAKS;

/// Name of the node where received packets enter.
pub const INPUT: &str = "ethernet-input";
/// Name of the node where packets enter that the control thread kept until a neighbour was known.
pub const RELEASED: &str = "neighbor-resolved";

/// Name of the node where packets enter that stacks have sent.
pub const FROM_STACK: &str = "stack-input";

/// What the graph of one worker reads, and where its news go.
pub struct Parts {
    /// Interfaces, next hops, routes.
    pub state: State,
    /// Exact-match flows.
    pub flows: FlowReaders,
    /// What bridges have learned.
    pub macs: MacReader,
    /// Which packets are stacks'.
    pub steering: SteeringReader,
    /// Where newly seen addresses go.
    pub learn: LearnSender,
    /// Where new buffers (fragments, flooded copies) come from.
    pub pool: BufferPool,
}

/// The forwarder's graph for one worker.
///
/// # Errors
/// [`GraphError`]: a defect of this crate, since the graph is the same each time.
pub fn build(parts: Parts) -> Result<Graph, GraphError> {
    let Parts { state, flows, macs, steering, learn, pool } = parts;
    let State { interfaces, settings, .. } = state.clone();
    let interfaces = || Snapshot::of(&interfaces);
    let Settings { flows4, flows6, tsc_hz, .. } = **settings.load();
    let settings = || Snapshot::of(&settings);
    GraphBuilder::default()
        .with(ethernet_input::EthernetInput::new(interfaces(), &state, flows4, flows6))
        .with(Switch::input(interfaces(), macs.clone(), learn, pool, tsc_hz))
        .with(cross_connect::CrossConnect::new(interfaces()))
        .with(arp_input::ArpInput)
        .with(ip_group::IpGroup::new(interfaces()))
        .with(IpInput::<V4>::new(interfaces(), settings(), flows4))
        .with(IpInput::<V6>::new(interfaces(), settings(), flows6))
        .with(Begin::input(interfaces()))
        .with(OnArc::input(InputFeature::TcpMss, interfaces(), TcpMss))
        .with(OnArc::input(InputFeature::Vrf, interfaces(), VrfInput))
        .with(neighbor_resolved::NeighborResolved::new(interfaces()))
        .with(stack_input::StackInput::new(state.clone(), steering.clone()))
        .with(ip6_fragment::Ip6Fragment::new(pool))
        .with(FlowLookup::<V4>::new(flows.clone()))
        .with(FlowLookup::<V6>::new(flows))
        .with(Lookup::<V4>::forwarding(state.clone()))
        .with(Lookup::<V6>::forwarding(state.clone()))
        .with(VrfLookup::<V4>::forwarding(state.clone()))
        .with(VrfLookup::<V6>::forwarding(state.clone()))
        .with(Rewrite::<V4>::forwarding(state.clone()))
        .with(Rewrite::<V6>::forwarding(state.clone()))
        .with(fragment::Fragment::new(state.next_hops.clone(), pool))
        .with(ip_local::IpLocal::new(interfaces(), settings(), state.clone(), steering, pool))
        .with(reflect::Reflect::new(interfaces()))
        .with(icmp_error::IcmpErrors::new(interfaces(), settings()))
        .with(Lookup::<V4>::output(state.clone()))
        .with(Lookup::<V6>::output(state.clone()))
        .with(VrfLookup::<V4>::output(state.clone()))
        .with(VrfLookup::<V6>::output(state.clone()))
        .with(Rewrite::<V4>::output(state.clone()))
        .with(Rewrite::<V6>::output(state.clone()))
        .with(Begin::output(interfaces()))
        .with(OnArc::output(OutputFeature::TcpMss, interfaces(), TcpMss))
        .with(port_output::PortOutput::new(state.next_hops))
        .with(Switch::output(interfaces(), macs, pool, tsc_hz))
        .with(interface_output::InterfaceOutput::new(interfaces()))
        .build()
}
