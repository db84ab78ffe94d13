use super::*;
use crate::rfc2544::args::Faults;

fn wrong(text: &str) -> String {
    let text = format!("title = \"x\"\n{text}");
    Scenario::parse(&text).map(drop).unwrap_err().to_string()
}

#[test]
fn a_short_scenario_means_the_standard() {
    let scenarios = Scenario::parse("title = \"x\"\ndevice = { kind = \"none\" }\n").unwrap();
    let [scenario] = &scenarios[..] else { panic!() };
    assert_eq!(scenario.frames.sizes().unwrap().len(), 10);
    assert_eq!((scenario.trials.seconds, scenario.trials.latency_trials), (60.0, 20));
    assert_eq!(
        (scenario.trials.loss, scenario.trials.repeats, scenario.trials.slack()),
        (0.0, 0, 256)
    );
    let six = "title = \"x\"\ndevice = { kind = \"none\" }\nframes = { ipv6 = true }\n";
    let sizes = Scenario::parse(six).unwrap()[0].sizes();
    assert_eq!((sizes.len(), sizes[0].to_string().as_str()), (9, "84"));
    assert_eq!(scenario.addresses(false)[0].map(|a| a.to_string()), ["198.18.0.0", "198.19.0.0"]);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let none = "device = { kind = \"none\" }\n";
    for (text, words) in [
        ("frames = { sizes = [63] }", "64 or more"),
        ("frames = { sizes = [64], ipv6 = true }", "84 or more"),
        ("frames = { sizes = [64], vlan = 7 }", "68 or more"),
        ("frames = { sizes = [9217] }", "9216 or fewer"),
        ("frames = { ipv6-share = 0.26 }", "use 0.3,"),
        ("frames = { ipv6-share = 1.0 }", "use 0.9,"),
        ("frames = { ipv6-share = nan }", "use 0.1,"),
        ("frames = { ipv6 = true, ipv6-share = 0.5 }", "leave one"),
        ("frames = { ipv6-share = 0.5, sizes = [64] }", "84 or more"),
        ("trials = { searches = 0 }", "1 to 1000"),
        ("trials = { repeats = 101 }", "0 to 100"),
        ("trials = { rings = 128 }", "256 to 16384"),
        ("trials = { rings = 128 }", "use 256"),
        ("trials = { rings = 300 }", "use 256"),
        ("trials = { rings = 400 }", "use 512"),
        ("trials = { rings = 20000 }", "use 16384"),
        ("trials = { seconds = 1e9 }", "use 86400"),
        ("trials = { seconds = nan }", "use 0.1"),
        ("frames = { sizes = [\"60\"] }", "64 or more"),
        ("frames = { sizes = [] }", "frames.sizes"),
        ("frames = { sizes = [\"mix\"] }", "imix"),
        ("frames = { vlan = 4095 }", "1 to 4094"),
        ("flows = { count = 0 }", "1 to 16777216"),
        ("flows = { count = 65537, vary = \"ports\" }", "65536 or fewer"),
        ("trials = { seconds = nan }", "trials.seconds"),
        ("trials = { loss = 0.9 }", "0 to 0.5"),
        ("trials = { latency-loads = [1.1] }", "0.001 to 1"),
        ("trials = { tests = [\"latency\"] }", "throughput"),
        ("trials = { tests = [\"speed\"] }", "back-to-back"),
        ("trials = { secconds = 3 }", "did you mean `seconds`?"),
        ("trails = { seconds = 3 }", "did you mean `trials`?"),
        ("trials = { tests = [\"back-to-bakc\"] }", "did you mean `back-to-back`?"),
        ("frames = { vlan = 70000 }", "expected a whole number from 0 to 65535"),
        ("flows = { count = -1 }", "expected a whole number from 0 to 4294967295"),
        ("trials = { seconds = \"60\" }", "expected a number"),
    ] {
        let said = wrong(&format!("{none}{text}"));
        assert!(said.contains(words), "{text}: {said}");
    }
    let by_flow = "device = { kind = \"millraced\", forwarding = \"flow-table\" }\nframes = { sizes = [128], vlan = 3 }";
    assert!(wrong(by_flow).contains("VLAN"));
    for (keys, words) in [
        ("next-hops = 65", "1 to 64"),
        ("next-hops = 2, forwarding = \"bridge\"", "only a router"),
        ("acl = 1, forwarding = \"flow-table\"", "only a router"),
        ("updates = 1000001", "0 to 1000000"),
        ("buffers = 16", "use 1024"),
        ("buffers = 5000000", "use 4194304"),
        ("guest-core = 1", "there is no guest"),
        ("routes = 3", "use 2, or another power of two, up to 65536"),
        ("routes = 0", "use 1,"),
        ("routes = 4000000000", "use 65536,"),
        ("forwarding = \"magic\"", "guest"),
        ("attach = \"tap\"", "vhost-user"),
        ("attach = \"vhost-user\" }\ntrials = { rings = 2048", "memif"),
        ("speed = 3", "speed"),
    ] {
        let said = wrong(&format!("device = {{ kind = \"millraced\", {keys} }}"));
        assert!(said.contains(words), "{keys}: {said}");
    }
    for (keys, words) in [
        ("ports = [\"null\", \"modem:1\"]", "device.ports: `modem:1` is no device"),
        ("ports = [\"null\", \"null\"], macs = [\"02:00:00:00:00:01\", \"x\"]", "`x` is no MAC"),
    ] {
        let said = wrong(&format!("device = {{ kind = \"external\", {keys} }}"));
        assert!(said.contains(words), "{keys}: {said}");
    }
    let delay = wrong("device = { kind = \"impaired\", faults = { delay = 9000000000000000000 } }");
    assert!(delay.contains("device.faults.delay") && delay.contains("use 10000000"), "{delay}");
    assert!(wrong("device = { kind = \"modem\" }").contains("testpmd"));
    assert!(!wrong("device = { kind = \"modem\" }").contains("did you mean"));
    let word = wrong("device = { kind = \"millraced\", next-hop = 2 }");
    assert!(word.ends_with("did you mean `next-hops`?"), "{word}");
    assert!(wrong("").contains("device"));
}

#[test]
fn tests_have_what_they_need_before_them() {
    let tests = |listed: &str| {
        let text = format!(
            "title = \"x\"\ndevice = {{ kind = \"none\" }}\ntrials = {{ tests = [{listed}] }}\n"
        );
        Scenario::parse(&text).unwrap()[0].trials.in_order().collect::<Vec<_>>()
    };
    let all = tests(r#""back-to-back", "latency", "throughput", "latency""#);
    assert_eq!(all, [Test::Throughput, Test::Latency, Test::BackToBack]);
    assert_eq!(tests(r#""frame-loss""#), [Test::FrameLoss]);
}

#[test]
fn both_versions_and_long_frames_need_more_of_the_links() {
    let read = |frames: &str| {
        let text =
            format!("title = \"x\"\ndevice = {{ kind = \"none\" }}\nframes = {{ {frames} }}\n");
        Scenario::parse(&text).unwrap().remove(0).frames
    };
    let both = read("ipv6-share = 0.9");
    assert_eq!((both.tenths(), both.versions(), both.least()), (9, vec![false, true], 84));
    let six = read("ipv6 = true, tcp = true");
    assert_eq!((six.tenths(), six.versions()), (10, vec![true]));
    assert_eq!(read("sizes = [64, \"imix\", 1518]").mtu(), None);
    assert_eq!(read("sizes = [1522], vlan = 3").mtu(), None);
    assert_eq!(read("sizes = [9018, 64]").mtu(), Some(9000));
    assert_eq!(read("sizes = [9216], vlan = 3").mtu(), Some(9194));
}

#[test]
fn results_say_what_was_configured() {
    let text = "title = \"x\"\ncase = \"1.3\"\nframes = { sizes = [64, \"imix\"] }\n[device]\nkind = \"millraced\"\n\
                [needs]\ncores = 1\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\ndevice.next-hops = 2\n";
    let mut scenarios = Scenario::parse(text).unwrap();
    scenarios.iter_mut().for_each(|scenario| scenario.trials.quicken());
    let all = configuration(&scenarios);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["1.3 x, a", "1.3 x, b"]);
    let [a, b] = [&all["1.3 x, a"], &all["1.3 x, b"]];
    assert_eq!(a["trials"]["seconds"], 2.0);
    assert_eq!(a["trials"]["rings"], 1024);
    assert_eq!(a["frames"]["sizes"], serde_json::json!([64, "imix"]));
    assert_eq!(a["flows"]["order"], "sequential");
    assert_eq!(a["device"]["kind"], "millraced");
    assert_eq!([a, b].map(|one| one["device"]["next-hops"].as_u64()), [Some(1), Some(2)]);
    assert!(a.get("title").is_none() && a.get("needs").is_none());
}

#[test]
fn cores_are_those_of_the_machine() {
    let read = |device: &str| {
        let text = format!("title = \"x\"\ndevice = {{ {device} }}\n");
        Scenario::parse(&text).unwrap().remove(0)
    };
    let two = read("kind = \"millraced\", cores = [0, 2]");
    assert!(two.check_cores(&[0, 1, 2], None).is_ok());
    let said = two.check_cores(&[0, 1], None).unwrap_err().to_string();
    assert_eq!(
        said,
        "device.cores: core 2 is none of those that the bench may use; use one of 0, 1"
    );
    assert!(two.shares(2, 0) && !two.shares(1, 1));
    let one = read("kind = \"testpmd\", core = 7");
    assert!(one.check_cores(&[0, 1], None).is_err());
    // Where no core is named, it is the first.
    let none = read("kind = \"millraced\"");
    assert!(none.check_cores(&[0], None).is_ok() && none.shares(0, 0) && !none.shares(1, 0));
}

#[test]
fn another_node_has_to_be_there() {
    let text = "title = \"x\"\ndevice = { kind = \"millraced\", other-node = true }\n";
    let far = Scenario::parse(text).unwrap().remove(0);
    assert!(far.is_far() && far.check_cores(&[0, 1], Some(1)).is_ok());
    let said = far.check_cores(&[0, 1], None).unwrap_err().to_string();
    assert!(said.contains("on one NUMA node; leave the key out"), "{said}");
    let both = "device = { kind = \"millraced\", other-node = true, cores = [1] }";
    assert!(wrong(both).contains("leave one"));
    let near = Scenario::parse("title = \"x\"\ndevice = { kind = \"millraced\" }\n").unwrap();
    assert!(!near[0].is_far() && near[0].check_cores(&[0, 1], None).is_ok());
}

#[test]
fn faults_are_read() {
    let text = "title = \"x\"\n[device]\nkind = \"impaired\"\nfaults = { drop = 1000, delay = 50 }";
    let scenario = Scenario::parse(text).unwrap().remove(0);
    let Device::Impaired { faults, .. } = scenario.device else { panic!() };
    assert_eq!(faults, Faults { drop: 1000, delay: 50, ..Faults::default() });
    assert_eq!(faults.to_string(), "drop 1000, delay 50");
}

#[test]
fn the_catalogue_can_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut cases = Vec::new();
    for folder in [root.clone(), root.join("operator")] {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "toml") {
                let scenarios = Scenario::read(&entry.path()).unwrap();
                cases.extend(scenarios[0].case.clone());
            }
        }
    }
    cases.sort();
    let numbers = [("1", 8), ("2", 7), ("3", 4)];
    let all =
        numbers.iter().flat_map(|(part, last)| (1..=*last).map(move |n| format!("{part}.{n}")));
    assert!(cases.into_iter().eq(all));
}
