//! Devices under test that the bench starts itself, and the ports by which it reaches them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dpdk::Device as Port;
use tempfile::TempDir;
use wire::MacAddr;

use super::addresses::{DEVICE_MACS, NAMES, TESTER_MACS};
use super::kernel;
use super::millraced::{self, Sockets, Updates};
use super::scenario::{Attach, Device, Forwarding, Millraced, Scenario};
use crate::failure::Failure;
use crate::namespace::bound;
use crate::process::{self, Running};
use crate::testpmd::{self, Testpmd};

/// Packet buffers of dpdk-testpmd, and bytes of each with headroom.
const BUFFERS: u32 = 8192;
const BUFFER_SIZE: u32 = 9728;

/// A device that runs, and how it is reached.
pub(super) struct UnderTest {
    // Ended in this order; the folder goes last.
    pub(super) updates: Option<Updates>,
    _running: Vec<Process>,
    /// The tester's ports.
    pub(super) ports: [Port; 2],
    /// Where its frames go to; `None`: it has to be asked.
    pub(super) macs: Option<[MacAddr; 2]>,
    _folder: TempDir,
}

/// A program.
enum Process {
    Child(#[expect(dead_code, reason = "ends the program when it is dropped")] Running),
    Testpmd(#[expect(dead_code, reason = "ends the program when it is dropped")] Testpmd),
}

/// Where things are.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Folder of `millraced`.
    pub(super) programs: PathBuf,
    /// The device's core, if the scenario names none.
    pub(super) core: usize,
    /// That of what the device needs besides: the next one, if the tester's is yet another one.
    pub(super) second: usize,
    pub(super) hugepages: bool,
}

impl UnderTest {
    /// Starts the scenario's device. It makes no links yet: those come up when the tester opens its ports.
    pub(super) fn start(scenario: &Scenario, place: &Place) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let sockets = NAMES.map(|name| folder.path().join(name));
        let [left, right] = &sockets;
        let size = scenario.trials.ring_option();
        let ours = |socket: &Path| format!("memif:{},role=client,{size}", socket.display());
        let (mut running, mut updates, mut macs) = (Vec::new(), None, Some(DEVICE_MACS));
        let devices = match &scenario.device {
            Device::None {} => ["server", "client"]
                .map(|role| format!("memif:{},role={role},{size}", left.display())),
            Device::External { ports, macs: named } => {
                macs = named.as_ref().map(read_macs).transpose()?;
                ports.clone()
            }
            Device::Kernel {} => {
                let (namespace, ours) = kernel::start(scenario)?;
                running.push(Process::Child(namespace));
                ours.map(|name| format!("afpacket:{name}"))
            }
            Device::Millraced(daemon) => {
                let api = folder.path().join("api");
                running = Self::daemon(scenario, daemon, place, folder.path(), &api)?;
                if daemon.updates > 0 {
                    updates = Some(Updates::start(scenario, daemon, api, place.second)?);
                }
                // Nobody speaks to a bridge or a guest: frames are for the tester's other port.
                if matches!(daemon.forwarding, Forwarding::Bridge | Forwarding::Guest) {
                    let [one, other] = TESTER_MACS;
                    macs = Some([other, one]);
                }
                match daemon.attach {
                    Attach::Memif => [ours(left), ours(right)],
                    Attach::VhostUser => {
                        [left, right].map(|socket| format!("virtio-user:{}", socket.display()))
                    }
                }
            }
            Device::Testpmd { core } => {
                let devices = sockets.iter().enumerate().map(|(number, socket)| {
                    let socket = socket.display();
                    format!(
                        "net_memif{number},role=server,socket={socket},socket-abstract=no,{size}"
                    )
                });
                let core = core.unwrap_or(place.core);
                running.push(testpmd("rfc2544", devices.collect(), core, place)?);
                [ours(left), ours(right)]
            }
            Device::Impaired { core, faults } => {
                let core = core.unwrap_or(place.core);
                let mut words = vec!["rfc2544-impaired".to_owned()];
                let server =
                    |socket: &PathBuf| format!("memif:{},role=server,{size}", socket.display());
                words.extend(sockets.iter().map(server));
                words.extend(["--core".into(), core.to_string()]);
                words.extend(faults.all().map(|(name, value)| format!("--{name}={value}")));
                let program = std::env::current_exe()?;
                let child = launch(&program, &words, folder.path(), &sockets, patience(0))?;
                running.push(Process::Child(child));
                [ours(left), ours(right)]
            }
        };
        let [one, other] = devices;
        let ports = [one.parse()?, other.parse()?];
        Ok(Self { updates, _running: running, ports, macs, _folder: folder })
    }

    /// Starts our daemon, and its guest if it has one. The guest ends first.
    fn daemon(
        scenario: &Scenario,
        daemon: &Millraced,
        place: &Place,
        folder: &Path,
        api: &Path,
    ) -> Result<Vec<Process>, Failure> {
        let config = folder.join("millrace.toml");
        let outer = NAMES.map(|name| folder.join(name));
        let guest = NAMES.map(|name| folder.join(format!("guest-{name}")));
        let sockets = Sockets { outer, guest };
        millraced::configure(scenario, daemon, place.core, &sockets, &config)?;
        let words = ["--config".into(), text(&config), "--socket".into(), text(api)];
        let has_guest = daemon.forwarding == Forwarding::Guest;
        let mut ready = sockets.outer.to_vec();
        ready.push(api.to_owned());
        ready.extend(sockets.guest.iter().filter(|_| has_guest).cloned());
        let patience = patience(millraced::entries(scenario, daemon));
        let program = process::daemon(&place.programs);
        let child = launch(&program, &words, folder, &ready, patience)?;
        let mut running = Vec::new();
        if has_guest {
            let devices = sockets.guest.iter().enumerate().map(|(number, socket)| {
                let socket = socket.display();
                format!("net_virtio_user{number},path={socket},queues=1,queue_size=1024")
            });
            let core = daemon.guest_core.unwrap_or(place.second);
            running.push(testpmd("guest", devices.collect(), core, place)?);
        }
        running.push(Process::Child(child));
        Ok(running)
    }
}

fn read_macs(macs: &[String; 2]) -> Result<[MacAddr; 2], Failure> {
    let read = |text: &String| text.parse::<MacAddr>().map_err(|_| Failure::Mac(text.clone()));
    let [one, other] = macs;
    Ok([read(one)?, read(other)?])
}

/// Starts one that forwards between two devices.
fn testpmd(
    name: &str,
    devices: Vec<String>,
    core: usize,
    place: &Place,
) -> Result<Process, Failure> {
    let mut started = Testpmd::spawn(&testpmd::Setup {
        name,
        devices: &devices.iter().map(String::as_str).collect::<Vec<_>>(),
        templates: None,
        cores: [core, core],
        hugepages: place.hugepages,
        burst: 32,
        buffers: BUFFERS,
        buffer_size: BUFFER_SIZE,
    })?;
    started.start("io")?;
    Ok(Process::Testpmd(started))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// How long a program may take to start that reads so many entries of tables.
fn patience(entries: u64) -> Duration {
    /// Without entries: s.
    const BARE: u64 = 60;
    /// Entries of a second, on a machine that is slow and has other work.
    const FEWEST: u64 = 25_000;
    Duration::from_secs(BARE + entries / FEWEST)
}

/// Starts a program, which ends with this one, and waits until these files are there.
fn launch(
    program: &Path,
    words: &[String],
    folder: &Path,
    ready: &[PathBuf],
    patience: Duration,
) -> Result<Running, Failure> {
    let mut command = bound();
    command.arg(program).args(words);
    let are_there = |_: &Running| ready.iter().all(|path| path.exists());
    let log = folder.join("log");
    let running = Running::start(&text(program), command, &log, patience, are_there)?;
    // A socket is there a moment before its port takes connections.
    std::thread::sleep(Duration::from_millis(200));
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_tables_may_take_longer() {
        assert_eq!(patience(0).as_secs(), 60);
        assert!(patience(2 * 16_777_216).as_secs() > 1200);
    }
}
