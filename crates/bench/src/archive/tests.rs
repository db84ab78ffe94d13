use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::results::Better;

fn written(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn what_a_run_writes_is_read_back() {
    use crate::machine::Environment;
    use crate::results::{Outcome, Report, Samples};
    let folder = tempfile::tempdir().unwrap();
    let mut outcome = Outcome::new("forward", "cycles/packet", Samples(vec![50.0, f64::NAN, 40.0]))
        .with(&[("flows", 10.into()), ("routes", "full".into())])
        .seeing(&[("lost", 0.into())])
        .against("testpmd io", 25.0, Better::Less);
    outcome.goal = Some((30.0, Better::Less));
    let environment = Environment::default();
    let path = folder.path().join("run.json");
    Report { environment, results: vec![outcome] }.write(Some(&path)).unwrap();
    let runs = load(folder.path()).unwrap();
    let [run] = runs.as_slice() else { panic!("{runs:?}") };
    assert_eq!(run.machine(), "unknown CPU, 0 cores");
    assert_eq!(run.command(), "run");
    let [entry] = run.results.as_slice() else { panic!("{run:?}") };
    assert_eq!(entry.title(), "forward (flows 10, routes full)");
    assert_eq!(entry.samples, [50.0, 40.0]);
    assert_eq!(entry.observed["lost"], 0);
    assert_eq!(entry.goal, Some(Goal { value: 30.0, better: Better::Less }));
    assert_eq!(entry.yardstick.as_deref(), Some("testpmd io"));
}

#[test]
fn files_of_other_versions_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let old = json!({"environment": {"new": {"thing": [1, 2]}}, "later": 1,
        "results": [{"name": "x", "value": 2, "unknown": {}}]});
    let path = written(folder.path(), "old.json", old.to_string().as_bytes());
    let run = &load(&path).unwrap()[0];
    assert_eq!(run.facts(), [("new.thing".to_owned(), "1, 2".to_owned())]);
    assert_eq!(run.results[0].samples(), [2.0]);
    assert_eq!(run.results[0].title(), "x");
}

#[test]
fn what_is_foreign_is_refused_with_path_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let why = |path: &Path| load(path).unwrap_err().to_string();
    for text in ["", "{}", "[]", "nonsense", r#"{"environment": {}, "results": [{}]}"#, "\u{ff}"] {
        let path = written(folder.path(), "foreign.json", text.as_bytes());
        let why = why(&path);
        assert!(why.contains("foreign.json") && why.contains("no results of"), "{text}: {why}");
    }
    let deep = format!(r#"{{"environment": {{"x": {}"#, "[".repeat(1 << 20));
    assert!(why(&written(folder.path(), "deep.json", deep.as_bytes())).contains("recursion"));
    let long = folder.path().join("long.json");
    std::fs::File::create(&long).unwrap().set_len((64 << 20) + 1).unwrap();
    assert!(why(&long).contains("more than 64 MB"), "{}", why(&long));
    assert!(why(&folder.path().join("none")).contains("none"));
    assert!(why(Path::new("/dev/null")).contains("neither a file nor a folder"));
    let empty = tempfile::tempdir().unwrap();
    written(empty.path(), "readme.txt", b"");
    assert!(why(empty.path()).contains("ends in .json"));
}

#[test]
fn no_text_reaches_a_terminal_that_could_control_it() {
    let hostile = json!({"a\u{1b}[2J": "b\u{7}\r", "c": {"d\n": ["\u{9b}"]}});
    let run = json!({"environment": hostile, "results": []});
    let run: Run = serde_json::from_value(run).unwrap();
    for (name, value) in run.facts() {
        assert!(!name.chars().chain(value.chars()).any(char::is_control), "{name:?} {value:?}");
    }
    // Nor what a refusal quotes.
    let goal = json!({"value": 1, "better": "\u{1b}[2J"});
    let wrong = json!({"environment": {}, "results": [{"name": "x", "goal": goal}]});
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "wrong.json", wrong.to_string().as_bytes());
    let why = load(&path).unwrap_err().to_string();
    assert!(why.contains("[2J") && !why.contains(char::is_control), "{why:?}");
}

/// Any JSON, with the names that results have.
fn any_json() -> impl Strategy<Value = Value> {
    let names = ["environment", "results", "name", "value", "unit", "samples", "parameters", "cpu"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(json in any_json(), cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let whole = json.to_string();
        let wrapped = format!(r#"{{"environment": {{}}, "results": [{whole}]}}"#);
        for text in [&whole, &wrapped] {
            let bytes = text.as_bytes();
            for bytes in [bytes, &bytes[..cut.index(bytes.len())]] {
                let path = written(folder.path(), "any.json", bytes);
                for run in load(&path).unwrap_or_default() {
                    let _ = (run.machine(), run.facts());
                    run.results.iter().for_each(|entry| drop((entry.title(), entry.samples())));
                }
            }
        }
    }
}
