//! `millrace show routes`, `next-hops`, `flows`, and `millrace route get`

use control::Prefix;
use control::api::{
    FlowPage, FlowQuery, LookupQuery, NextHop, RouteEntry, RouteLookup, RoutePage, RouteQuery,
    RouteSource,
};
use control::client::{Client, with_query};
use control::config::{DEFAULT_VRF, Flow, Source};

use super::table_of;
use crate::failure::Failure;
use crate::output::{Table, json, line, or_dash, word};
use crate::units::count;

/// Entries asked for at a time.
const PAGE: u32 = 10_000;

/// Which routes are wanted, and how many at most.
pub(super) struct Wanted {
    pub(super) vrf: Option<String>,
    pub(super) family: Option<u8>,
    pub(super) prefix: Option<Prefix>,
    pub(super) source: Option<Source>,
    pub(super) limit: u32,
}

pub(super) async fn routes(
    client: &Client,
    json_too: bool,
    wanted: &Wanted,
) -> Result<(), Failure> {
    let mut query = RouteQuery {
        vrf: wanted.vrf.clone(),
        family: wanted.family,
        prefix: wanted.prefix,
        source: wanted.source.clone(),
        limit: Some(wanted.limit.clamp(1, PAGE)),
        after: None,
    };
    let mut page: RoutePage = client.get(&with_query("/v1/routes", &query)).await?;
    while let (Some(next), true) = (page.next, page.routes.len() < wanted.limit as usize) {
        query.after = Some(next);
        let more: RoutePage = client.get(&with_query("/v1/routes", &query)).await?;
        page.routes.extend(more.routes);
        page.next = more.next.filter(|after| Some(*after) != query.after);
    }
    page.routes.truncate(wanted.limit as usize);
    if json_too {
        return json(&page);
    }
    let mut table = Table::new(&["prefix", "target", "source", "#distance", "#metric", "from"]);
    for entry in &page.routes {
        let (source, distance) = (entry.route.source.to_string(), entry.route.distance.to_string());
        let [prefix, target] = row(entry);
        let metric = count(entry.route.metric.into());
        table.row([prefix, target, source, distance, metric, word(entry.origin)]);
    }
    table.print("no routes")?;
    more(page.next.is_some(), page.routes.len(), page.total)
}

fn row(entry: &RouteEntry) -> [String; 2] {
    let state = match (entry.parked, entry.standby) {
        (true, _) => " (parked)",
        (false, true) => " (standby)",
        (false, false) => "",
    };
    [entry.route.prefix.to_string(), format!("{}{state}", entry.route.target)]
}

fn explained(entry: &RouteEntry) -> String {
    let [prefix, target] = row(entry);
    let from = word(entry.origin);
    let source = &entry.route.source;
    if *source == Source::STATIC || source.is_implied() {
        return format!("{prefix} {target} (from {from})");
    }
    format!("{prefix} {target} (from {from}, {source})")
}

pub(super) fn sources(sources: Vec<RouteSource>) -> Result<(), Failure> {
    let mut table = Table::new(&["source", "vrf", "#routes4", "#routes6"]);
    for RouteSource { source, vrf, routes4, routes6 } in sources {
        let vrf = vrf.unwrap_or_else(|| DEFAULT_VRF.to_owned());
        table.row([source.to_string(), vrf, count(routes4), count(routes6)]);
    }
    table.print("nobody has given a route")
}

/// Says that there is more than was shown.
fn more(there_is: bool, shown: usize, total: u64) -> Result<(), Failure> {
    if !there_is {
        return Ok(());
    }
    let shown = count(u64::try_from(shown).unwrap_or(u64::MAX));
    line(format!("{shown} shown, {} in all; use --limit for more", count(total)))
}

/// What becomes of packets to an address.
pub(crate) async fn lookup(client: &Client, json: bool, query: LookupQuery) -> Result<(), Failure> {
    table_of(client, json, ("/v1/routes/lookup", &query), |found: RouteLookup| {
        match &found.route {
            None => line(format!("{}: no route", found.address))?,
            Some(entry) => {
                line(format!("{}: {}", found.address, explained(entry)))?;
            }
        }
        for entry in &found.then {
            let vrf = entry.route.vrf.as_deref().unwrap_or(DEFAULT_VRF);
            line(format!("then in VRF {vrf}: {}", explained(entry)))?;
        }
        if found.next_hops.is_empty() { Ok(()) } else { next_hops(found.next_hops) }
    })
    .await
}

pub(super) fn next_hops(next_hops: Vec<NextHop>) -> Result<(), Failure> {
    let mut table =
        Table::new(&["#index", "kind", "address", "interface", "mac", "next", "#mtu", "#users"]);
    for hop in next_hops {
        table.row([
            hop.index.to_string(),
            hop.kind,
            or_dash(hop.address),
            or_dash(hop.interface),
            or_dash(hop.mac),
            or_dash(hop.next),
            if hop.mtu == 0 { "-".to_owned() } else { hop.mtu.to_string() },
            count(hop.users),
        ]);
    }
    table.print("no next hops")
}

pub(super) async fn flows(client: &Client, json_too: bool, limit: u32) -> Result<(), Failure> {
    let mut query = FlowQuery { limit: Some(limit.clamp(1, PAGE)), after: None };
    let mut page: FlowPage = client.get(&with_query("/v1/flows", &query)).await?;
    while page.next.is_some() && page.flows.len() < limit as usize {
        query.after = page.next.take();
        let more: FlowPage = client.get(&with_query("/v1/flows", &query)).await?;
        page.flows.extend(more.flows);
        page.next = more.next.filter(|after| Some(after) != query.after.as_ref());
    }
    page.flows.truncate(limit as usize);
    if json_too {
        return json(&page);
    }
    let mut table = Table::new(&[
        "source",
        "destination",
        "#protocol",
        "port",
        "new source",
        "new destination",
    ]);
    for flow in &page.flows {
        table.row(flow_row(flow));
    }
    table.print("no flows")?;
    more(page.next.is_some(), page.flows.len(), page.total)
}

fn flow_row(flow: &Flow) -> [String; 6] {
    let end = |address: &dyn std::fmt::Display, v6: bool, port: u16| match v6 {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    };
    let v6 = flow.source.is_ipv6();
    let rewritten = |address: Option<std::net::IpAddr>, port: Option<u16>| match (address, port) {
        (None, None) => "-".to_owned(),
        (address, port) => format!("{} {}", or_dash(address), or_dash(port)),
    };
    [
        end(&flow.source, v6, flow.source_port),
        end(&flow.destination, v6, flow.destination_port),
        flow.protocol.to_string(),
        flow.egress_port.clone(),
        rewritten(flow.new_source, flow.new_source_port),
        rewritten(flow.new_destination, flow.new_destination_port),
    ]
}
