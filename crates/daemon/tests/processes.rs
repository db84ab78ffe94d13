//! Processes that the daemon learns of when they have ended.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;

use std::io::Read;
use std::process::{Command, Stdio};

use instance::{Instance, SMALL};
use rustix::process::Signal;
use shm::session::PROTOCOL;

const PORT: &str =
    "[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\naddresses = [\"192.0.2.1/24\"]\n";

/// It says hello and ends; its child holds the connection, and says whether the daemon closes it.
const SCRIPT: &str = r#"
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(json.dumps({"hello": {"protocol": PROTOCOL, "library": "test", "name": "mortal"}}).encode())
if os.fork(): os._exit(0)
s.settimeout(20)
try:
    while s.recv(65536): pass
    print("closed")
except ConnectionResetError: print("closed")
except TimeoutError: print("open")
"#;

#[test]
fn a_process_that_has_ended_before_it_is_looked_at_is_not_waited_for() {
    let daemon = Instance::start(&format!("{SMALL}{PORT}"));
    let script = SCRIPT.replace("PROTOCOL", &PROTOCOL.to_string());
    daemon.signal(Signal::STOP);
    let mut process = Command::new("python3")
        .args(["-c", &script])
        .arg(daemon.path("sessions.sock"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = process.stdout.take().unwrap();
    // From now on its number may be another's.
    let ended = process.wait();
    daemon.signal(Signal::CONT);
    assert!(ended.unwrap().success());
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert_eq!(text.trim(), "closed");
}
