//! `millraced` as a device under test.
//!
//! | module | job |
//! | --- | --- |
//! | `tables` | its routes, its neighbours, its flows |
//! | `updates` | changes of its routes while frames pass |

mod tables;
mod updates;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(super) use updates::Updates;

use super::addresses::{DEVICE_MACS, FOUR, NAMES, SIX, Subnet, TESTER_MACS};
use super::scenario::{Attach, Forwarding, Millraced, Scenario};
use crate::failure::Failure;

/// Data room of a buffer that holds a frame of any size: bytes.
const LARGE_BUFFER: u32 = 9728;
/// The port to which an access list sends what it denies: it swallows everything.
const DENIED: &str = "denied";

/// Sockets of its ports.
#[derive(Debug)]
pub(super) struct Sockets {
    /// To the tester.
    pub(super) outer: [PathBuf; 2],
    /// To the guest, if there is one.
    pub(super) guest: [PathBuf; 2],
}

/// Writes its configuration; `core`: for its worker, if the scenario names none.
pub(super) fn configure(
    scenario: &Scenario,
    daemon: &Millraced,
    core: usize,
    sockets: &Sockets,
    config: &Path,
) -> Result<(), Failure> {
    let cores = if daemon.cores.is_empty() { vec![core] } else { daemon.cores.clone() };
    let mut text = format!("[workers]\ncores = {cores:?}\npoll = \"busy\"\n");
    text += &memory(scenario, daemon);
    text += &ports(scenario, daemon, sockets, &cores);
    match daemon.forwarding {
        Forwarding::Bridge => {
            let _ = write!(text, "\n[[bridge]]\nname = \"switch\"\nmembers = {NAMES:?}\n");
        }
        Forwarding::Guest => text += &guest(),
        Forwarding::Routes => text += &tables::routes(scenario, daemon, config)?,
        Forwarding::FlowTable => text += &tables::flows(scenario, config)?,
    }
    Ok(std::fs::write(config, text)?)
}

/// Entries of the tables that it reads when it starts.
pub(super) fn entries(scenario: &Scenario, daemon: &Millraced) -> u64 {
    let each_way = match daemon.forwarding {
        Forwarding::Routes => daemon.routes.saturating_add(daemon.acl),
        Forwarding::FlowTable => scenario.flows.count,
        Forwarding::Bridge | Forwarding::Guest => 0,
    };
    2 * scenario.frames.versions().len() as u64 * u64::from(each_way)
}

fn memory(scenario: &Scenario, daemon: &Millraced) -> String {
    let buffers = daemon.buffers.map(|buffers| format!("buffers = {buffers}\n"));
    let large = scenario.frames.mtu().map(|_| format!("buffer-size = {LARGE_BUFFER}\n"));
    let keys: String = buffers.into_iter().chain(large).collect();
    if keys.is_empty() { keys } else { format!("\n[memory]\n{keys}") }
}

/// Ports; with several workers each port's packets are spread over all of them.
fn ports(scenario: &Scenario, daemon: &Millraced, sockets: &Sockets, cores: &[usize]) -> String {
    let mut text = String::new();
    for (number, name) in NAMES.iter().enumerate() {
        let socket = sockets.outer[number].display();
        let device = match daemon.attach {
            Attach::Memif => {
                format!("memif:{socket},role=server,{}", scenario.trials.ring_option())
            }
            Attach::VhostUser => format!("vhost-user:{socket}"),
        };
        let (mac, next) = (DEVICE_MACS[number], TESTER_MACS[number]);
        let addresses = [FOUR[number], SIX[number]].map(Subnet::of_device);
        let addresses = format!("addresses = {addresses:?}\n");
        // Neither a bridge nor a cross-connect looks at tags or has addresses.
        let routed = matches!(daemon.forwarding, Forwarding::Routes | Forwarding::FlowTable);
        let vlan = scenario.frames.vlan.filter(|_| routed);
        let own = if !routed || vlan.is_some() { "" } else { &addresses };
        let spread =
            if cores.len() > 1 { format!("software-rss = {cores:?}\n") } else { String::new() };
        let mtu = mtu(scenario);
        let _ = write!(
            text,
            "\n[[port]]\nname = \"{name}\"\ndevice = \"{device}\"\nmac = \"{mac}\"\n\
             next-hop-mac = \"{next}\"\n{mtu}{spread}{own}"
        );
        if let Some(id) = vlan {
            let _ = write!(
                text,
                "\n[[vlan]]\nname = \"{name}-vlan\"\nport = \"{name}\"\nid = {id}\n{addresses}"
            );
        }
        if daemon.forwarding == Forwarding::Guest {
            let socket = sockets.guest[number].display();
            let _ = write!(
                text,
                "\n[[port]]\nname = \"guest-{name}\"\ndevice = \"vhost-user:{socket}\"\n{mtu}{spread}"
            );
        }
    }
    text
}

fn mtu(scenario: &Scenario) -> String {
    scenario.frames.mtu().map_or_else(String::new, |mtu| format!("mtu = {mtu}\n"))
}

/// Each port is joined to one of the guest's.
fn guest() -> String {
    NAMES
        .map(|name| format!("\n[[cross-connect]]\nfrom = \"{name}\"\nto = \"guest-{name}\"\n"))
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scenario, which is written to a folder, and the daemon in it.
    fn read(scenario: &str, folder: &Path) -> (Scenario, Millraced) {
        let file = folder.join("scenario.toml");
        std::fs::write(&file, format!("title = \"x\"\n{scenario}")).unwrap();
        let scenario = Scenario::read(&file).unwrap().remove(0);
        let daemon = scenario.device.millraced().unwrap().clone();
        (scenario, daemon)
    }

    #[test]
    fn entries_are_those_of_both_ways_and_all_versions() {
        let folder = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let (scenario, daemon) = read(text, folder.path());
            entries(&scenario, &daemon)
        };
        let both = "frames = { ipv6-share = 0.5 }";
        assert_eq!(of("device = { kind = \"millraced\", routes = 4, acl = 10 }"), 28);
        assert_eq!(of(&format!("{both}\ndevice = {{ kind = \"millraced\", routes = 4 }}")), 16);
        let flows = "flows = { count = 16_777_216 }\n";
        let table = "device = { kind = \"millraced\", forwarding = \"flow-table\" }";
        assert_eq!(of(&format!("{flows}{table}")), 2 * 16_777_216);
        let bridge = "device = { kind = \"millraced\", forwarding = \"bridge\" }";
        assert_eq!(of(&format!("{flows}{bridge}")), 0);
    }

    /// The configuration, and the files beside it.
    fn written(scenario: &str) -> (String, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("millrace.toml");
        let path = |name: &str| PathBuf::from(format!("/run/{name}"));
        let sockets = Sockets { outer: ["l", "r"].map(path), guest: ["gl", "gr"].map(path) };
        let (scenario, daemon) = read(scenario, folder.path());
        configure(&scenario, &daemon, 3, &sockets, &config).unwrap();
        (std::fs::read_to_string(&config).unwrap(), folder)
    }

    fn file(folder: &tempfile::TempDir, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_router_has_routes_of_all_versions_over_all_next_hops() {
        let (text, folder) = written(
            "device = { kind = \"millraced\", routes = 2, next-hops = 3 }\nframes = { ipv6-share = 0.5 }\n",
        );
        let routes = file(&folder, "millrace.routes");
        assert_eq!(routes.len(), 8);
        assert_eq!(routes[0], "198.19.0.0/17 via 192.0.2.130 192.0.2.131 192.0.2.132");
        assert_eq!(routes[3], "198.18.128.0/17 via 192.0.2.2 192.0.2.3 192.0.2.4");
        assert!(
            routes[4].starts_with("2001:2:0:8000:0:1::/113 via 2001:db8:2::2 2001:db8:2::3"),
            "{routes:?}"
        );
        assert_eq!(text.matches("[[neighbor]]").count(), 12);
        assert!(text.contains("routes4 = 68") && text.contains("routes6 = 68"), "{text}");
        assert!(text.contains("device = \"memif:/run/l,role=server,rsize=10\""), "{text}");
        assert!(text.contains("cores = [3]") && !text.contains("mtu") && !text.contains("flows"));
    }

    #[test]
    fn an_access_list_denies_what_test_frames_are_not() {
        let (text, folder) =
            written("device = { kind = \"millraced\", acl = 2 }\nflows = { count = 2 }\n");
        let entries = file(&folder, "millrace.csv");
        assert_eq!(entries[1], "198.18.0.0,198.19.0.0,tcp,49152,49153,denied");
        assert_eq!((entries.len(), &entries[4][..22]), (5, "198.19.0.0,198.18.0.1,"));
        assert!(text.contains("flows4 = 4") && text.contains("name = \"denied\""), "{text}");
        assert!(text.contains("device = \"null,no-rx=1\""), "{text}");
    }

    #[test]
    fn a_guest_lies_between_the_ports() {
        let (text, _folder) = written(
            "device = { kind = \"millraced\", forwarding = \"guest\", attach = \"vhost-user\" }\n\
             frames = { sizes = [9018], vlan = 5 }\n",
        );
        for words in [
            "device = \"vhost-user:/run/l\"",
            "device = \"vhost-user:/run/gr\"",
            "from = \"right\"\nto = \"guest-right\"",
            "mtu = 8996",
            "buffer-size = 9728",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("[[vlan]]") && !text.contains("addresses"), "{text}");
    }
}
