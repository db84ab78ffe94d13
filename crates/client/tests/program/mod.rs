//! Programs that use the shared library as it is installed: with pkg-config, against a stub of the daemon.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may; each uses its part"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The library, installed below a folder of its own.
pub struct Installed {
    folder: tempfile::TempDir,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

impl Installed {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Beside the test, where cargo put it.
        let library = std::env::current_exe().unwrap().with_file_name("libmillrace.so");
        let script = root().join("scripts/install-library");
        succeed(Command::new(script).arg(&library).arg(folder.path()));
        Self { folder }
    }

    pub fn library_folder(&self) -> PathBuf {
        self.folder.path().join("lib")
    }

    fn pkg_config(&self, what: &[&str]) -> Vec<String> {
        let path = self.library_folder().join("pkgconfig");
        let mut command = Command::new("pkg-config");
        let flags = succeed(command.env("PKG_CONFIG_PATH", path).args(what).arg("millrace"));
        flags.split_whitespace().map(Into::into).collect()
    }

    pub fn version(&self) -> String {
        self.pkg_config(&["--modversion"]).concat()
    }

    /// Compiles a C program without a warning.
    pub fn compile(&self, source: &Path) -> PathBuf {
        let program = self.folder.path().join(source.file_stem().unwrap());
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
        command.arg(&program).arg(source).args(self.pkg_config(&["--cflags", "--libs"]));
        succeed(&mut command);
        program
    }

    /// A Rust example, which cargo built.
    pub fn example(name: &str) -> PathBuf {
        let programs = std::env::current_exe().unwrap();
        let program = programs.ancestors().nth(2).unwrap().join("examples").join(name);
        assert!(program.exists(), "{program:?}: cargo build --examples makes it");
        program
    }

    /// A program that finds the library, and the daemon at `socket`.
    pub fn command(&self, program: &Path, socket: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.library_folder()).env("MILLRACE_ATTACH", socket);
        command
    }
}

/// A program that runs; it is killed when dropped.
pub struct Running {
    child: Child,
    pub input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// The next line that it says; empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    pub fn say(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Its process.
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// All that it says on standard error, where that is a pipe.
    pub fn errors(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn succeeds(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
