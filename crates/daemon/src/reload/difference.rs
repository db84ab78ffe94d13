//! What differs between two configurations.

use std::collections::HashMap;

use control::config::{Config, Limits, Route};
use control::net::Prefix;

/// Takes over the settings that only a start can change. Returns the sections that differ.
pub(crate) fn hold_fixed(old: &Config, new: &mut Config) -> Vec<String> {
    let mut differ = Vec::new();
    let mut hold = |section: &str, same: bool| {
        if !same {
            differ.push(format!("[{section}] differs"));
        }
    };
    hold("daemon", old.daemon == new.daemon);
    hold("memory", old.memory == new.memory);
    hold("workers", old.workers == new.workers);
    hold("clients", old.clients == new.clients);
    hold("functions", old.functions == new.functions);
    hold("sessions", old.sessions.socket == new.sessions.socket);
    // A rate is no size: it may change.
    let limits = Limits { icmp_rate: new.limits.icmp_rate, ..old.limits.clone() };
    hold("limits", limits == new.limits);
    new.daemon = old.daemon.clone();
    new.memory = old.memory.clone();
    new.workers = old.workers.clone();
    new.clients = old.clients.clone();
    new.functions = old.functions.clone();
    new.sessions.socket = old.sessions.socket.clone();
    new.limits = limits;
    differ
}

/// Differences that have no list of their own.
pub(crate) fn other_changes(old: &Config, new: &Config) -> Vec<String> {
    let mut changes = Vec::new();
    for port in &new.ports {
        let before = old.port(&port.name);
        if before.is_some_and(|before| before.device == port.device && before != port) {
            changes.push(format!("port {} changed", port.name));
        }
    }
    for (what, same) in [
        ("[forwarding] changed", old.forwarding == new.forwarding),
        ("[neighbors] changed", old.neighbors == new.neighbors),
        ("limits.icmp-rate changed", old.limits.icmp_rate == new.limits.icmp_rate),
        ("VLAN sub-interfaces changed", old.vlans == new.vlans),
        ("bridges changed", old.bridges == new.bridges),
        ("VRFs changed", old.vrfs == new.vrfs),
        ("cross-connects changed", old.cross_connects == new.cross_connects),
        ("[[kernel]] sides changed", old.kernel_sides == new.kernel_sides),
        ("[[client]] rules changed", old.client_rules == new.client_rules),
        ("[sessions] changed", old.sessions == new.sessions),
        ("route files changed", old.routes == new.routes),
        ("flow files changed", old.flows == new.flows),
    ] {
        if !same {
            changes.push(what.to_owned());
        }
    }
    changes
}

/// Routes that are new or different, and those whose place has none any more.
pub(crate) fn route_changes(old: &[Route], new: &[Route]) -> (Vec<Route>, Vec<Route>) {
    let (before, after) = (by_key(old), by_key(new));
    let added = new.iter().filter(|route| before.get(&key(route)) != Some(route));
    let removed = old.iter().filter(|route| !after.contains_key(&key(route)));
    (added.cloned().collect(), removed.cloned().collect())
}

/// Where a route of the configuration stands: they are all static.
type Key<'a> = (Option<&'a str>, Prefix, u8);

fn by_key(routes: &[Route]) -> HashMap<Key<'_>, &Route> {
    routes.iter().map(|route| (key(route), route)).collect()
}

fn key(route: &Route) -> Key<'_> {
    (route.vrf.as_deref(), route.prefix, route.distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn routes(text: &str) -> Vec<Route> {
        let port = "[[port]]\nname = \"a\"\ndevice = \"null\"\naddresses = [\"10.0.0.1/24\"]\n";
        testing::config(&format!("{port}{text}")).static_routes
    }

    #[test]
    fn only_the_difference_of_routes_is_applied() {
        let old = routes(
            "[[route]]\nprefix = \"10.1.0.0/16\"\nvia = \"10.0.0.2\"\n\
             [[route]]\nprefix = \"10.2.0.0/16\"\nkind = \"blackhole\"\n\
             [[route]]\nprefix = \"10.3.0.0/16\"\nvia = \"10.0.0.2\"\n\
             [[route]]\nprefix = \"10.5.0.0/16\"\nvia = \"10.0.0.2\"\n",
        );
        let new = routes(
            "[[route]]\nprefix = \"10.1.0.0/16\"\nvia = \"10.0.0.2\"\n\
             [[route]]\nprefix = \"10.2.0.0/16\"\nkind = \"unreachable\"\n\
             [[route]]\nprefix = \"10.4.0.0/16\"\nvia = \"10.0.0.2\"\n\
             [[route]]\nprefix = \"10.5.0.0/16\"\nvia = \"10.0.0.2\"\nmetric = 3\n\
             [[route]]\nprefix = \"10.1.0.0/16\"\nvia = \"10.0.0.2\"\ndistance = 9\n",
        );
        let (added, removed) = route_changes(&old, &new);
        let added: Vec<String> = added.iter().map(|route| route.prefix.to_string()).collect();
        assert_eq!(added, ["10.2.0.0/16", "10.4.0.0/16", "10.5.0.0/16", "10.1.0.0/16"]);
        let removed: Vec<String> = removed.iter().map(|route| route.prefix.to_string()).collect();
        assert_eq!(removed, ["10.3.0.0/16"]);
    }

    #[test]
    fn what_only_a_start_can_change_stays_and_is_told() {
        let old = testing::config("");
        let mut new = testing::config(
            "[limits]\nroutes4 = 77\nicmp-rate = 3\n[workers]\nvector = 8\n\
             [forwarding]\nmiss = \"drop\"\n[neighbors]\nqueue = 7\n",
        );
        let told = hold_fixed(&old, &mut new);
        assert_eq!(told, ["[workers] differs", "[limits] differs"]);
        assert_eq!((new.limits.routes4, &new.workers), (old.limits.routes4, &old.workers));
        assert_eq!((new.limits.icmp_rate, new.neighbors.queue), (3, 7), "these change at once");
        let changed = ["[forwarding] changed", "[neighbors] changed", "limits.icmp-rate changed"];
        assert_eq!(other_changes(&old, &new), changed);
    }
}
