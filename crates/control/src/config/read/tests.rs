//! Every section with its defaults, and every error with its exact text.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{BridgeMember, Config, Miss, NextHop, QueueCore, RouteTarget, Source};

fn parse(text: &str) -> Result<Config, Vec<String>> {
    Config::parse_for(text, Path::new("/etc/m.toml"), &[0, 1, 2])
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// The errors of a text, without the file's name.
fn errors(text: &str) -> Vec<String> {
    let errors = parse(text).expect_err("must be refused");
    errors.into_iter().map(|e| e.trim_start_matches("/etc/m.toml:").to_owned()).collect()
}

const WHOLE: &str = include_str!("whole.toml");

#[test]
fn an_empty_file_has_every_default() {
    let config = parse("").unwrap();
    assert_eq!(config.daemon.socket, PathBuf::from("/run/millrace/millrace.sock"));
    assert_eq!(config.memory.buffers, 16_384);
    assert_eq!(config.workers.cores, [1, 2]);
    assert_eq!(config.workers.drain, Duration::from_micros(100));
    assert_eq!(config.limits.routes4, 1_048_576);
    assert_eq!(config.forwarding.miss, Miss::Unreachable);
    assert_eq!(config.neighbors.reachable_time, Duration::from_secs(30));
    assert!(config.sessions.enabled && config.sessions.users.is_empty());
    assert_eq!(config.sessions.ports.to_string(), "10240-32767");
    assert_eq!(Config::parse_for("", Path::new("m"), &[5]).unwrap().workers.cores, [5]);
}

#[test]
fn every_key_is_read() {
    let config = parse(WHOLE).unwrap();
    assert_eq!(config.daemon.group.as_deref(), Some("millrace"));
    let left = config.port("left").unwrap();
    assert_eq!(left.device.as_str(), "afpacket:veth0");
    assert_eq!((left.device.kind(), left.device.argument()), ("afpacket", "veth0"));
    assert_eq!(left.mac.unwrap().to_string(), "02:00:00:00:00:01");
    assert_eq!((left.rx_queues, left.client_queues), (2, 1));
    assert_eq!(left.queues, [QueueCore { queue: 0, core: 1 }, QueueCore { queue: 1, core: 2 }]);
    assert_eq!(config.port("right").unwrap().software_rss, [1, 2]);
    assert_eq!(config.vlans[0].mtu, 1_400);
    let sizes = [left.features, config.vlans[0].features, config.bridges[0].features];
    assert_eq!(sizes.map(|features| features.tcp_mss), [1_440, 1_360, 1_380].map(Some));
    assert_eq!(config.port("right").unwrap().features.keys().next(), None);
    let bridge = &config.bridges[0];
    let member =
        |name: &str| BridgeMember { interface: name.into(), vlans: vec![], untagged: None };
    let third = BridgeMember { interface: "c".into(), vlans: vec![10, 20], untagged: Some(10) };
    assert_eq!(bridge.members, [member("a"), member("b"), third]);
    assert_eq!(bridge.ageing, Duration::from_secs(120));
    assert!(config.cross_connects[0].both_ways);
    let routes = &config.static_routes;
    assert_eq!(routes[0].target, RouteTarget::Via(vec![NextHop::new([192, 0, 2, 2].into())]));
    assert_eq!(routes[1].prefix.to_string(), "10.0.0.0/8");
    assert!(
        matches!(&routes[2].target, RouteTarget::Via(hops) if hops.len() == 2 && hops[1].weight == 3)
    );
    assert_eq!(routes[3].target, RouteTarget::Port("right".into()));
    assert_eq!(config.routes.files, [PathBuf::from("/etc/routes.txt")]);
    assert_eq!(config.flows.files, [PathBuf::from("/srv/flows.csv")]);
    assert_eq!(config.connected(Some("blue"), [10, 1, 0, 7].into()).unwrap().name, "br0");
    assert!(config.connected(None, [10, 1, 0, 7].into()).is_none(), "it is in a VRF");
    let vrfs = ["left.100", "left.200", "br0"].map(|name| config.interface(name).unwrap().vrf);
    assert_eq!(vrfs, [None, Some("red"), Some("blue")]);
    assert_eq!(routes[5].target, RouteTarget::Lookup("blue".into()));
    assert_eq!((routes[5].vrf.as_deref(), routes[4].vrf.as_deref()), (Some("red"), None));
    assert_eq!(routes[6].target, RouteTarget::Lookup("default".into()));
    assert_eq!((routes[0].distance, routes[0].metric, &routes[0].source), (1, 0, &Source::STATIC));
    assert_eq!((routes[3].metric, routes[7].distance), (u32::MAX, 254));
    assert_eq!(routes[7].prefix, routes[0].prefix, "a second way, for when the first is gone");
    let sessions = &config.sessions;
    assert_eq!((&sessions.users[..], &sessions.groups[..]), (&[0, 33][..], &[0, 1000][..]));
    assert_eq!(sessions.ports.to_string(), "20000-29999");
}

#[test]
fn queues_without_cores_go_round_the_workers() {
    let config = parse(
        "[[port]]\nname='a'\ndevice='null'\nrx-queues=3\n[[port]]\nname='b'\ndevice='null'\n",
    );
    let config = config.unwrap();
    let cores: Vec<_> = config.ports.iter().flat_map(|p| &p.queues).map(|q| q.core).collect();
    assert_eq!(cores, [1, 2, 1, 2]);
}

#[test]
fn it_is_written_as_it_is_read() {
    let config = parse(WHOLE).unwrap();
    let text = toml::to_string(&config).unwrap();
    assert_eq!(parse(&text).unwrap(), config, "{text}");
}

/// Blocks of a text and, behind `! `, every error that it must get, word by word.
const REFUSALS: &str = include_str!("refusals.txt");

#[test]
fn every_error_is_told_word_by_word() {
    for block in REFUSALS.split("\n---\n") {
        let (expected, text): (Vec<_>, Vec<_>) =
            block.lines().partition(|line| line.starts_with("! "));
        let told: Vec<_> =
            errors(&text.join("\n")).iter().map(|error| format!("! {error}")).collect();
        assert_eq!(told, expected, "{}", text.join("\n"));
    }
}

#[test]
fn errors_are_bounded() {
    let text = "x='y'\n".replace('x', "[[port]]\nname");
    assert_eq!(errors(&text.repeat(1_000)).len(), 100);
    let long = format!("# {}\n", "x".repeat(17 << 20));
    assert!(errors(&long)[0].contains("use at most 16777216"));
}

#[test]
fn devices_that_can_be_shared() {
    let pair = |a: &str, b: &str| {
        parse(&format!("[[port]]\nname='a'\ndevice='{a}'\n[[port]]\nname='b'\ndevice='{b}'"))
            .is_ok()
    };
    assert!(pair("memif:/run/m,id=0", "memif:/run/m,id=1"));
    assert!(!pair("memif:/run/m,id=0", "memif:/run/m,id=0"));
    assert!(pair("null", "null") && pair("pcap:f", "pcap:f"));
    assert!(!pair("afpacket:e", "afpacket:e,queues=2"));
}
