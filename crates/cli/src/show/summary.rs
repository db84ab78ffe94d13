//! `millrace show summary` and `version`

use control::api::{API_VERSION, Summary, Usage, Version};

use crate::failure::Failure;
use crate::output::{line, printable};
use crate::units;

pub(super) fn summary(summary: Summary) -> Result<(), Failure> {
    let of =
        |usage: Usage| format!("{} of {}", units::count(usage.used), units::count(usage.capacity));
    let traffic =
        |packets, bytes| format!("{} packets, {}", units::count(packets), units::bytes(bytes));
    let cores: Vec<_> = summary.cores.iter().map(ToString::to_string).collect();
    let memory = if summary.hugepages { "in hugepages" } else { "without hugepages" };
    let rows = [
        ("version", summary.version),
        ("up for", units::uptime(summary.uptime)),
        ("configuration", summary.config),
        ("ports up", of(summary.ports)),
        ("interfaces", units::count(summary.interfaces)),
        ("worker cores", cores.join(", ")),
        ("buffers", format!("{} in use, {memory}", of(summary.buffers))),
        ("IPv4 routes", of(summary.routes4)),
        ("IPv6 routes", of(summary.routes6)),
        ("next hops", of(summary.next_hops)),
        ("neighbours", of(summary.neighbors)),
        ("being resolved", of(summary.unresolved)),
        ("IPv4 flows", of(summary.flows4)),
        ("IPv6 flows", of(summary.flows6)),
        ("bridge addresses", of(summary.bridge_macs)),
        ("received", traffic(summary.rx_packets, summary.rx_bytes)),
        ("sent", traffic(summary.tx_packets, summary.tx_bytes)),
        ("dropped", format!("{} packets", units::count(summary.dropped))),
    ];
    let lines: Vec<_> =
        rows.iter().map(|(name, value)| format!("{name:<17} {}", printable(value))).collect();
    line(lines.join("\n"))
}

pub(super) fn version(version: Version) -> Result<(), Failure> {
    let (own, theirs) = (env!("CARGO_PKG_VERSION"), printable(&version.version));
    let dpdk = printable(&version.dpdk);
    let (api, pid) = (version.api, version.pid);
    line(format!(
        "millrace   {own} (API {API_VERSION})\nmillraced  {theirs} (API {api}, process {pid})\n\
         DPDK       {dpdk}"
    ))
}
