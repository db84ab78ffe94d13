//! A daemon of our own in a scratch folder, and a small HTTP client for its socket.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running daemon; ended when it is dropped.
pub(crate) struct Instance {
    child: Child,
    folder: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The part of every test configuration that keeps the daemon small.
pub(crate) const SMALL: &str = r#"
[memory]
buffers = 8192
hugepages = "never"
[limits]
routes4 = 5000
routes6 = 1000
next-hops = 500
"#;

/// Runs a program without `CAP_LINUX_IMMUTABLE` (`PR_CAPBSET_DROP`). Who may not drop it does not have it.
const WITHOUT_IMMUTABLE: &str = r"
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 9, 0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
";

impl Instance {
    /// Starts a daemon and waits until its API answers.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), config)
    }

    /// Starts a daemon in place of one that has ended, in the same folder.
    pub(crate) fn again(mut self, config: &str) -> Self {
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        drop(self);
        Self::start_in(folder, config)
    }

    /// Starts a daemon that finds no way to forbid descriptors on its sockets, as before Linux 6.16.
    pub(crate) fn start_before_6_16(config: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/before_6_16.py");
        Self::start_through(&[script], config)
    }

    /// Starts a daemon that may not make files immutable.
    pub(crate) fn start_without_immutable(config: &str) -> Self {
        Self::start_through(&["-c", WITHOUT_IMMUTABLE], config)
    }

    /// Starts a daemon by a program in Python, which becomes it.
    pub(crate) fn start_through(python: &[&str], config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = command(folder.path());
        let mut command = Command::new("python3");
        command.args(python).arg(program.get_program()).args(program.get_args());
        Self::start_by(command, folder, config)
    }

    /// Starts a daemon that tells this socket what it tells a service manager.
    pub(crate) fn start_notifying(config: &str) -> (Self, UnixDatagram) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = command(folder.path());
        command.env("NOTIFY_SOCKET", path);
        (Self::start_by(command, folder, config), manager)
    }

    fn start_in(folder: tempfile::TempDir, config: &str) -> Self {
        Self::start_by(command(folder.path()), folder, config)
    }

    fn start_by(mut command: Command, folder: tempfile::TempDir, config: &str) -> Self {
        fs::write(folder.path().join("millrace.toml"), config).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = command.stderr(log).stdout(Stdio::null()).spawn().unwrap();
        let mut instance = Self { child, folder };
        let start = Instant::now();
        while instance.try_request("GET", "/v1/version", "").is_none() {
            if let Some(status) = instance.child.try_wait().unwrap() {
                panic!("the daemon ended: {status}\n{}", instance.log());
            }
            assert!(start.elapsed() < PATIENCE, "no answer\n{}", instance.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        instance
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("api.sock")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) fn write_config(&self, config: &str) {
        fs::write(self.path("millrace.toml"), config).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "")
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Answer {
        self.try_request(method, path, body)
            .unwrap_or_else(|| panic!("{method} {path}: no answer\n{}", self.log()))
    }

    pub(crate) fn try_request(&self, method: &str, path: &str, body: &str) -> Option<Answer> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: millrace\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .ok()?;
        // A refusal may come before the whole body is written.
        let _ = stream.write_all(body.as_bytes());
        read_answer(stream)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the daemon to end by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "does not end\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a second daemon with the same configuration and socket to its end.
    pub(crate) fn second(&self) -> Output {
        command(self.folder.path()).output().unwrap()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The daemon's command line for a folder.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millraced"));
    command.arg("--config").arg(folder.join("millrace.toml"));
    command.arg("--socket").arg(folder.join("api.sock"));
    command
}

fn read_answer(stream: UnixStream) -> Option<Answer> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut body = Vec::new();
    reader.read_to_end(&mut body).ok()?;
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = dechunk(&body)?;
    }
    Some(Answer { status, head, body })
}

fn dechunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 2 + size + 2..)?;
    }
}
