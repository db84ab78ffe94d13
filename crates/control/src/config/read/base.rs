//! Reads the sections about the program itself.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::section::Section;
use crate::config::{
    Daemon, Files, Forwarding, Hugepages, Limits, LogLevel, Memory, Miss, Neighbors, Poll, Workers,
};
use crate::net::shortened;

/// Longest path of a Unix socket: `sun_path` less its zero.
const SOCKET_PATH: usize = 107;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Folders that `daemon.folders` may name.
const MOST_FOLDERS: usize = 16;

/// Files that one list may name.
const MOST_FILES: usize = 256;

/// A socket's path.
pub(super) fn socket(section: &mut Section<'_>) -> Option<PathBuf> {
    let value = section.value("socket")?;
    let text = value.text()?;
    if text.len() > SOCKET_PATH || !text.starts_with('/') {
        let problem = format!("'{}' is no path of a socket", shortened(text));
        value.wrong(problem, format!("use an absolute path of at most {SOCKET_PATH} bytes"));
        return None;
    }
    Some(PathBuf::from(text))
}

pub(super) fn daemon(mut section: Section<'_>) -> Daemon {
    let socket = socket(&mut section);
    let group = section.value("group").and_then(|value| {
        let text = value.text()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.$".contains(c);
        if text.is_empty() || text.len() > 32 || !text.chars().all(fits) {
            let problem = format!("'{}' is no name of a group", shortened(text));
            value.wrong(problem, "use a group of this system, as in \"millrace\"".to_owned());
            return None;
        }
        Some(text.to_owned())
    });
    let folders = folders(&mut section);
    let keep = section.value("keep").and_then(|value| {
        let text = value.text()?;
        let folder = folder(text);
        if folder.is_none() {
            let problem = format!("'{}' is no absolute path of a folder", shortened(text));
            let remedy = "name one, as in \"/var/lib/millrace\", without ..".to_owned();
            value.wrong(problem, remedy);
        }
        folder
    });
    let levels = [
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("trace", LogLevel::Trace),
    ];
    let log = section.word("log", LogLevel::Info, &levels);
    section.finish();
    let socket = socket.unwrap_or_else(|| crate::DEFAULT_SOCKET.into());
    Daemon { socket, group, folders, keep, log }
}

/// An absolute path without `..`.
fn folder(text: &str) -> Option<PathBuf> {
    let plain = !text.contains('\0')
        && !Path::new(text).components().any(|part| part == Component::ParentDir);
    (text.starts_with('/') && plain).then(|| PathBuf::from(text))
}

fn folders(section: &mut Section<'_>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let Some(value) = section.value("folders") else { return folders };
    for item in value.list() {
        let Some(text) = item.text() else { continue };
        let Some(folder) = folder(text) else {
            let problem = format!("'{}' is no absolute path of a folder", shortened(text));
            item.wrong(problem, "name one, as in \"/srv/millrace\", without ..".to_owned());
            continue;
        };
        if folders.len() == MOST_FOLDERS {
            let remedy = "name a folder that holds them".to_owned();
            item.wrong(format!("is beyond the {MOST_FOLDERS} folders"), remedy);
            break;
        }
        folders.push(folder);
    }
    folders
}

pub(super) fn memory(mut section: Section<'_>) -> Memory {
    let words =
        [("auto", Hugepages::Auto), ("require", Hugepages::Require), ("never", Hugepages::Never)];
    let memory = Memory {
        buffers: section.number("buffers", 16_384, 1_024..=4_194_304, "buffers"),
        buffer_size: section.number("buffer-size", 2_048, 1_024..=16_384, "bytes"),
        hugepages: section.word("hugepages", Hugepages::Auto, &words),
    };
    section.finish();
    memory
}

pub(super) fn workers(mut section: Section<'_>, allowed: &[u16]) -> Workers {
    let cores = section.value("cores").map(|value| {
        let mut cores = Vec::new();
        for item in value.list() {
            let Some(core) = item.integer(0..=1_023, "").and_then(|core| u16::try_from(core).ok())
            else {
                continue;
            };
            if cores.contains(&core) {
                item.wrong(format!("core {core} is named twice"), "name it once".to_owned());
            } else if !allowed.contains(&core) {
                let problem = format!("core {core} is not one that this process may use");
                item.wrong(problem, format!("use some of {}", list(allowed)));
            } else {
                cores.push(core);
            }
        }
        if value.is_list() && value.list().is_empty() {
            let problem = "names no core".to_owned();
            value.wrong(problem, format!("use some of {}", list(allowed)));
        }
        cores
    });
    let poll = [("adaptive", Poll::Adaptive), ("busy", Poll::Busy)];
    let workers = Workers {
        cores: cores.filter(|cores| !cores.is_empty()).unwrap_or_else(|| default_cores(allowed)),
        poll: section.word("poll", Poll::Adaptive, &poll),
        vector: section.number("vector", 64, 1..=256, "packets"),
        drain: section.duration("drain", Duration::from_micros(100), Duration::ZERO..=SECOND),
    };
    section.finish();
    workers
}

/// All but the first, which is left to the control thread; the first when there is no other.
fn default_cores(allowed: &[u16]) -> Vec<u16> {
    match allowed {
        [] => vec![0],
        [only] => vec![*only],
        [_, rest @ ..] => rest.to_vec(),
    }
}

fn list(cores: &[u16]) -> String {
    let words: Vec<_> = cores.iter().take(64).map(ToString::to_string).collect();
    words.join(", ")
}

pub(super) fn limits(mut section: Section<'_>) -> Limits {
    let limits = Limits {
        routes4: section.number("routes4", 1_048_576, 1..=16_777_216, "routes"),
        routes6: section.number("routes6", 262_144, 1..=4_194_304, "routes"),
        next_hops: section.number("next-hops", 65_536, 64..=1_048_576, "next hops"),
        neighbors: section.number("neighbors", 65_536, 1..=1_048_576, "neighbours"),
        unresolved: section.number("unresolved", 1_024, 1..=65_536, "neighbours"),
        flows4: section.number("flows4", 0, 0..=67_108_864, "flows"),
        flows6: section.number("flows6", 0, 0..=67_108_864, "flows"),
        bridge_macs: section.number("bridge-macs", 16_384, 1..=1_048_576, "addresses"),
        icmp_rate: section.number("icmp-rate", 1_000, 0..=1_000_000, "messages/s"),
    };
    section.finish();
    limits
}

pub(super) fn forwarding(mut section: Section<'_>) -> Forwarding {
    let words =
        [("unreachable", Miss::Unreachable), ("drop", Miss::Drop), ("reflect", Miss::Reflect)];
    let forwarding = Forwarding {
        miss: section.word("miss", Miss::Unreachable, &words),
        martians: section.flag("martians", true),
        directed_broadcast: section.flag("directed-broadcast", false),
        ecmp_seed: section.optional_number("ecmp-seed", 0..=u64::from(u32::MAX), ""),
    };
    section.finish();
    forwarding
}

/// Defaults are those of RFC 4861 10, but for the stale time, which it leaves open.
pub(super) fn neighbors(mut section: Section<'_>) -> Neighbors {
    let minute = 60 * SECOND;
    let neighbors = Neighbors {
        reachable_time: section.duration("reachable-time", 30 * SECOND, SECOND..=HOUR),
        retrans_timer: section.duration("retrans-timer", SECOND, SECOND / 100..=minute),
        max_probes: section.number("max-probes", 3, 1..=20, "probes"),
        delay_first_probe: section.duration(
            "delay-first-probe",
            5 * SECOND,
            Duration::ZERO..=minute,
        ),
        stale_time: section.duration("stale-time", 10 * minute, SECOND..=24 * HOUR),
        queue: section.number("queue", 16, 0..=1_024, "packets"),
    };
    section.finish();
    neighbors
}

/// Reads a list of files; relative ones start from `folder`.
pub(super) fn files(mut section: Section<'_>, folder: &Path) -> Files {
    let mut files = Vec::new();
    if let Some(value) = section.value("files") {
        for item in value.list() {
            let Some(text) = item.text() else { continue };
            let path = folder.join(text);
            if text.is_empty() || text.contains('\0') {
                item.wrong("is not the name of a file".to_owned(), "name a file".to_owned());
            } else if files.contains(&path) {
                item.wrong(
                    format!("'{}' is named twice", shortened(text)),
                    "name it once".to_owned(),
                );
            } else if files.len() == MOST_FILES {
                let remedy = "join files into one".to_owned();
                item.wrong(format!("is beyond the {MOST_FILES} files of a list"), remedy);
                break;
            } else {
                files.push(path);
            }
        }
    }
    section.finish();
    Files { files }
}
