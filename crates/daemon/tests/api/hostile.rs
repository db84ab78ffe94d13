//! Requests that are hostile, or late, are refused in one form and harm nobody.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use crate::instance::Instance;
use crate::{code, two_ports};

#[test]
fn hostile_requests_are_refused_in_one_form_and_nothing_breaks() {
    let daemon = Instance::start(&two_ports());
    let bodies: [(&str, &str, &str, u16); 14] = [
        ("GET", "/v1/nothing", "", 404),
        ("PUT", "/v1/routes", "[]", 405),
        ("POST", "/v1/routes", "", 400),
        ("POST", "/v1/routes", "[{", 400),
        ("POST", "/v1/routes", "{\"prefix\": 7}", 422),
        ("POST", "/v1/routes", r#"[{"prefix": "10.0.0.1/8", "kind": "local"}]"#, 422),
        ("POST", "/v1/routes", "\u{0}\u{1}", 400),
        ("GET", "/v1/routes?limit=0", "", 400),
        ("GET", "/v1/routes?family=5", "", 400),
        ("GET", "/v1/routes?colour=red", "", 400),
        ("PATCH", "/v1/ports/nobody", "{}", 404),
        ("PATCH", "/v1/ports/left", r#"{"mtu": 10}"#, 400),
        ("POST", "/v1/trace", r#"{"protocol": "smoke"}"#, 400),
        ("POST", "/v1/capture", r#"{"snaplen": 1}"#, 400),
    ];
    for (method, path, body, status) in bodies {
        let answer = daemon.request(method, path, body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.text());
        code(&answer);
    }
    let deep = "[".repeat(100_000);
    assert_eq!(daemon.request("POST", "/v1/routes", &deep).status, 422);
    let answer = daemon.request("POST", "/v1/reload", r#"{"config": "relative.toml"}"#);
    assert_eq!((answer.status, code(&answer).as_str()), (400, "invalid"));
    assert_eq!(daemon.get("/v1/version").status, 200);
}

/// Who may use the API may not read files as root.
#[test]
fn a_reload_opens_nothing_but_regular_files_of_its_folders() {
    let more = tempfile::tempdir().unwrap();
    let config = |routes: &str| {
        let folders = format!("[daemon]\nfolders = [\"{}\"]\n", more.path().display());
        format!("{folders}{}[routes]\nfiles = [{routes}]\n", two_ports())
    };
    let daemon = Instance::start(&config(""));
    let secret = tempfile::tempdir().unwrap();
    let secret = secret.path().join("shadow");
    std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
    std::fs::write(&secret, "root:$6$hunter2:19000::::::\n").unwrap();
    let write = |path: &std::path::Path, text: &str| std::fs::write(path, text).unwrap();
    std::os::unix::fs::symlink(&secret, daemon.path("link")).unwrap();
    let fifo = daemon.path("fifo");
    let read = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, read, 0).unwrap();
    write(&daemon.path("garbage"), "root:$6$hunter2:19000::::::\n");
    write(&daemon.path("names.toml"), &config(&format!("\"{}\"", secret.display())));
    write(&daemon.path("waits.toml"), &config("\"fifo\""));
    write(&daemon.path("quotes.toml"), &config("\"garbage\""));
    let reload = |path: &std::path::Path| {
        let body = json!({"config": path.to_str().unwrap()}).to_string();
        let answer = daemon.request("POST", "/v1/reload", &body);
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
        (answer.status, answer.text())
    };
    let outside = "it lies outside";
    for (path, why) in [
        (secret.clone(), outside),
        ("/nowhere/at/all".into(), outside),
        (daemon.path("../shadow"), outside),
        (daemon.path("link"), outside),
        (daemon.path("names.toml"), outside),
        (fifo, "not a regular file"),
        (daemon.path("waits.toml"), "not a regular file"),
        ("/dev/zero".into(), outside),
        (daemon.path("garbage"), "is not TOML"),
        (daemon.path("quotes.toml"), "is not a route"),
    ] {
        let (status, text) = reload(&path);
        assert!(status == 422 && text.contains(why), "{path:?}: {status} {text}");
    }
    let other = more.path().join("other.toml");
    write(&other, &config(""));
    assert_eq!(reload(&other).0, 200);
    assert_eq!(reload(&daemon.path("millrace.toml")).0, 200);
}

#[test]
fn a_body_that_comes_late_costs_nobody_the_answer() {
    let daemon = Instance::start(&two_ports());
    for (method, path, status) in [
        ("POST", "/v1/save", "409"),
        ("DELETE", "/v1/functions/7", "404"),
        ("PUT", "/v1/routes", "405"),
        ("POST", "/v1/nothing", "404"),
        ("DELETE", "/v1/routes?colour=red", "400"),
        ("GET", "/v1/routes?limit=0", "400"),
        ("DELETE", "/v1/functions/seven", "400"),
        ("POST", "/v1/routes", "415"),
    ] {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: m\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Long enough for an answer that does not wait for it.
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(b"null").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
}
