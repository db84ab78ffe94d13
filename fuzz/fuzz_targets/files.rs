//! Arbitrary bytes as a route file and as a flow file: each line is read or refused with its line
//! number, and reading ends.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use control::config::{FlowFile, RouteFile};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("millrace-fuzz-files-{}", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    if std::fs::write(&*PATH, bytes).is_err() {
        return;
    }
    let lines = bytes.len() + 2;
    if let Ok(routes) = RouteFile::open(&PATH) {
        assert!(routes.take(lines).count() < lines, "more routes than bytes");
    }
    if let Ok(flows) = FlowFile::open(&PATH) {
        assert!(flows.take(lines).count() < lines, "more flows than bytes");
    }
});
