//! Reads the section about processes with stacks of their own.

use std::fs;

use super::base::socket;
use super::section::{Section, Value};
use crate::config::{Placement, Sessions};
use crate::net::shortened;

/// Users and groups that can be named, each.
const MOST_NAMES: usize = 1024;
/// Longest name of a user or group: bytes.
const LONGEST_NAME: usize = 32;

const PLACEMENTS: [(&str, Placement); 2] =
    [("inline", Placement::Inline), ("shared", Placement::Shared)];

pub(super) fn sessions(mut section: Section<'_>) -> Sessions {
    let sessions = Sessions {
        enabled: section.flag("enabled", true),
        socket: socket(&mut section),
        users: ids(&mut section, "users", "user", "/etc/passwd"),
        groups: ids(&mut section, "groups", "group", "/etc/group"),
        ports: section.value("ports").and_then(|value| value.parse()).unwrap_or_default(),
        most: section.number("most", 512, 1..=4_096, "processes"),
        connections: section.number("connections", 256, 1..=4_096, "connections of one user"),
        stacks: section.number("stacks", 256, 1..=4_096, "stacks of one user"),
        memory: section.number("memory", 768, 1..=1_048_576, "MiB"),
        listeners: section.number("listeners", 1_024, 1..=65_536, "listeners of one user"),
        leases: section.number("leases", 128, 1..=1024, "ranges of ports of one user"),
        links: section.number("links", 64, 0..=1_024, "links of one process"),
        requests: section.number("requests", 4_000, 1..=100_000, "requests a second of one user"),
        carriers: section.number("carriers", 1_024, 1..=65_536, "carriers of one user"),
        parked: section.number("parked", 4_096, 1..=65_536, "connections of one user"),
        parked_memory: section.number("parked-memory", 64, 1..=65_536, "MiB"),
        placement: section.word("placement", Placement::Inline, &PLACEMENTS),
        workers: section.number("workers", 1, 1..=64, "stack workers"),
        buffers: section.number("buffers", 64, 1..=65_536, "MiB"),
    };
    section.finish();
    sessions
}

/// Numbers of users or groups, given as such or by the names that a file of this system has.
fn ids(section: &mut Section<'_>, key: &'static str, what: &str, file: &str) -> Vec<u32> {
    let Some(value) = section.value(key) else { return Vec::new() };
    let items = value.list();
    if let Some(item) = items.get(MOST_NAMES) {
        item.wrong(format!("is beyond the {MOST_NAMES} {key}"), "name a group of them".to_owned());
    }
    if items.is_empty() && value.is_list() {
        let remedy = format!("name a {what}, or leave {key} out: then everybody may");
        value.wrong("is empty".to_owned(), remedy);
    }
    let mut known = None;
    let mut id = |item: &Value<'_>| {
        if !item.is_text() {
            let number = item.integer(0..=u64::from(u32::MAX) - 1, "")?;
            return u32::try_from(number).ok();
        }
        let name = item.text()?;
        let known = known.get_or_insert_with(|| fs::read_to_string(file).unwrap_or_default());
        let found = number_of(known, name);
        if found.is_none() {
            let problem = format!("'{}' is no {what} in {file}", shortened(name));
            item.wrong(problem, format!("add it there, or give the {what}'s number"));
        }
        found
    };
    items.iter().take(MOST_NAMES).filter_map(&mut id).collect()
}

/// The number in the third field of the line that begins with a name, as in `/etc/passwd` and `/etc/group`.
fn number_of(file: &str, name: &str) -> Option<u32> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    file.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_number_of_their_line() {
        let file = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nwww-data:x:33:33::/:\nshort:x\n";
        assert_eq!(number_of(file, "root"), Some(0));
        assert_eq!(number_of(file, "www-data"), Some(33));
        for name in ["", "www", "x", "broken", "short", "33"] {
            assert_eq!(number_of(file, name), None, "{name}");
        }
    }
}
