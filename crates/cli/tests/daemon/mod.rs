//! A daemon that gives fixed answers, on a Unix socket of its own.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// What was asked: method and path, and the body.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Answers each "METHOD /path" with its status and body, in turn where there are several.
pub(crate) struct Daemon {
    pub(crate) folder: tempfile::TempDir,
    asked: Asked,
}

/// What a run of the program left.
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Daemon {
    pub(crate) fn new(answers: &[(&str, u16, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("api.sock")).unwrap();
        let mut known: HashMap<String, Vec<(u16, String)>> = HashMap::new();
        for (what, status, body) in answers.iter().rev() {
            known.entry((*what).into()).or_default().push((*status, (*body).into()));
        }
        let asked = Asked::default();
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &mut known, &log);
            }
        });
        Self { folder, asked }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("api.sock")
    }

    /// Runs `millrace --socket SOCKET WORDS`.
    pub(crate) fn run(&self, words: &[&str]) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.arg("--socket").arg(self.socket()).args(words).current_dir(self.folder.path());
        done(command.output().unwrap())
    }

    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

pub(crate) fn done(output: Output) -> Done {
    Done {
        status: output.status.code().unwrap(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

fn answer(mut stream: UnixStream, known: &mut HashMap<String, Vec<(u16, String)>>, log: &Asked) {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let mut block = [0; 65_536];
        let count = stream.read(&mut block).unwrap();
        if count == 0 {
            return;
        }
        bytes.extend_from_slice(&block[..count]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            break (end + 4, length.map_or(0, |length| length.parse::<usize>().unwrap()));
        }
    };
    while bytes.len() < head + length {
        let mut block = [0; 65_536];
        let count = stream.read(&mut block).unwrap();
        bytes.extend_from_slice(&block[..count]);
    }
    let first = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let what = first.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let body = String::from_utf8(bytes[head..].to_vec()).unwrap();
    let answers = known.get_mut(&what);
    let (status, text) = match answers {
        Some(list) if list.len() > 1 => list.pop().unwrap(),
        Some(list) => list[0].clone(),
        None => (404, String::new()),
    };
    log.lock().unwrap().push((what, body));
    let length = text.len();
    let head = format!("HTTP/1.1 {status} S\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
}
