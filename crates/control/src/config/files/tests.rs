//! Route and flow files, and a configuration that names them.

use std::path::Path;

use proptest::prelude::*;

use super::{FlowFile, RouteFile};
use crate::config::{Config, Reach, Route};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &[u8]) -> std::path::PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Errors without the folder's name.
    fn told(&self, errors: &[crate::ConfigError]) -> Vec<String> {
        let prefix = format!("{}/", self.0.path().display());
        errors.iter().map(|error| error.to_string().replace(&prefix, "")).collect()
    }
}

fn route(text: &str) -> String {
    text.parse::<Route>().map_or_else(|error| format!("! {error}"), |route| route.to_string())
}

#[test]
fn routes_in_the_words_of_ip_route() {
    assert_eq!(route("10.0.0.0/8 via 192.0.2.2"), "10.0.0.0/8 via 192.0.2.2");
    let weighted = "2001:db8::/32 via fe80::1 dev a weight 3 fe80::2 dev b";
    assert_eq!(route(weighted), weighted);
    assert_eq!(
        route("10.0.0.0/8 via 192.0.2.2,192.0.2.3 via 192.0.2.4"),
        "10.0.0.0/8 via 192.0.2.2 192.0.2.3 192.0.2.4"
    );
    assert_eq!(route("default via 2001:db8::1"), "::/0 via 2001:db8::1");
    assert_eq!(route("default dev left"), "0.0.0.0/0 dev left");
    assert_eq!(route("blackhole 10.0.0.0/8"), "10.0.0.0/8 blackhole");
    assert_eq!(route("192.0.2.7 unreachable"), "192.0.2.7/32 unreachable");
    for same in [
        "10.0.0.0/8 lookup blue",
        "10.0.0.0/8 lookup default vrf red",
        "10.0.0.0/8 via 192.0.2.2 dev vrf weight 3 vrf red",
        "10.0.0.0/8 dev vrf",
        "10.0.0.0/8 blackhole vrf red",
        "10.0.0.0/8 via 192.0.2.2 source ospf metric 20",
        "10.0.0.0/8 dev a distance 254 metric 4294967295 vrf red",
        "10.0.0.0/8 dev distance",
    ] {
        assert_eq!(route(same), same);
    }
    assert_eq!(route("10.0.0.0/8 dev a vrf default"), "10.0.0.0/8 dev a", "it has no name");
    let other = route("10.0.0.0/8 dev a vrf red metric 5 distance 110 source ospf");
    assert_eq!(other, "10.0.0.0/8 dev a source ospf metric 5 vrf red", "it is OSPF's distance");
    let wrong = [
        ("10.0.0.0/8 dev a distance 255", "'255' is not a distance; use 0 to 254"),
        ("10.0.0.0/8 dev a metric x", "'x' is not a metric; use 0 to 4294967295"),
        (
            "10.0.0.0/8 dev a source a/b",
            "a source's name is not 1 to 15 letters, digits, '.', '_' and '-'; use one as in ospf",
        ),
        (
            "10.0.0.0/8 dev a metric 1 metric 2",
            "'metric' has no meaning here; write PREFIX via ADDRESS, PREFIX dev NAME, PREFIX lookup VRF or PREFIX blackhole",
        ),
        ("", "'' is not ADDRESS/LENGTH; write it as in 192.0.2.0/24 or 2001:db8::/32"),
        (
            "10.0.0.0/8",
            "10.0.0.0/8 has no target; add via ADDRESS, dev NAME, lookup VRF, blackhole, unreachable or local",
        ),
        ("10.0.0.0/8 via", "nothing follows 'via'; give it a value"),
        ("10.0.0.0/8 lookup", "nothing follows 'lookup'; give it a value"),
        (
            "10.0.0.0/8 via 192.0.2.2 vrf",
            "'vrf' is not an address; write one as in 192.0.2.2 or 2001:db8::2",
        ),
        ("10.0.0.0/8 via x", "'x' is not an address; write one as in 192.0.2.2 or 2001:db8::2"),
        ("10.0.0.0/8 via 192.0.2.2 weight 300", "'300' is not a weight; use 1 to 64"),
        (
            "10.0.0.0/8 dev a b",
            "'b' has no meaning here; write PREFIX via ADDRESS, PREFIX dev NAME, PREFIX lookup VRF or PREFIX blackhole",
        ),
        ("10.0.0.0/33 dev a", "'10.0.0.0/33' has a prefix length above 32; use 0 to 32"),
    ];
    for (text, error) in wrong {
        assert_eq!(route(text), format!("! {error}"), "{text}");
    }
    let many = format!("10.0.0.0/8 via{}", " 192.0.2.2".repeat(65));
    assert_eq!(route(&many), "! it has more than 64 next hops; use at most 64");
}

#[test]
fn a_configurations_files_have_static_routes_alone() {
    let folder = Folder::new();
    let path = folder.write("r", b"10.0.0.0/8 dev a distance 9\n10.0.0.0/8 dev a source bgp\n");
    assert!(
        RouteFile::open(&path).unwrap().all(|route| route.is_ok()),
        "people load what they like"
    );
    let read: Vec<_> = RouteFile::within(&path, &Reach::Anywhere).unwrap().collect();
    assert_eq!(read[0].as_ref().unwrap().distance, 9);
    let error = read[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("r:2: line: has another source than static; leave it out"), "{error}");
}

#[test]
fn a_bad_line_does_not_stop_the_next() {
    let folder = Folder::new();
    let path = folder.write("r", b"# c\n\n10.0.0.0/8 dev a\nx\n\xff\xfe\n11.0.0.0/8 dev a # c\n");
    let mut lines = Vec::new();
    let mut file = RouteFile::open(&path).unwrap();
    while let Some(route) = file.next() {
        lines.push((file.line(), route.is_ok()));
    }
    assert_eq!(lines, [(3, true), (4, false), (5, false), (6, true)]);
}

#[test]
fn a_line_without_end_is_refused() {
    let folder = Folder::new();
    let long = folder.write("r", &vec![b'1'; 9_000]);
    let errors: Vec<_> = RouteFile::open(&long).unwrap().filter_map(Result::err).collect();
    assert_eq!(
        folder.told(&errors),
        ["r:1: line: cannot be read (a line is longer than 8192 bytes); \
         write one route per line, at most 8192 bytes each"]
    );
    let mut text =
        b"source,destination,protocol,source_port,destination_port,egress_port\n\"".to_vec();
    text.extend(vec![b'1'; 9_000]);
    assert!(
        FlowFile::open(&folder.write("f", &text))
            .err()
            .unwrap()
            .problem
            .contains("longer than 8192")
    );
    let gone = RouteFile::open(Path::new("/nonexistent")).err().unwrap().to_string();
    assert!(gone.starts_with("/nonexistent: files: cannot be read (No such file"), "{gone}");
    let folder_error = RouteFile::open(folder.0.path()).err().unwrap();
    assert_eq!(
        folder_error.problem,
        "cannot be read (it is not a regular file); name a file that can be read"
    );
}

const HEADER: &str = "source,destination,protocol,source_port,destination_port,egress_port";

#[test]
fn flows_have_columns_in_any_order() {
    let folder = Folder::new();
    let text = "egress_port,protocol,source,destination,destination_port,source_port,new_source\n\
                \"right\", tcp ,192.0.2.1,198.51.100.1,80,1000,203.0.113.1\n# a comment\n\
                right,17,2001:db8::1,2001:db8::2,,,\n";
    let path = folder.write("f", text.as_bytes());
    let flows: Vec<_> = FlowFile::open(&path).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(
        (flows[0].protocol, flows[0].source_port, flows[0].destination_port),
        (6, 1_000, 80)
    );
    assert_eq!(flows[0].egress_port, "right");
    assert_eq!(flows[0].new_source, Some([203, 0, 113, 1].into()));
    assert_eq!((flows[1].protocol, flows[1].source_port, flows[1].new_source), (17, 0, None));
}

#[test]
fn flow_files_say_what_is_wrong() {
    let folder = Folder::new();
    let opened = |text: &str| {
        folder.told(&[FlowFile::open(&folder.write("f", text.as_bytes())).err().unwrap()])
    };
    assert_eq!(
        opened("source,sorce_port\n"),
        ["f:1: sorce_port: is not a known column; did you mean 'source_port'?"]
    );
    assert_eq!(opened("source,source\n"), ["f:1: source: is there twice; name each column once"]);
    assert_eq!(
        opened(""),
        [format!("f:1: source: is missing; the first line names the columns: {HEADER}")]
    );
    let text = format!(
        "{HEADER}\n192.0.2.1,x,6,1,2,a\n192.0.2.1,192.0.2.2,6,1,65536,a\n\
        192.0.2.1,192.0.2.2,256,1,2,a\n,192.0.2.2,6,1,2,a\n192.0.2.1,192.0.2.2,6\n192.0.2.1,192.0.2.2,6,1,2,\n"
    );
    let path = folder.write("f", text.as_bytes());
    let errors: Vec<_> = FlowFile::open(&path).unwrap().filter_map(Result::err).collect();
    assert_eq!(
        folder.told(&errors),
        [
            "f:2: destination: 'x' is wrong; use an address, as in 192.0.2.1 or 2001:db8::1",
            "f:3: destination_port: '65536' is wrong; use 0 to 65535",
            "f:4: protocol: '256' is wrong; use 0 to 255, tcp, udp, sctp, icmp or ipv6-icmp",
            "f:5: source: is missing; use an address, as in 192.0.2.1 or 2001:db8::1",
            "f:6: line: has 3 columns; the header names 6",
            "f:7: egress_port: is missing; name a port",
        ]
    );
}

#[test]
fn a_configuration_is_loaded_with_its_files() {
    let folder = Folder::new();
    let config = folder.write("m.toml", b"[limits]\nroutes4=2\nflows4=1\n[[port]]\nname='a'\n\
        device='null'\naddresses=['192.0.2.1/24']\n[routes]\nfiles=['r','gone']\n[flows]\nfiles=['f']\n");
    folder.write("r", b"10.0.0.0/8 via 192.0.2.2\n11.0.0.0/8 dev b\n12.0.0.0/8 dev a\n");
    folder.write("f", format!("{HEADER},destination_mac\n\
        192.0.2.1,192.0.2.2,6,1,2,a,\n192.0.2.1,192.0.2.2,6,1,2,b,\n192.0.2.1,2001:db8::1,6,1,2,a,\n\
        192.0.2.1,192.0.2.2,1,1,2,a,\n192.0.2.1,192.0.2.2,6,1,2,a,02:00:00:00:00:01\n\
        192.0.2.1,192.0.2.2,6,1,3,a,02:00:00:00:00:01\n2001:db8::1,2001:db8::2,6,1,3,a,\n").as_bytes());
    let told = folder.told(&Config::load(&config, Reach::Anywhere).unwrap_err());
    assert_eq!(
        told,
        [
            "r:2: port: 'b' is no interface; use one of a",
            "r:3: line: is beyond the 2 of limits.routes4; raise the limit, or remove lines",
            "gone: files: cannot be read (No such file or directory (os error 2)); \
         name a file that can be read; relative names start from the configuration",
            "f:2: destination_mac: destination_mac is missing; give it, or next-hop-mac of port 'a'",
            "f:3: egress_port: 'b' is no port; use one of a",
            "f:4: destination: destination 2001:db8::1 is not of the source's family; use addresses of one family",
            "f:5: protocol: protocol 1 has no ports; use 0 for source_port and destination_port",
            "f:7: line: is beyond the 1 of limits.flows4; raise the limit, or remove lines",
            "f:8: source: there is no room for IPv6 flows; set limits.flows6 to their number",
        ]
    );
    folder.write("gone", b"");
    folder.write("r", b"10.0.0.0/8 via 192.0.2.2\n");
    folder.write("f", HEADER.as_bytes());
    assert_eq!(Config::load(&config, Reach::Anywhere).unwrap().0.routes.files.len(), 2);
    folder.write("r", "10.0.0.0/8 via 192.0.2.2\n".repeat(5_000).as_bytes());
    let mut told = Vec::new();
    let mut tell = |file: &Path| told.push(file.file_name().unwrap().to_owned());
    Config::load_told(&config, Reach::Anywhere, &mut tell).unwrap_err();
    assert_eq!(told, ["m.toml", "r", "r", "r", "gone", "f"], "5,000 lines take their time");
    let missing =
        Config::load(Path::new("/nonexistent"), Reach::Anywhere).unwrap_err()[0].to_string();
    assert!(missing.starts_with("/nonexistent: cannot be opened (No such file"), "{missing}");
}

#[test]
fn ports_that_a_checksum_covers_are_not_replaced() {
    let folder = Folder::new();
    let config = folder.write(
        "m.toml",
        b"[limits]\nflows4=9\n[[port]]\nname='a'\n\
        device='null'\naddresses=['192.0.2.1/24']\n[flows]\nfiles=['f']\n",
    );
    let line = |protocol: u8| format!("192.0.2.1,192.0.2.2,{protocol},1,2,a,02:00:00:00:00:01,7\n");
    let lines: String = [6, 132, 136].into_iter().map(line).collect();
    folder.write("f", format!("{HEADER},destination_mac,new_source_port\n{lines}").as_bytes());
    assert_eq!(
        folder.told(&Config::load(&config, Reach::Anywhere).unwrap_err()),
        ["f:3: protocol: protocol 132 keeps its ports; \
          leave new_source_port and new_destination_port to TCP, UDP and UDP-Lite"]
    );
}

/// What `/etc/shadow`, a key or a mailbox may hold.
const SECRETS: [&str; 4] = [
    "root:$6$hunter2:19000:0:99999:7:::\n",
    "-----BEGIN hunter2 KEY-----\nhunter2hunter2\n",
    "hunter2 = \"hunter2\"\n[hunter2]\na = 1\n",
    "hunter2,hunter2\nhunter2,1\n",
];

#[test]
fn what_is_something_else_is_not_quoted() {
    let folder = Folder::new();
    for secret in SECRETS {
        let path = folder.write("secret", secret.as_bytes());
        let mut errors = Config::load(&path, Reach::Anywhere).unwrap_err();
        errors.extend(RouteFile::within(&path, &Reach::Anywhere).unwrap().filter_map(Result::err));
        errors.extend(FlowFile::within(&path, &Reach::Anywhere).err());
        let told = folder.told(&errors).join("\n");
        assert!(errors.len() >= 3 && !told.contains("hunter2"), "{told}");
    }
    // What is nearly right is, so that it can be made right.
    let text = "10.0.0.0/8 dev a\n10.0.0.0/8 dev a bee\n";
    let path = folder.write("r", text.as_bytes());
    let routes = RouteFile::within(&path, &Reach::Anywhere).unwrap();
    let told = folder.told(&routes.filter_map(Result::err).collect::<Vec<_>>());
    assert!(told.len() == 1 && told[0].starts_with("r:2: line: 'bee' has no meaning"), "{told:?}");
    let path = folder.write("f", b"source,bee\n");
    let told = folder.told(&[FlowFile::within(&path, &Reach::Anywhere).err().unwrap()]);
    assert!(told[0].starts_with("f:1: bee: is not a known column"), "{told:?}");
    let path = folder.write("c", b"[prot]\n");
    let told = folder.told(&Config::load(&path, Reach::Anywhere).unwrap_err());
    assert_eq!(told, ["c:1: prot: is not a known key; did you mean 'port'?"]);
    // Who names it may read it.
    let path = folder.write("r", b"10.0.0.0/8 dev a bee\n");
    let told = folder.told(&[RouteFile::open(&path).unwrap().next().unwrap().unwrap_err()]);
    assert!(told[0].contains("'bee'"), "{told:?}");
}

#[test]
fn a_configuration_of_the_api_names_only_files_within_reach() {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.path().join("etc")).unwrap();
    std::fs::create_dir(folder.0.path().join("more")).unwrap();
    folder.write("secret", b"hunter2");
    folder.write("etc/r", b"10.0.0.0/8 via 192.0.2.2\n");
    folder.write("more/r", b"11.0.0.0/8 via 192.0.2.2\n");
    std::os::unix::fs::symlink("../secret", folder.0.path().join("etc/link")).unwrap();
    let port = "[[port]]\nname='a'\ndevice='null'\naddresses=['192.0.2.1/24']\n";
    let more = folder.0.path().join("more");
    let first = format!("[daemon]\nfolders=['{}']\n{port}", more.display());
    let first = folder.write("etc/m.toml", first.as_bytes());
    let (config, _) = Config::load(&first, Reach::Anywhere).unwrap();
    let reach = Reach::of_api(&first, &config);
    let load = |name: &str, files: &str| {
        let path = folder.write(name, format!("{port}[routes]\nfiles=[{files}]\n").as_bytes());
        Config::load(&path, reach.clone())
    };
    assert!(load("etc/n.toml", "'r','../more/r'").is_err(), "by '..' nothing is reached");
    let there = format!("'r','{}/r'", more.display());
    assert!(load("etc/n.toml", &there).is_ok() && load("more/n.toml", &there).is_err());
    for out in ["link", "../secret", "/etc/shadow", "/nowhere"] {
        let told = folder.told(&load("etc/n.toml", &format!("'{out}'")).unwrap_err());
        assert!(told.len() == 1 && told[0].contains("it lies outside"), "{told:?}");
    }
    let told = folder.told(&load("n.toml", "").unwrap_err());
    assert!(told[0].starts_with("n.toml: cannot be opened (it lies outside"), "{told:?}");
}

proptest! {
    #[test]
    fn no_route_text_panics(text in "(default|[0-9a-f:./]{0,12}) (via|dev|blackhole)? ?[ -~]{0,40}") {
        if let Ok(route) = text.parse::<Route>() {
            prop_assert_eq!(route.to_string().parse::<Route>(), Ok(route));
        }
    }

    #[test]
    fn no_flow_file_panics(text in any::<Vec<u8>>(), fields in "[ -~\n]{0,200}") {
        let folder = Folder::new();
        let lines = [HEADER.as_bytes(), b"\n", fields.as_bytes(), b"\n", &text].concat();
        let count = FlowFile::open(&folder.write("f", &lines)).unwrap().count();
        prop_assert!(count <= lines.len());
        if let Ok(file) = FlowFile::open(&folder.write("f", &text)) {
            let _ = file.count();
        }
    }
}
