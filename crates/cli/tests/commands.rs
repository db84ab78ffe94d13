//! The program against a daemon that gives fixed answers.

#[cfg(test)]
mod daemon;

use std::path::Path;
use std::process::Command;

use daemon::{Daemon, done};

const PORT: &str = r#"{"name":"left","device":"afpacket:veth0","driver":"net_af_packet",
"state":"up","mac":"02:00:00:00:00:01","mtu":1500,"promiscuous":false,"speed":10000,
"rx_queues":1,"tx_queues":2,"counters":{"rx_packets":1234567,"rx_bytes":1500000000,"rx_missed":1,
"rx_errors":0,"rx_no_buffer":0,"tx_packets":5,"tx_bytes":300,"tx_dropped":2,"tx_errors":0}}"#;

#[test]
fn ports_are_an_aligned_table() {
    let list = format!("[{PORT}]");
    let daemon = Daemon::new(&[("GET /v1/ports", 200, &list)]);
    let shown = daemon.run(&["show", "ports"]);
    assert_eq!(shown.status, 0, "{}", shown.errors);
    let lines: Vec<_> = shown.output.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("PORT  NUMBER  STATE  DEVICE"), "{}", lines[0]);
    for (name, value) in [("RX PACKETS", "1,234,567"), ("RX BYTES", "1.50 GB"), ("LOST", "3")] {
        let end = lines[0].find(name).unwrap() + name.len();
        assert!(lines[1][..end].ends_with(value), "{name}\n{}", shown.output);
    }
    let json = daemon.run(&["--json", "show", "ports"]);
    assert!(json.output.contains("\"rx_packets\": 1234567"), "{}", json.output);
}

#[test]
fn watching_shows_rates() {
    let later = PORT.replace("\"rx_packets\":1234567", "\"rx_packets\":999999991234567");
    let lists = (format!("[{PORT}]"), format!("[{later}]"));
    let path = "GET /v1/ports";
    let daemon = Daemon::new(&[(path, 200, &lists.0), (path, 200, &lists.1)]);
    let shown = daemon.run(&["show", "ports", "--watch", "0.1", "--rounds", "1"]);
    assert_eq!(shown.status, 0, "{}", shown.errors);
    assert!(shown.output.contains("Tpps") && shown.output.contains("0 bit/s"), "{}", shown.output);
    assert_eq!(daemon.asked().len(), 2);
}

#[test]
fn workers_have_load_and_cycles() {
    let body = r#"[{"core":1,"answers":true,"rounds":10,"idle_rounds":4,"busy_cycles":3000,
        "idle_cycles":500,"sleep_cycles":8500,"tsc_hz":1,"packets":100,"punts":2,"sleeps":1,"icmp_limited":4321}]"#;
    let daemon = Daemon::new(&[("GET /v1/workers", 200, body)]);
    let shown = daemon.run(&["show", "workers"]).output;
    assert!(shown.contains("25.0 %") && shown.contains("30.0"), "{shown}");
    assert!(shown.contains("ICMP LIMITED") && shown.contains("4,321"), "{shown}");
    assert!(shown.contains(" up ") && !shown.contains("no answer"), "{shown}");
    let silent = body.replace("true", "false");
    let daemon = Daemon::new(&[("GET /v1/workers", 200, &silent)]);
    let shown = daemon.run(&["show", "workers"]).output;
    assert!(shown.contains("no answer"), "{shown}");
    let path = "GET /v1/workers";
    let daemon = Daemon::new(&[(path, 200, &silent), (path, 200, &silent)]);
    let shown = daemon.run(&["show", "workers", "--watch", "0.1", "--rounds", "1"]).output;
    assert!(shown.contains("   1  no answer "), "each value under its heading: {shown}");
}

#[test]
fn sessions_are_filtered_by_the_daemon_and_shown_as_a_table_or_in_full() {
    let one = r#"{"stack":3,"name":"nginx","pid":17,"uid":33,"protocol":"tcp","local":"10.0.1.1:80",
        "remote":"10.0.1.2:50000","state":"established","outgoing":false,"linked":true,"age":12345,"written":7,
        "receive_queue":1,"send_queue":2000,"rtt":1500,"rtt_variation":750,"least_rtt":900,
        "timeout":201000,"backoff":0,"congestion_control":"cubic","congestion_window":14480,
        "in_flight":1448,"lost":0,"retransmissions":4,"peer_window":64000,"own_window":65535,
        "peer_window_shift":7,"own_window_shift":9,"mss":1448,"path_mtu":1500,"timestamps":true,
        "sack":true,"ecn":false,"bytes_sent":5000,"bytes_acknowledged":4000,"bytes_received":300,
        "segments_sent":9,"segments_received":8,"delivery_rate":125000,"last_sent":10}"#;
    let page = format!(r#"{{"connections":[{one}],"total":5,"time_wait":0,"unlisted":2}}"#);
    let path = "GET /v1/sessions/connections?address=10.0.1.2%2F32&limit=1&port=80&process=nginx\
                &stack=3&state=established%2Cclose-wait";
    let words = "show sessions --port 80 --address 10.0.1.2 --state established,close-wait --process nginx \
                 --stack 3 --limit 1";
    let words: Vec<&str> = words.split_whitespace().collect();
    let daemon = Daemon::new(&[(path, 200, &page), (path, 200, &page)]);
    let shown = daemon.run(&words);
    assert_eq!(shown.status, 0, "{}", shown.errors);
    for part in ["10.0.1.1:80  10.0.1.2:50000  nginx/17  link", "1.500 ms", "14.5 kB", "64.0 kB"] {
        assert!(shown.output.contains(part), "{part}: {}", shown.output);
    }
    assert!(shown.output.contains("1 shown, 5 in all"), "{}", shown.output);
    assert!(shown.output.contains("2 more for which"), "{}", shown.output);
    let full = daemon.run(&[&words[..], &["--info"]].concat()).output;
    for part in [
        "by link, for 12 s",
        "ts sack cubic",
        "wscale:7,9",
        "rtt:1.500/0.750",
        "retrans:4",
        "lastsnd:10",
        "1.00 Mbit/s",
    ] {
        assert!(full.contains(part), "{part}: {full}");
    }
    let wrong = daemon.run(&["show", "sessions", "--address", "10.0.1.2/24"]);
    assert_eq!(wrong.status, 2, "{}", wrong.errors);
}

#[test]
fn udp_sockets_follow_connections_or_stand_alone() {
    let open = r#"{"stack":4,"name":"dnsmasq","pid":18,"uid":99,"local":"0.0.0.0:53","state":"unconnected",
        "written":7,"receive_queue":1736,"send_queue":640,"dropped":12}"#;
    let connected = r#"{"stack":5,"name":"dig","pid":19,"uid":99,"local":"10.0.1.1:10240","remote":"10.0.1.2:53",
        "state":"established","written":7,"receive_queue":0,"send_queue":0,"dropped":0}"#;
    let page = format!(
        r#"{{"connections":[],"total":0,"time_wait":0,"unlisted":0,"udp_sockets":[{open},{connected}],
        "udp_total":1500,"udp_unlisted":3}}"#
    );
    let none = r#"{"connections":[],"total":0,"time_wait":0,"unlisted":0}"#;
    let path = |query: &str| format!("GET /v1/sessions/connections?limit=1000{query}");
    let [all, tcp, udp] = ["", "&protocol=tcp", "&protocol=udp"].map(path);
    let daemon = Daemon::new(&[
        (&all, 200, &page),
        (&udp, 200, &page),
        (&udp, 200, none),
        (&tcp, 200, none),
        (&all, 200, none),
    ]);
    let first = daemon.run(&["show", "sessions", "--tcp", "--udp"]);
    assert_eq!(first.status, 0, "{}", first.errors);
    for part in [
        "unconnected  0.0.0.0:53      -            dnsmasq/18      4    1736     640     12",
        "established  10.0.1.1:10240  10.0.1.2:53  dig/19          5       0       0      0",
        "2 UDP sockets shown, 1,500 in all",
        "3 more UDP sockets for which",
    ] {
        assert!(first.output.contains(part), "{part}: {}", first.output);
    }
    assert!(first.output.starts_with("UDP  "), "no table without rows: {}", first.output);
    let output = |words: &[&str]| daemon.run(&[&["show", "sessions"][..], words].concat()).output;
    assert_eq!(output(&["--udp"]), first.output);
    assert_eq!(output(&["--udp"]), "no UDP socket\n");
    assert_eq!(output(&["--tcp"]), "no connection\n");
    assert_eq!(output(&[]), "no connection\n");
}

#[test]
fn stacks_and_listeners_name_their_processes() {
    let stack = r#"[{"number":7,"client":2,"name":"nginx","library":"1","pid":4321,"uid":33,"age":61,
        "started":true,"worker":1,"memory":4718592,"rings":1,"slots":1024,"capacity":1984,"claims":65536,
        "listeners":[1],"leases":["10240-10495"],"delivered":1500,"delivered_bytes":90000,"full":0,
        "sent":1400,"sent_bytes":80000,"refused":{"stack-source":2,"stack-port":1},"no_buffer":1,
        "malformed":0,"tcp":{"connections":0,"time_wait":0,"established":0,"retransmissions":0,
        "timeouts":0,"resets":0,"accept_queue_full":0,"syn_cookies":0,"syns_dropped":0,"dropped":0,
        "link_refused":5}}]"#;
    let listener = r#"[{"number":1,"protocol":"tcp","address":"[::]:80","only_v6":true,
        "members":[{"stack":7,"client":2,"name":"nginx","pid":4321,"uid":33,"weight":1,"share":64,
        "waiting":3,"backlog":511}],
        "earlier":[5]},
        {"number":2,"protocol":"tcp","address":"0.0.0.0:443","only_v6":false,"members":[],"earlier":[]}]"#;
    let (stacks, listeners) = ("GET /v1/sessions/stacks", "GET /v1/sessions/listeners");
    let daemon = Daemon::new(&[(stacks, 200, stack), (listeners, 200, listener)]);
    let shown = daemon.run(&["show", "stacks"]);
    assert_eq!(shown.status, 0, "{}", shown.errors);
    for part in ["nginx", "4321", "10240-10495", "1,500", "1 min 1 s ago", "33  stack-1"] {
        assert!(shown.output.contains(part), "{part}\n{}", shown.output);
    }
    let last: Vec<_> = shown.output.split_whitespace().rev().take(2).collect();
    assert_eq!(last, ["5", "4"], "refused on links, refused by the daemon");
    let shown = daemon.run(&["show", "listeners"]).output;
    for part in ["tcp", "[::]:80 only", "nginx", "25.0 %", "leaving"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let row = shown.lines().find(|line| line.contains("nginx")).unwrap();
    let last: Vec<_> = row.split_whitespace().rev().take(2).collect();
    assert_eq!(last, ["511", "3"], "of so many, so many wait");
    let vacant = |line: &str| line.contains("0.0.0.0:443") && line.contains("vacant");
    assert!(shown.lines().any(vacant), "{shown}");
    assert_eq!(shown.matches("vacant").count(), 1, "{shown}");
    let none = Daemon::new(&[(stacks, 200, "[]"), (listeners, 200, "[]")]);
    assert!(none.run(&["show", "stacks"]).output.contains("no process has a stack"));
    assert!(none.run(&["show", "listeners"]).output.contains("nothing is served"));
}

#[test]
fn a_file_is_checked_before_it_is_sent() {
    let daemon =
        Daemon::new(&[("POST /v1/routes", 200, r#"{"added":2,"replaced":0,"removed":0}"#)]);
    let write = |text: &str| std::fs::write(daemon.folder.path().join("r.txt"), text).unwrap();
    write("# two\n10.0.0.0/8 via 192.0.2.2\nnonsense\n");
    let refused = daemon.run(&["route", "load", "r.txt"]);
    assert_eq!(refused.status, 1);
    assert!(refused.errors.contains("r.txt:3: line: "), "{}", refused.errors);
    assert!(daemon.asked().is_empty());
    write("10.0.0.0/8 via 192.0.2.2\n\nblackhole 192.168.0.0/16 # not ours\n");
    let loaded = daemon.run(&["route", "load", "r.txt"]);
    assert_eq!(loaded.output, "routes: 2 added\n");
    assert!(daemon.asked()[0].1.ends_with(r#"{"prefix":"192.168.0.0/16","kind":"blackhole"}]"#));
}

#[test]
fn flows_are_loaded_from_csv() {
    let daemon = Daemon::new(&[("POST /v1/flows", 200, r#"{"added":1,"replaced":0,"removed":0}"#)]);
    let text = "source,destination,protocol,source_port,destination_port,egress_port\n\
                192.0.2.1,198.51.100.1,tcp,1000,80,right\n";
    std::fs::write(daemon.folder.path().join("f.csv"), text).unwrap();
    assert_eq!(daemon.run(&["flow", "load", "f.csv"]).output, "flows: 1 added\n");
    assert_eq!(
        daemon.asked()[0].1,
        r#"[{"source":"192.0.2.1","destination":"198.51.100.1","protocol":6,"source_port":1000,"destination_port":80,"egress_port":"right"}]"#
    );
}

#[test]
fn a_refusal_is_told_with_its_remedy() {
    let body = r#"{"error":{"code":"config","message":"the configuration has an error","remedy":
        "correct it","details":[{"file":"m.toml","line":3,"key":"port.a.mtu","problem":"is 9",
        "remedy":"use 68 to 9216 bytes"}]}}"#;
    let daemon = Daemon::new(&[("POST /v1/reload", 400, body)]);
    let refused = daemon.run(&["reload"]);
    assert_eq!(refused.status, 1);
    assert_eq!(refused.output, "");
    assert_eq!(
        refused.errors,
        "millrace: the configuration has an error; correct it\n  \
         m.toml:3: port.a.mtu: is 9; use 68 to 9216 bytes\n"
    );
}

#[test]
fn a_port_is_changed() {
    let daemon = Daemon::new(&[("PATCH /v1/ports/left.1", 200, PORT)]);
    let shown = daemon.run(&["port", "set", "left.1", "promiscuous", "on"]);
    assert!(shown.output.contains("speed        10,000 Mbit/s"), "{}", shown.output);
    assert_eq!(daemon.asked()[0].1, r#"{"promiscuous":true}"#);
    assert_eq!(daemon.run(&["port", "set", "left.1", "mtu", "20"]).status, 2);
}

#[test]
fn a_trace_is_told_in_words() {
    let steps = r#"{"packet":0,"core":1,"time":100,"node":"ip4-input","seen":"192.0.2.1 > 192.0.2.9","fate":"on to ip4-lookup"}
{"packet":0,"core":1,"time":350,"node":"ip4-lookup","seen":"10.0.0.0/8","fate":"dropped: blackhole"}
"#;
    let daemon = Daemon::new(&[("POST /v1/trace", 200, steps)]);
    let shown = daemon.run(&["trace", "--count", "1", "--protocol", "icmp"]).output;
    let lines: Vec<_> = shown.lines().map(str::trim).collect();
    assert_eq!(lines[0], "packet 0 on core 1");
    assert!(lines[1].starts_with("0 ns  ip4-input") && lines[1].ends_with("192.0.2.9"), "{shown}");
    assert!(lines[3].starts_with("250 ns  ip4-lookup"), "{shown}");
    assert_eq!(lines[4], "dropped: blackhole");
    assert_eq!(daemon.asked()[0].1, r#"{"count":1,"protocol":"icmp"}"#);
}

#[test]
fn a_capture_is_written_as_it_comes() {
    let daemon = Daemon::new(&[("POST /v1/capture", 200, "\n\r\r\nbytes")]);
    let shown = daemon.run(&["capture", "--write", "c.pcapng", "--direction", "drop"]);
    assert_eq!(shown.output, "9 B written to c.pcapng\n");
    assert_eq!(std::fs::read(daemon.folder.path().join("c.pcapng")).unwrap(), b"\n\r\r\nbytes");
    assert_eq!(daemon.asked()[0].1, r#"{"direction":"drop"}"#);
    let refusing = Daemon::new(&[("POST /v1/capture", 404, "")]);
    assert_eq!(refusing.run(&["capture", "--write", "none"]).status, 1);
    assert!(!refusing.folder.path().join("none").exists());
}

#[test]
fn the_configuration_is_shown_as_toml() {
    let body = r#"{"daemon":{"log":"info"},"forwarding":{"ecmp-seed":null},"port":[{"name":"left","mtu":1500}]}"#;
    let daemon = Daemon::new(&[("GET /v1/config", 200, body)]);
    let shown = daemon.run(&["show", "config"]).output;
    assert!(!shown.contains("ecmp-seed"), "{shown}");
    assert!(shown.contains("[[port]]") && shown.contains("name = \"left\""), "{shown}");
}

#[test]
fn no_daemon_is_told_with_how_to_start_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    let command = command.arg("--socket").arg(folder.path().join("s")).args(["show", "summary"]);
    let run = done(command.output().unwrap());
    assert_eq!(run.status, 1);
    assert!(run.errors.contains("is millraced running? start it with"), "{}", run.errors);
}

#[test]
fn run_becomes_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    // Written by another process: a descriptor of ours that another test's child inherits would keep a program busy.
    let install = |source: &Path, name: &str| {
        let target = folder.path().join(name);
        let done = Command::new("install").arg(source).arg(&target).status().unwrap();
        assert!(done.success(), "{name}");
        target
    };
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\necho \"$@\"\nexit 3\n").unwrap();
    let daemon = install(&script, "millraced");
    let program = install(Path::new(env!("CARGO_BIN_EXE_millrace")), "millrace");
    let mut command = Command::new(&program);
    let run = done(command.args(["run", "--config", "m.toml", "--check"]).output().unwrap());
    assert_eq!((run.status, run.output.as_str()), (3, "--config m.toml --check\n"));
    std::fs::remove_file(&daemon).unwrap();
    let mut command = Command::new(&program);
    let command = command.env("PATH", folder.path()).args(["run", "--config", "m.toml"]);
    let run = done(command.output().unwrap());
    assert_eq!(run.status, 1);
    assert!(run.errors.contains("there is no millraced beside this program"), "{}", run.errors);
}

#[test]
fn help_completion_and_manual_pages() {
    let daemon = Daemon::new(&[]);
    assert!(daemon.run(&["--help"]).output.contains("Examples:"));
    assert_eq!(daemon.run(&["shwo"]).status, 2);
    for shell in ["bash", "zsh", "fish"] {
        let script = daemon.run(&["completion", shell]);
        assert!(script.status == 0 && script.output.contains("promiscuous"), "{shell}");
    }
    assert_eq!(daemon.run(&["man", "pages"]).status, 0);
    assert!(daemon.folder.path().join("pages/millrace-show-routes.1").exists());
}

#[test]
fn ends_quietly_when_nobody_reads_on() {
    let daemon = Daemon::new(&[("GET /v1/ports", 200, &format!("[{PORT}]"))]);
    for words in [&["show", "ports"][..], &["completion", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.arg("--socket").arg(daemon.socket()).args(words).stdout(writer);
        let run = done(command.output().unwrap());
        assert!(run.status == 0 && run.errors.is_empty(), "{words:?}: {}", run.errors);
    }
}

#[test]
fn a_restart_is_waited_for_and_says_how_long_it_took() {
    let version = |restarts, more: &str| {
        format!(r#"{{"version":"1","api":1,"dpdk":"d","pid":1,"restarts":{restarts}{more}}}"#)
    };
    let (old, new) = (version(2, r#","standstill":7"#), version(3, ""));
    let done = version(3, r#","standstill":412345"#);
    let path = "GET /v1/version";
    let daemon = Daemon::new(&[
        ("POST /v1/restart", 200, r#"{"restarts":3}"#),
        (path, 200, &old),
        (path, 200, &new),
        (path, 200, &done),
    ]);
    let restarted = daemon.run(&["restart"]);
    assert_eq!(restarted.status, 0, "{}", restarted.errors);
    assert_eq!(restarted.output, "restarted; forwarding stood still for 413 ms\n");
    assert_eq!(daemon.asked().len(), 4);

    let refused =
        r#"{"error":{"code":"config","message":"wrong","remedy":"mend it","details":[]}}"#;
    let daemon = Daemon::new(&[("POST /v1/restart", 422, refused)]);
    let refused = daemon.run(&["restart"]);
    assert_eq!((refused.status, daemon.asked().len()), (1, 1));
    assert!(refused.errors.contains("wrong; mend it"), "{}", refused.errors);
}

#[test]
fn what_was_saved_is_told() {
    let saved = r#"{"file":"/k/state","bytes":1234,"routes":1000,"neighbors":2,"learned":3,"flows":4,
        "functions":5}"#;
    let daemon = Daemon::new(&[("POST /v1/save", 200, saved)]);
    let done = daemon.run(&["save"]);
    assert!(
        done.output.starts_with("/k/state: 1,000 routes, 2 neighbours, 3 learned"),
        "{}",
        done.output
    );
}
