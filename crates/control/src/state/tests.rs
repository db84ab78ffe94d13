use proptest::prelude::*;

use super::*;

fn records() -> Vec<Record> {
    let route = |text: &str| Record::Route(serde_json::from_str(text).unwrap());
    vec![
        Record::Port(KeptPort {
            name: "left".into(),
            device: "memif:/run/a.sock".into(),
            mac: MacAddr::new([2, 0, 0, 0, 0, 1]),
        }),
        Record::Neighbor(KeptNeighbor {
            interface: "left".into(),
            address: "10.0.1.2".parse().unwrap(),
            mac: MacAddr::new([2, 0, 0, 0, 0, 2]),
            learned: true,
        }),
        route(r#"{"prefix":"10.0.0.0/8","via":[{"address":"10.0.1.2","weight":3}]}"#),
        route(r#"{"prefix":"2001:db8::/32","kind":"blackhole"}"#),
        route(
            r#"{"source":"bgp","prefix":"2001:db8::/32","distance":200,"metric":7,"kind":"local"}"#,
        ),
        Record::Flow(
            serde_json::from_str(
                r#"{"source":"10.0.1.2","destination":"10.0.2.2","protocol":17,"source_port":1,
                    "destination_port":2,"egress_port":"left"}"#,
            )
            .unwrap(),
        ),
        Record::Function(FunctionAdd {
            file: "count.so".into(),
            argument: "a \"quoted\"\nline".into(),
            core: Some(1),
            port: None,
        }),
        Record::Lease(KeptLease { first: 10_240, uid: 1000 }),
    ]
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for record in records {
        assert!(writer.record(record).unwrap());
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<Record>, StateError> {
    Reader::new(bytes)?.collect()
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn what_was_written_is_read() {
    assert_eq!(read(&written(&records())).unwrap(), records());
    assert_eq!(read(&written(&[])).unwrap(), []);
}

#[test]
fn a_file_that_breaks_off_is_refused_wherever_it_does() {
    let whole = written(&records());
    for length in 0..whole.len() {
        let error = refused(&whole[..length]);
        assert!(error.contains("ends after line") || error.contains("no state"), "{error}");
    }
}

#[test]
fn lines_that_are_missing_doubled_or_follow_the_end_are_refused() {
    let whole = String::from_utf8(written(&records())).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let without: Vec<&str> = [&lines[..2], &lines[3..]].concat();
    assert!(refused((without.join("\n") + "\n").as_bytes()).contains("7 records"));
    let doubled: Vec<&str> = [&lines[..3], &lines[2..]].concat();
    assert!(refused((doubled.join("\n") + "\n").as_bytes()).contains("9 records"));
    assert!(refused((whole.clone() + lines[1] + "\n").as_bytes()).contains("line 11: it follows"));
    assert!(refused((whole + "x").as_bytes()).contains("ends after line 10"));
}

#[test]
fn other_forms_and_other_files_are_told_apart() {
    assert!(refused(b"{\"millrace-state\":2,\"by\":\"9.9\"}\n").contains("form 2"));
    for other in [&b""[..], b"[daemon]\n", b"{}\n", b"\xff\xfe\n", &[0; 100_000]] {
        assert!(refused(other).contains("no state of millraced"));
    }
}

#[test]
fn what_a_line_may_not_say_is_refused_with_its_number() {
    let with = |line: &str| refused(format!("{{\"millrace-state\":1}}\n{line}\n").as_bytes());
    for (line, part) in [
        ("", "line 2"),
        (r#"{"secret":{}}"#, "unknown variant"),
        (r#"{"port":{"name":"a","device":"null","mac":"02:00:00:00:00"}}"#, "line 2"),
        (
            r#"{"port":{"name":"a","device":"null","mac":"02:00:00:00:00:01","x":1}}"#,
            "unknown field",
        ),
        (r#"{"route":{"prefix":"10.0.0.1/8","kind":"blackhole"}}"#, "line 2"),
        (r#"{"route":{"prefix":"10.0.0.0/8"}}"#, "line 2"),
        (r#"{"route":{"prefix":"10.0.0.0/8","kind":"local"}} {}"#, "trailing"),
        (r#"{"lease":{"first":65536,"uid":0}}"#, "line 2"),
        (r#"{"end":0,"x":1}"#, "unknown field"),
        (r#"{"end":-1}"#, "line 2"),
    ] {
        let error = with(line);
        assert!(error.contains(part), "{line}: {error}");
    }
    assert!(with(&"[".repeat(10_000)).contains("line 2"), "deep nesting");
    assert!(with(&"x".repeat(LONGEST_LINE + 1)).contains("longer than"));
}

#[test]
fn what_is_too_long_for_a_line_is_left_out() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let argument = "x".repeat(LONGEST_LINE);
    let long = FunctionAdd { file: "a.so".into(), argument, core: None, port: None };
    assert!(!writer.record(&Record::Function(long)).unwrap());
    assert_eq!(read(&writer.finish().unwrap()).unwrap(), []);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut file = b"{\"millrace-state\":1}\n".to_vec();
        file.extend(&bytes);
        let _ = read(&bytes);
        let _ = read(&file);
    }

    #[test]
    fn a_changed_byte_is_no_panic(at in any::<prop::sample::Index>(), byte: u8) {
        let mut file = written(&records());
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(list) = read(&file) {
            prop_assert_eq!(list.len(), records().len());
        }
    }
}
