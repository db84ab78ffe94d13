//! Namespaces, the daemon, and how programs are started in them.

use std::path::{Path as File, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::Failure;
use crate::machine;
use crate::namespace::{self, entering, inside};

use super::args::Args;
use super::path::{Path, Placement};
use crate::process::{self, Running};

/// How long a program may take to start.
const PATIENCE: Duration = Duration::from_secs(15);

/// Address of Millrace, and of the kernel at the other end of its tap.
const OURS: &str = "192.0.2.1";
const TAP_PEER: &str = "192.0.2.9";
/// Addresses of both ends of the veth pair.
const VETH: [&str; 2] = ["198.51.100.1", "198.51.100.2"];

/// A network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    /// Of servers on the kernel, and their clients over loopback.
    Kernel,
    /// Of clients over veth.
    Peer,
    /// Of the daemon, of what it serves, and of clients behind its tap.
    Millrace,
}

/// Where and how a program runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where {
    namespace: Namespace,
    /// On Millrace's sockets.
    ours: bool,
    /// On a stack worker.
    shared: bool,
    /// By links, where there can be any: clients ask for them.
    linked: bool,
    pinned: bool,
    serves: bool,
}

impl Where {
    pub(super) fn client(path: Path) -> Self {
        let namespace = match path {
            Path::Loopback | Path::Pinned => Namespace::Kernel,
            Path::Veth => Namespace::Peer,
            Path::Tap | Path::TapShared | Path::Inline | Path::Shared | Path::Link => {
                Namespace::Millrace
            }
        };
        Self {
            namespace,
            ours: matches!(path, Path::Inline | Path::Shared | Path::Link),
            shared: path == Path::Shared,
            linked: matches!(path, Path::Link | Path::Shared),
            pinned: path != Path::Loopback,
            serves: false,
        }
    }

    pub(super) fn server(placement: Placement) -> Self {
        let shared = placement == Placement::Shared;
        let ours = shared || placement == Placement::Millrace;
        let namespace = if ours { Namespace::Millrace } else { Namespace::Kernel };
        let pinned = placement != Placement::Loose;
        Self { namespace, ours, shared, linked: true, pinned, serves: true }
    }
}

/// The test bed.
#[derive(Debug)]
pub(super) struct Bed {
    // Dropped in this order.
    daemon: Running,
    namespaces: [Running; 3],
    folder: TempDir,
    programs: PathBuf,
    library: PathBuf,
    cores: Vec<usize>,
}

impl Bed {
    /// Makes the namespaces and starts the daemon.
    pub(super) fn make(args: &Args) -> Result<Self, Failure> {
        let programs = process::programs(args.programs.as_deref())?;
        let library = library(&programs).ok_or_else(|| {
            let folder = programs.display();
            Failure::Serve(format!(
                "no libmillrace_preload.so in {folder}; say where with --programs"
            ))
        })?;
        let folder = tempfile::tempdir()?;
        let cores = machine::cores();
        let namespaces = [namespace::make()?, namespace::make()?, namespace::make()?];
        let [kernel, peer, ours] = &namespaces;
        for one in &namespaces {
            inside(one, &["ip", "link", "set", "lo", "up"])?;
            let range = "net.ipv4.ip_local_port_range=1024 65535";
            inside(one, &["sysctl", "-q", "-w", range, "net.core.somaxconn=16384"])?;
        }
        let other = peer.id().to_string();
        let pair = ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns"];
        inside(kernel, &[&pair[..], &[other.as_str()]].concat())?;
        for (one, (name, address)) in [kernel, peer].into_iter().zip(["v0", "v1"].iter().zip(VETH))
        {
            let address = format!("{address}/24");
            inside(one, &["ip", "address", "add", &address, "dev", name])?;
            inside(one, &["ip", "link", "set", name, "up"])?;
        }
        let core = daemon_core(&cores);
        let daemon = start_daemon(ours, &programs, folder.path(), core)?;
        inside(ours, &["ip", "address", "add", &format!("{TAP_PEER}/24"), "dev", "bench"])?;
        inside(ours, &["ip", "link", "set", "bench", "up"])?;
        Ok(Self { daemon, namespaces, folder, programs, library, cores })
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        format!(
            "server on core {}, client on core {}, worker of the daemon on core {}; the kernel's busy polling cannot be set \
             in a namespace, and loopback has no receive queue to poll",
            self.server_cores(1),
            self.client_core(),
            daemon_core(&self.cores)
        )
    }

    pub(super) fn folder(&self) -> &File {
        self.folder.path()
    }

    pub(super) fn daemon(&self) -> &Running {
        &self.daemon
    }

    /// Workers of NGINX that have a core each.
    pub(super) fn most_workers(&self) -> u32 {
        self.cores.len() as u32
    }

    fn client_core(&self) -> usize {
        self.cores.first().copied().unwrap_or(0)
    }

    /// The last so many.
    fn server_cores(&self, count: usize) -> String {
        let last = self.cores.iter().rev().take(count.max(1));
        last.map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// The address by which a client reaches a server.
    pub(super) fn address(path: Path) -> &'static str {
        match path {
            Path::Loopback | Path::Pinned => "127.0.0.1",
            Path::Veth => VETH[0],
            Path::Tap | Path::TapShared | Path::Inline | Path::Shared | Path::Link => OURS,
        }
    }

    /// A program at its place.
    pub(super) fn command(&self, place: Where, words: &[&str]) -> Command {
        self.command_on(place, 1, words)
    }

    fn command_on(&self, place: Where, cores: usize, words: &[&str]) -> Command {
        let [kernel, peer, ours] = &self.namespaces;
        let namespace = match place.namespace {
            Namespace::Kernel => kernel,
            Namespace::Peer => peer,
            Namespace::Millrace => ours,
        };
        let mut command = entering(namespace);
        if place.pinned {
            let one = self.client_core().to_string();
            let list = if place.serves { self.server_cores(cores) } else { one };
            command.args(["taskset", "-c", &list]);
        }
        if place.ours {
            command.arg(self.programs.join("millrace")).arg("--socket").arg(self.socket());
            command.args(["exec", "--require", "--quiet", "--library"]).arg(&self.library);
            command.args(["--placement", if place.shared { "shared" } else { "inline" }]);
            if !place.linked {
                command.arg("--no-links");
            }
        }
        command.args(words);
        command
    }

    fn socket(&self) -> PathBuf {
        self.folder().join("millrace.sock")
    }

    /// Starts a program that goes on, on so many cores, and waits until it listens.
    pub(super) fn start(
        &self,
        place: Where,
        cores: usize,
        port: u16,
        words: &[&str],
    ) -> Result<Running, Failure> {
        let name = words.first().copied().unwrap_or_default();
        let command = self.command_on(place, cores, words);
        let log = self.folder().join(format!("{port}.out"));
        let listens = |running: &Running| {
            let proc = File::new("/proc").join(running.id().to_string()).join("net");
            let ports = ["tcp", "tcp6"].map(|name| std::fs::read_to_string(proc.join(name)));
            ports.iter().flatten().any(|table| has_listener(table, port))
        };
        Running::start(name, command, &log, PATIENCE, listens)
    }
}

/// With three cores the daemon has one of its own; else it shares the client's.
fn daemon_core(cores: &[usize]) -> usize {
    let at = usize::from(cores.len() > 2);
    cores.get(at).copied().unwrap_or(0)
}

fn library(programs: &File) -> Option<PathBuf> {
    let places = ["libmillrace_preload.so", "../lib/millrace/libmillrace_preload.so"];
    places.map(|place| programs.join(place)).into_iter().find(|place| place.exists())
}

fn start_daemon(
    namespace: &Running,
    programs: &File,
    folder: &File,
    core: usize,
) -> Result<Running, Failure> {
    let [config, socket, log, sessions] =
        ["millrace.toml", "millrace.sock", "daemon.log", "sessions.sock"]
            .map(|name| folder.join(name));
    let port = format!(
        "[[port]]\nname = \"bench\"\ndevice = \"tap:bench\"\naddresses = [\"{OURS}/24\"]\n"
    );
    std::fs::write(&config, format!("[workers]\ncores = [{core}]\n\n{port}"))?;
    let program = process::daemon(programs);
    let mut command = entering(namespace);
    command.arg(&program).arg("--config").arg(&config).arg("--socket").arg(&socket);
    let tap = ["ip", "link", "show", "bench"];
    let is_ready = |_: &Running| inside(namespace, &tap).is_ok() && sessions.exists();
    Running::start(&program.display().to_string(), command, &log, PATIENCE, is_ready)
}

/// Whether a table as `/proc/net/tcp` has a socket that listens on a port.
fn has_listener(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_it = words.next().is_some_and(|local| local.ends_with(&end));
        is_it && words.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1F91 00000000:0000 0A 00000000\n   \
            1: 0100007F:1F92 0100007F:1F91 01 00000000\n";
        assert!(has_listener(table, 0x1F91));
        assert!(!has_listener(table, 0x1F92) && !has_listener(table, 0xF91));
    }

    #[test]
    fn the_daemon_has_a_core_of_its_own_where_there_are_three() {
        assert_eq!([daemon_core(&[4]), daemon_core(&[4, 5]), daemon_core(&[4, 5, 6])], [4, 4, 5]);
    }
}
