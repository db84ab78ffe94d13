//! All results of a run, as JSON.

use std::fs::{File, OpenOptions};
use std::path::Path;

use serde::Serialize;

use super::kept;
use super::outcome::Outcome;
use crate::failure::Failure;
use crate::machine::{Environment, Finished};
use crate::terminal::{complain, say};

/// All of one run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    pub(crate) results: Vec<Outcome>,
}

/// What is written of it.
#[derive(Debug, Serialize)]
struct Written<'a> {
    environment: Finished<'a>,
    results: &'a [Outcome],
}

impl Report {
    /// Says what has disturbed the run, writes it to a file, and says to which. If none is named, it is kept in the results folder;
    /// where that is impossible, what was measured has still been shown.
    pub(crate) fn write(&self, path: Option<&Path>) -> Result<(), Failure> {
        let written = self.written();
        if let Some(disturbed) = written.environment.disturbed() {
            say!("{disturbed}");
        }
        if let Some(path) = path {
            write_json(path, &written)?;
            say!("results: {}", path.display());
            return Ok(());
        }
        match kept::keep(self.environment.subcommand(), &written) {
            Ok(path) => say!("results: {}", path.display()),
            Err(why) => {
                complain(format_args!("the results are not kept: {why}; name a file by `--json`"));
            }
        }
        Ok(())
    }

    fn written(&self) -> Written<'_> {
        Written { environment: self.environment.finish(), results: &self.results }
    }
}

/// Writes something to a file as JSON; the folder is made where there is none.
pub(crate) fn write_json(path: &Path, what: &impl Serialize) -> Result<(), Failure> {
    let file = open(path, OpenOptions::new().write(true).create(true).truncate(true))?;
    Ok(serde_json::to_writer_pretty(file, what)?)
}

/// Refuses a file that [`write_json`] could not write, before there is anything to write. What is in it stays.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        // Whoever reads a pipe would take this look for its end.
        return Ok(());
    }
    let is_new = path.symlink_metadata().is_err();
    open(path, OpenOptions::new().append(true).create(true))?;
    if is_new {
        let failed = |source| Failure::File { path: path.into(), source };
        std::fs::remove_file(path).map_err(failed)?;
    }
    Ok(())
}

/// Opens a file, and makes its folder where there is none.
fn open(path: &Path, options: &OpenOptions) -> Result<File, Failure> {
    let failed = |source| Failure::File { path: path.into(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    options.open(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::results::{Better, Samples};

    #[test]
    fn the_folder_of_a_report_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("before/1/forward.json");
        write_json(&path, &[1, 2]).unwrap();
        write_json(&path, &[3]).unwrap();
        let written: Vec<u32> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(written, [3]);
        let why = write_json(&path.join("below a file"), &0).unwrap_err().to_string();
        assert!(why.contains("forward.json"), "{why}");
    }

    #[test]
    fn a_look_at_a_file_leaves_it_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/forward.json");
        check_writable(&path).unwrap();
        assert!(!path.exists(), "no empty file is left for `compare` to stumble over");
        std::fs::write(&path, "[1]").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[1]");
        for wrong in [path.join("below a file"), folder.path().to_owned()] {
            assert!(check_writable(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_report_has_the_agreed_form() {
        let cycles = Outcome::new("forward", "cycles/packet", Samples(vec![50.0, 40.0, 60.0]))
            .with(&[("flows", 10.into())])
            .seeing(&[("lost", 3.into())])
            .against("testpmd io", 25.0, Better::Less);
        let rate =
            Outcome::new("insert", "1/s", Samples(vec![4e6])).against("x", 2e6, Better::More);
        let mut plain = Outcome::new("memory", "bytes", Samples(vec![1.0]));
        plain.goal = Some((0.5, Better::More));
        let environment = Environment::default();
        let report = Report { environment, results: vec![cycles, rate, plain] };
        let json = serde_json::to_value(report.written()).unwrap();
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(keys(&json), ["environment", "results"]);
        let first = &json["results"][0];
        let mut form = keys(first);
        form.sort();
        let mut agreed = [
            "name",
            "parameters",
            "observed",
            "value",
            "unit",
            "samples",
            "yardstick",
            "yardstick_value",
            "ratio",
            "goal",
        ];
        agreed.sort_unstable();
        assert_eq!(form, agreed);
        assert_eq!(first["value"], 50.0);
        assert_eq!(first["samples"], serde_json::json!([50.0, 40.0, 60.0]));
        assert_eq!(first["parameters"]["flows"], 10);
        assert_eq!(first["observed"], serde_json::json!({"lost": 3}));
        assert_eq!(first["ratio"], 0.5);
        assert_eq!(first["goal"], Value::Null);
        assert_eq!(json["results"][2]["goal"], serde_json::json!({"value": 0.5, "better": "more"}));
        assert_eq!(json["results"][1]["ratio"], 2.0);
        assert_eq!(json["results"][2]["ratio"], Value::Null);
        let known = [
            "cpu",
            "tsc_hz",
            "kernel",
            "dpdk",
            "hugepages",
            "revision",
            "command",
            "caches",
            "began",
            "ended",
            "interrupted",
            "rounds",
            "disturbed",
        ];
        for key in known {
            assert!(json["environment"].get(key).is_some(), "{key}");
        }
    }
}
