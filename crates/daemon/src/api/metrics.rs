//! `GET /metrics`: counters for Prometheus.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use control::api::{ClientCounters, PortCounters, StackCounters, StackTcp};
use tokio::task::spawn_blocking;

use super::prometheus::{self, Exposition};
use super::{Api, vrfs};
use crate::daemon::Daemon;
use crate::sessions::Look;

/// A counter of a port: name, help, value.
type PortCounter = (&'static str, &'static str, fn(&PortCounters) -> u64);

const PORT: [PortCounter; 5] = [
    ("millrace_port_rx_packets_total", "Packets received.", |c| c.rx_packets),
    ("millrace_port_rx_bytes_total", "Bytes received.", |c| c.rx_bytes),
    ("millrace_port_tx_packets_total", "Packets sent.", |c| c.tx_packets),
    ("millrace_port_tx_bytes_total", "Bytes sent.", |c| c.tx_bytes),
    ("millrace_port_tx_dropped_total", "Packets that the device did not take.", |c| c.tx_dropped),
];

/// A counter of a client's queues: name, help, value.
type ClientCounter = (&'static str, &'static str, fn(&ClientCounters) -> u64);

const CLIENT: [ClientCounter; 5] = [
    ("millrace_client_delivered_total", "Packets given to a client.", |c| c.delivered),
    ("millrace_client_sent_total", "Packets sent by a client.", |c| c.sent),
    ("millrace_client_full_total", "Packets that found a client's ring full.", |c| c.full),
    (
        "millrace_client_skipped_total",
        "Packets that a busy worker passed on without offering a copy.",
        |c| c.skipped,
    ),
    ("millrace_client_refused_total", "What a client sent and was not taken.", |c| {
        c.refused + c.no_buffer + c.malformed
    }),
];

/// A counter of a stack: name, help, value.
type StackCounter = (&'static str, &'static str, fn(&StackCounters) -> u64);

const STACK: [StackCounter; 4] = [
    ("millrace_stack_delivered_total", "Packets given to a stack.", |c| c.delivered),
    ("millrace_stack_sent_total", "Packets sent by a stack.", |c| c.sent),
    ("millrace_stack_full_total", "Packets that found a stack's ring full.", |c| c.full),
    ("millrace_stack_refused_total", "What a stack sent and was not taken.", StackCounters::wrong),
];

/// A counter that a stack keeps itself: name, help, value.
type TcpCounter = (&'static str, &'static str, fn(&StackTcp) -> u64);

const TCP: [TcpCounter; 9] = [
    ("millrace_stack_established_total", "Connections that became established.", |c| c.established),
    ("millrace_stack_retransmissions_total", "Segments sent again.", |c| c.retransmissions),
    ("millrace_stack_timeouts_total", "Retransmission time-outs.", |c| c.timeouts),
    ("millrace_stack_resets_total", "Resets sent.", |c| c.resets),
    (
        "millrace_stack_accept_queue_full_total",
        "SYNs and handshakes that found the queue of connections to accept full.",
        |c| c.accept_queue_full,
    ),
    (
        "millrace_stack_syn_cookies_total",
        "SYNs that found too many half-open connections, and were answered by a cookie.",
        |c| c.syn_cookies,
    ),
    ("millrace_stack_syns_dropped_total", "SYNs that were dropped.", |c| c.syns_dropped),
    ("millrace_stack_dropped_total", "Segments that a stack did not take.", |c| c.dropped),
    (
        "millrace_stack_link_refused_total",
        "Packets that came over links from where their senders may not send.",
        |c| c.link_refused,
    ),
];

/// The exposition.
#[utoipa::path(
    get,
    path = "/metrics",
    responses(
        (status = 200, description = "Counters for Prometheus", content_type = "text/plain"),
    )
)]
pub(crate) async fn get(State(api): State<Api>) -> impl IntoResponse {
    // Not on this thread, which has other things to do: there may be millions.
    let look = api.daemon.lock().sessions.look();
    let counted = spawn_blocking(move || {
        let mut text = Exposition::default();
        connections(&look, &mut text);
        text
    });
    let mut text = counted.await.unwrap_or_default();
    let daemon = api.daemon.lock();
    ports(&daemon, &mut text);
    workers(&daemon, &mut text);
    tables(&daemon, &mut text);
    clients(&daemon, &mut text);
    sessions(&daemon, &mut text);
    ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], text.finish())
}

fn ports(daemon: &Daemon, text: &mut Exposition) {
    let mut up = text.gauge("millrace_port_up", "Whether the port carries packets.");
    for port in daemon.ports.iter() {
        up.sample(&[("port", &port.config.name)], u8::from(port.is_up()));
    }
    for (name, help, value) in PORT {
        let mut family = text.counter(name, help);
        for port in daemon.ports.iter() {
            family.sample(&[("port", &port.config.name)], value(&daemon.port_counters(port)));
        }
    }
}

fn workers(daemon: &Daemon, text: &mut Exposition) {
    let mut drops = text.counter("millrace_drops_total", "Packets dropped, by reason.");
    for (reason, packets) in daemon.drops() {
        drops.sample(&[("reason", &reason.name())], packets);
    }
    let mut packets =
        text.counter("millrace_worker_packets_total", "Packets that came to a worker.");
    for worker in daemon.workers.iter() {
        packets.sample(&[("core", &worker.core)], worker.handle.counters().packets.get());
    }
    let mut answers = text.gauge("millrace_worker_up", "Whether the worker answers.");
    for member in daemon.workers.crew().iter() {
        answers.sample(&[("core", &member.core)], u8::from(!member.is_down()));
    }
    let mut cycles = text.counter("millrace_worker_cycles_total", "TSC cycles by what for.");
    for worker in daemon.workers.iter() {
        let counters = worker.handle.counters();
        cycles.sample(&[("core", &worker.core), ("state", &"busy")], counters.busy_cycles.get());
        cycles.sample(&[("core", &worker.core), ("state", &"idle")], counters.idle_cycles.get());
        cycles.sample(&[("core", &worker.core), ("state", &"sleep")], counters.sleep_cycles.get());
    }
    let mut limited = text.counter(
        "millrace_icmp_errors_limited_total",
        "ICMP errors that were due, and not sent because of the rate limit.",
    );
    for worker in daemon.workers.iter() {
        limited.sample(&[("core", &worker.core)], worker.handle.counters().icmp_limited.get());
    }
    let mut nodes = text.counter("millrace_node_packets_total", "Packets given to a node.");
    for worker in daemon.workers.iter() {
        let handle = &worker.handle;
        for (name, counters) in handle.nodes().iter().zip(&handle.counters().nodes) {
            nodes.sample(&[("core", &worker.core), ("node", name)], counters.packets.get());
        }
    }
}

fn tables(daemon: &Daemon, text: &mut Exposition) {
    let (routes4, routes6) = daemon.routing.rib().len();
    let mut routes = text.gauge(
        "millrace_routes",
        "Routes of all VRFs that were given: those of interfaces and neighbours do not count.",
    );
    routes.sample(&[("family", &"ipv4")], routes4);
    routes.sample(&[("family", &"ipv6")], routes6);
    let mut routes = text.gauge("millrace_vrf_routes", "Routes of a VRF that were given.");
    for (id, name) in vrfs::named(daemon) {
        let (routes4, routes6) = daemon.routing.rib().len_of(id);
        routes.sample(&[("vrf", &name), ("family", &"ipv4")], routes4);
        routes.sample(&[("vrf", &name), ("family", &"ipv6")], routes6);
    }
    let (flows4, flows6) = daemon.flows.len();
    let mut flows = text.gauge("millrace_flows", "Exact-match flows.");
    flows.sample(&[("family", &"ipv4")], flows4);
    flows.sample(&[("family", &"ipv6")], flows6);
    text.gauge("millrace_neighbors", "Neighbours.").sample(&[], daemon.routing.neighbor_count());
    let mut free = text.gauge("millrace_buffers_free", "Packet buffers that nobody holds.");
    for (node, pool) in daemon.devices.pools().iter() {
        free.sample(&[("numa", &node)], pool.available());
    }
    text.gauge("millrace_uptime_seconds", "Seconds since the daemon started.")
        .sample(&[], daemon.started.elapsed().as_secs());
}

fn clients(daemon: &Daemon, text: &mut Exposition) {
    let clients = daemon.clients.show();
    for (name, help, value) in CLIENT {
        let mut family = text.counter(name, help);
        for client in &clients {
            for queues in &client.queues {
                let labels: [(&str, &dyn std::fmt::Display); 3] =
                    [("client", &client.id), ("name", &client.name), ("queues", &queues.number)];
                family.sample(&labels, value(&queues.counters));
            }
        }
    }
}

fn connections(look: &Look, text: &mut Exposition) {
    let mut family =
        text.gauge("millrace_stack_connections", "Connections of a stack by state, as it says.");
    for (stack, name, states) in look.states() {
        for (state, count) in states {
            family.sample(&[("stack", &stack), ("name", &name), ("state", &state)], count);
        }
    }
}

fn sessions(daemon: &Daemon, text: &mut Exposition) {
    let stacks = daemon.sessions.show_stacks();
    text.gauge("millrace_stacks", "Stacks of processes.").sample(&[], stacks.len());
    for (name, help, value) in STACK {
        let mut family = text.counter(name, help);
        for stack in &stacks {
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("stack", &stack.number), ("name", &stack.name)];
            family.sample(&labels, value(&stack.counters));
        }
    }
    for (name, help, value) in TCP {
        let mut family = text.counter(name, help);
        for stack in &stacks {
            let labels: [(&str, &dyn std::fmt::Display); 2] =
                [("stack", &stack.number), ("name", &stack.name)];
            family.sample(&labels, value(&stack.tcp));
        }
    }
    let mut members = text.gauge("millrace_listener_members", "Stacks that serve a listener.");
    for listener in daemon.sessions.show_listeners() {
        let protocol = format!("{:?}", listener.protocol).to_lowercase();
        let labels: [(&str, &dyn std::fmt::Display); 2] =
            [("protocol", &protocol), ("address", &listener.address)];
        members.sample(&labels, listener.members.len());
    }
}
