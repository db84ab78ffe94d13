//! Reads the TOML text, section by section, and gathers every error.

mod base;
mod bridge;
mod client;
mod interface;
mod kernel;
mod names;
mod nearest;
mod report;
mod route;
mod section;
mod sessions;
mod vrf;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::path::Path;

use toml::de::{DeTable, Error};

use names::Names;
pub use nearest::nearest;
use report::Report;
pub(super) use report::{MOST_ERRORS, halves};
use section::Section;

use super::{Config, ConfigError, Reach};

/// Longest configuration: bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// Reads a whole configuration; `allowed` are the cores that the process may use.
pub(super) fn read(text: &str, file: &Path, allowed: &[u16]) -> Result<Config, Vec<ConfigError>> {
    let report = Report::new(text, file);
    if text.len() > LONGEST {
        let problem = format!("has {} bytes", text.len());
        let remedy = format!("use at most {LONGEST}; routes and flows go into files of their own");
        report.add(0, "", problem, remedy);
        return Err(report.into_errors());
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            syntax(&report, &error);
        }
        return Err(report.into_errors());
    }
    let config = sections(Section::root(&report, root.get_ref()), &report, allowed);
    let errors = report.into_errors();
    if errors.is_empty() { Ok(config) } else { Err(errors) }
}

fn syntax(report: &Report, error: &Error) {
    let at = error.span().map_or(0, |span| span.start);
    let message = error.message().trim().replace('\n', ", ");
    let remedy = "write KEY = VALUE, [SECTION] or [[LIST]]; strings go in quotes".to_owned();
    report.add(at, "", format!("is not TOML: {message}"), remedy);
}

/// Reads every section; interfaces before what refers to them.
fn sections(mut root: Section<'_>, report: &Report, allowed: &[u16]) -> Config {
    let folder = std::path::absolute(report.file()).unwrap_or_default();
    let folder = folder.parent().unwrap_or(Path::new("/"));
    let workers = base::workers(root.section("workers"), allowed);
    let limits = base::limits(root.section("limits"));
    let mut names = Names::default();
    let vrfs = vrf::vrfs(root.sections("vrf"), report, &mut names);
    let ports = interface::ports(root.sections("port"), report, &mut names, &workers.cores);
    let vlans = interface::vlans(root.sections("vlan"), report, &mut names);
    let macs = limits.bridge_macs;
    let bridges = bridge::bridges(root.sections("bridge"), report, &mut names, macs);
    let cross_connects = bridge::cross_connects(root.sections("cross-connect"), &mut names);
    let kernel_sides = kernel::sides(root.sections("kernel"), &mut names, &ports);
    let most = [limits.routes4, limits.routes6];
    let routes = route::routes(root.sections("route"), report, most);
    let neighbors = route::neighbors(root.sections("neighbor"));
    let mut config = Config {
        daemon: base::daemon(root.section("daemon")),
        memory: base::memory(root.section("memory")),
        workers,
        limits,
        forwarding: base::forwarding(root.section("forwarding")),
        neighbors: base::neighbors(root.section("neighbors")),
        reach: Reach::Anywhere,
        routes: base::files(root.section("routes"), folder),
        flows: base::files(root.section("flows"), folder),
        functions: client::functions(root.section("functions")),
        clients: client::clients(root.section("clients")),
        client_rules: client::rules(root.sections("client"), &names),
        sessions: sessions::sessions(root.section("sessions")),
        vrfs,
        ports,
        vlans,
        bridges,
        cross_connects,
        kernel_sides,
        static_routes: Vec::new(),
        static_neighbors: Vec::new(),
    };
    check_memory(&config, &mut root);
    for (route, section) in &routes {
        if let Err(error) = config.check_route(route) {
            section.wrong_text(error.key(route), &error);
        }
    }
    for (neighbor, section) in &neighbors {
        if let Err(error) = config.check_neighbor(neighbor) {
            section.wrong_text(error.key(), &error);
        }
    }
    config.static_routes = routes.into_iter().map(|(route, _)| route).collect();
    config.static_neighbors = neighbors.into_iter().map(|(neighbor, _)| neighbor).collect();
    root.finish();
    config
}

/// Receive rings must not take every buffer, or nothing is ever received or sent.
fn check_memory(config: &Config, root: &mut Section<'_>) {
    let held = |port: &super::Port| u64::from(port.rx_queues) * u64::from(port.rx_descriptors);
    let needed: u64 = config.ports.iter().map(held).sum();
    let buffers = u64::from(config.memory.buffers);
    if needed >= buffers {
        let problem = format!("{buffers} are too few: receive descriptors hold {needed}");
        let remedy = format!("use at least {}, or fewer descriptors", needed * 2);
        root.section("memory").wrong("buffers", problem, remedy);
    }
}
