//! Commands about routes, against a socket that answers with fixed bodies.

#[cfg(test)]
mod daemon;

use daemon::Daemon;

#[test]
fn routes_come_page_by_page() {
    let first = r#"{"routes":[{"prefix":"10.0.0.0/8","via":[{"address":"192.0.2.2"},
        {"address":"192.0.2.3","weight":2}],"origin":"config"}],"total":2,"next":"10.0.0.0/8"}"#;
    let second = r#"{"routes":[{"source":"ospf","prefix":"192.168.0.0/16","metric":20,"kind":"blackhole","origin":"api","standby":true}],
        "total":2}"#;
    let daemon = Daemon::new(&[
        ("GET /v1/routes?family=4&limit=1000", 200, first),
        ("GET /v1/routes?after=10.0.0.0%2F8&family=4&limit=1000", 200, second),
    ]);
    let shown = daemon.run(&["show", "routes", "--family", "4"]).output;
    let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
    let words = |line: &str| {
        line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("|")
    };
    let lines: Vec<String> = lines.into_iter().map(words).collect();
    assert_eq!(lines[0], "PREFIX|TARGET|SOURCE|DISTANCE|METRIC|FROM");
    assert_eq!(lines[1], "10.0.0.0/8|via 192.0.2.2 192.0.2.3 weight 2|static|1|0|config");
    assert_eq!(lines[2], "192.168.0.0/16|blackhole (standby)|ospf|110|20|api");
}

#[test]
fn routes_have_a_source_a_distance_and_a_metric() {
    let removed = r#"{"added":0,"replaced":0,"removed":2}"#;
    let found = r#"{"address":"10.1.1.1","route":{"source":"ospf","prefix":"10.0.0.0/8","port":"a","origin":"api"},"next_hops":[]}"#;
    let daemon = Daemon::new(&[
        ("POST /v1/routes", 200, r#"{"added":1,"replaced":0,"removed":0}"#),
        ("DELETE /v1/routes?distance=200&source=bgp", 200, removed),
        ("DELETE /v1/route-sources/bgp?vrf=red", 200, removed),
        ("GET /v1/routes?limit=1000&source=bgp", 200, r#"{"routes":[],"total":0}"#),
        ("GET /v1/routes/lookup?address=10.1.1.1", 200, found),
        (
            "GET /v1/route-sources",
            200,
            r#"[{"source":"bgp","vrf":"red","routes4":1200,"routes6":3}]"#,
        ),
    ]);
    let add = |more: &[&str]| {
        let words = [&["route", "add", "10.0.0.0/8", "dev", "a"], more].concat();
        assert_eq!(daemon.run(&words).output, "routes: 1 added\n");
        daemon.asked().last().unwrap().1.clone()
    };
    let route = |text: &str| format!(r#"[{{{text},"port":"a"}}]"#);
    let ospf = add(&["--source", "ospf", "--metric", "20"]);
    assert_eq!(ospf, route(r#""source":"ospf","prefix":"10.0.0.0/8","metric":20"#));
    let floating = add(&["--distance", "200"]);
    assert_eq!(floating, route(r#""prefix":"10.0.0.0/8","distance":200"#));
    let by_words = add(&["source", "ospf", "distance", "30", "metric", "4"]);
    assert_eq!(
        by_words,
        route(r#""source":"ospf","prefix":"10.0.0.0/8","distance":30,"metric":4"#)
    );
    let both = add(&["distance", "30", "--source", "ospf"]);
    assert_eq!(both, route(r#""source":"ospf","prefix":"10.0.0.0/8","distance":30"#));
    let gone = daemon.run(&["route", "del", "10.0.0.0/8", "--source", "bgp", "--distance", "200"]);
    assert_eq!(gone.output, "routes: 2 removed\n");
    let gone = daemon.run(&["route", "withdraw", "bgp", "--vrf", "red"]);
    assert_eq!(gone.output, "routes: 2 removed\n");
    assert!(daemon.run(&["show", "routes", "--source", "bgp"]).output.contains("no routes"));
    let shown = daemon.run(&["show", "sources"]).output;
    let words: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words, ["bgp", "red", "1,200", "3"]);
    let found = daemon.run(&["route", "get", "10.1.1.1"]).output;
    assert_eq!(found, "10.1.1.1: 10.0.0.0/8 dev a (from api, ospf)\n");
    assert_eq!(daemon.run(&["route", "withdraw", "a b"]).status, 2);
}

#[test]
fn routes_are_added_as_ip_route_writes_them() {
    let answer = r#"{"added":1,"replaced":0,"removed":0}"#;
    let daemon = Daemon::new(&[
        ("POST /v1/routes", 200, answer),
        ("DELETE /v1/routes", 200, r#"{"added":0,"replaced":0,"removed":1}"#),
    ]);
    let words = ["route", "add", "10.0.0.0/8", "via", "192.0.2.2,192.0.2.3", "dev", "left"];
    assert_eq!(daemon.run(&words).output, "routes: 1 added\n");
    assert_eq!(daemon.run(&["route", "del", "10.0.0.0/8"]).output, "routes: 1 removed\n");
    let asked = daemon.asked();
    assert_eq!(
        asked[0].1,
        r#"[{"prefix":"10.0.0.0/8","via":[{"address":"192.0.2.2"},{"address":"192.0.2.3","interface":"left"}]}]"#
    );
    assert_eq!(asked[1].1, r#"["10.0.0.0/8"]"#);
    let wrong = daemon.run(&["route", "add", "10.0.0.1/8", "via", "192.0.2.2"]);
    assert_eq!(wrong.status, 2);
    assert_eq!(
        wrong.errors,
        "millrace: '10.0.0.1/8' has bits set behind its prefix length; the network is 10.0.0.0/8\n"
    );
    assert_eq!(daemon.asked().len(), 2);
}

#[test]
fn routes_are_those_of_the_vrf_that_is_named() {
    let leak = r#"{"vrf":"red","prefix":"10.9.0.0/16","lookup":"blue","origin":"api"}"#;
    let then = r#"{"vrf":"blue","prefix":"10.0.0.0/8","port":"right","origin":"config"}"#;
    let page = format!(r#"{{"routes":[{leak}],"total":1}}"#);
    let found =
        format!(r#"{{"address":"10.9.1.1","route":{leak},"then":[{then}],"next_hops":[]}}"#);
    let daemon = Daemon::new(&[
        ("POST /v1/routes", 200, r#"{"added":1,"replaced":0,"removed":0}"#),
        ("DELETE /v1/routes?vrf=red", 200, r#"{"added":0,"replaced":0,"removed":1}"#),
        ("GET /v1/routes?limit=1000&vrf=red", 200, &page),
        ("GET /v1/routes/lookup?address=10.9.1.1&vrf=red", 200, &found),
        (
            "GET /v1/vrfs",
            200,
            r#"[{"name":"default","interfaces":["left"],"routes4":3,"routes6":0},
                {"name":"red","interfaces":[],"routes4":1,"routes6":2,"parked":true}]"#,
        ),
    ]);
    let words = ["route", "add", "10.9.0.0/16", "lookup", "blue", "--vrf", "red"];
    assert_eq!(daemon.run(&words).output, "routes: 1 added\n");
    let sent = daemon.asked()[0].1.clone();
    assert_eq!(sent, r#"[{"vrf":"red","prefix":"10.9.0.0/16","lookup":"blue"}]"#);
    let gone = daemon.run(&["route", "del", "10.9.0.0/16", "--vrf", "red"]);
    assert_eq!(gone.output, "routes: 1 removed\n");
    let shown = daemon.run(&["show", "routes", "--vrf", "red"]).output;
    assert!(shown.contains("10.9.0.0/16  lookup blue"), "{shown}");
    let found = daemon.run(&["route", "get", "10.9.1.1", "--vrf", "red"]).output;
    assert_eq!(
        found,
        "10.9.1.1: 10.9.0.0/16 lookup blue (from api)\n\
         then in VRF blue: 10.0.0.0/8 dev right (from config)\n"
    );
    let shown = daemon.run(&["show", "vrfs"]).output;
    let words: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1], ["default", "up", "3", "0", "left"]);
    assert_eq!(words[2], ["red", "parked", "1", "2", "-"]);
}
