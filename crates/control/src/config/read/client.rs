//! Reads the sections about client processes.

use std::path::PathBuf;

use super::base::socket;
use super::names::{Names, What};
use super::section::Section;
use crate::config::{ClientRule, Clients, Functions};
use crate::net::shortened;

/// Where shared objects of packet functions are.
const FUNCTIONS: &str = "/usr/lib/millrace/functions";
/// Rules at most.
const MOST_RULES: usize = 1024;

pub(super) fn clients(mut section: Section<'_>) -> Clients {
    let clients = Clients {
        socket: socket(&mut section),
        most: section.number("most", 64, 1..=1_024, "clients"),
        connections: section.number("connections", 16, 1..=1_024, "connections of one user"),
        queues: section.number("queues", 16, 1..=1_024, "requests of one user"),
        channels: section.number("channels", 128, 1..=4_096, "channels of one user"),
        filters: section.number("filters", 8, 1..=1_024, "filters of one user"),
        requests: section.number("requests", 100, 1..=100_000, "requests a second of one user"),
        memory: section.number("memory", 256, 1..=65_536, "MiB"),
    };
    section.finish();
    clients
}

pub(super) fn functions(mut section: Section<'_>) -> Functions {
    let folder = section.value("folder").and_then(|value| {
        let text = value.text()?;
        if !text.starts_with('/') || text.contains('\0') {
            let problem = format!("'{}' is no path of a folder", shortened(text));
            value.wrong(problem, "use an absolute path".to_owned());
            return None;
        }
        Some(PathBuf::from(text))
    });
    section.finish();
    Functions { folder: folder.unwrap_or_else(|| FUNCTIONS.into()) }
}

pub(super) fn rules(sections: Vec<Section<'_>>, names: &Names) -> Vec<ClientRule> {
    if let Some(section) = sections.get(MOST_RULES) {
        let problem = format!("is beyond the {MOST_RULES} rules");
        section.wrong("uid", problem, "join users in a group".to_owned());
    }
    sections.into_iter().take(MOST_RULES).map(|section| rule(section, names)).collect()
}

fn rule(mut section: Section<'_>, names: &Names) -> ClientRule {
    let id = |section: &mut Section<'_>, key: &'static str| {
        let number = section.value(key)?.integer(0..=u64::from(u32::MAX) - 1, "")?;
        u32::try_from(number).ok()
    };
    let (uid, gid) = (id(&mut section, "uid"), id(&mut section, "gid"));
    if section.has("uid") == section.has("gid") {
        let problem = "a rule is about a user or about a group".to_owned();
        section.wrong("uid", problem, "give uid or gid, one of them".to_owned());
    }
    let ports = section.value("ports").map(|value| {
        let known = |item: &super::section::Value<'_>| {
            names.resolve(item, &[What::Port]).map(|port| port.name.clone())
        };
        value.list().iter().filter_map(known).collect::<Vec<_>>()
    });
    section.finish();
    ClientRule { uid, gid, ports: ports.unwrap_or_default() }
}
