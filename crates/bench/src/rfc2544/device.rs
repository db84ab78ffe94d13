//! Devices under test that the bench starts itself, and the ports by which it reaches them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dpdk::Device as Port;
use tempfile::TempDir;
use wire::MacAddr;

use super::addresses::{DEVICE_MACS, NAMES, TESTER_MACS};
use super::scenario::{Device, Forwarding, Scenario};
use super::{kernel, millraced};
use crate::failure::Failure;
use crate::namespace::bound;
use crate::process::Running;
use crate::testpmd::{self, Testpmd};

/// Packet buffers of dpdk-testpmd, and bytes of each with headroom.
const BUFFERS: u32 = 8192;
const BUFFER_SIZE: u32 = 9728;

/// A device that runs, and how it is reached.
pub(super) struct UnderTest {
    // Ended in this order; the folder goes last.
    _running: Option<Process>,
    /// The tester's ports.
    pub(super) ports: [Port; 2],
    /// Where its frames go to.
    pub(super) macs: [MacAddr; 2],
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
    pub(super) hugepages: bool,
}

impl UnderTest {
    /// Starts the scenario's device. It makes no links yet: those come up when the tester opens its ports.
    pub(super) fn start(scenario: &Scenario, place: &Place) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let sockets = NAMES.map(|name| folder.path().join(name));
        let [left, right] = &sockets;
        let ours = |socket: &Path| format!("memif:{},role=client", socket.display());
        let joined = |role| format!("memif:{},role={role}", left.display());
        let (mut devices, macs) = match &scenario.device {
            Device::None {} => ([joined("server"), joined("client")], DEVICE_MACS),
            Device::Kernel {} => (["", ""].map(String::from), DEVICE_MACS),
            Device::External { ports, macs } => {
                let [one, other] = macs;
                let mac =
                    |text: &str| text.parse::<MacAddr>().map_err(|_| Failure::Mac(text.to_owned()));
                (ports.clone(), [mac(one)?, mac(other)?])
            }
            // A bridge is not spoken to: frames are for the tester's other port.
            Device::Millraced { forwarding: Forwarding::Bridge, .. } => {
                let [one, other] = TESTER_MACS;
                ([ours(left), ours(right)], [other, one])
            }
            _ => ([ours(left), ours(right)], DEVICE_MACS),
        };
        let running = match &scenario.device {
            Device::None {} | Device::External { .. } => None,
            Device::Kernel {} => {
                let (namespace, ours) = kernel::start(scenario)?;
                devices = ours.map(|name| format!("afpacket:{name}"));
                Some(Process::Child(namespace))
            }
            Device::Millraced { .. } => {
                let (config, api) =
                    (folder.path().join("millrace.toml"), folder.path().join("api"));
                millraced::configure(scenario, place.core, &sockets, &config)?;
                let words = ["--config".into(), text(&config), "--socket".into(), text(&api)];
                let program = place.programs.join("millraced");
                let ready = [left.clone(), right.clone(), api];
                Some(Process::Child(launch(&program, &words, folder.path(), &ready)?))
            }
            Device::Testpmd { core } => {
                Some(Process::Testpmd(testpmd(&sockets, core.unwrap_or(place.core), place)?))
            }
            Device::Impaired { core, faults } => {
                let core = core.unwrap_or(place.core);
                let mut words = vec!["rfc2544-impaired".to_owned()];
                words.extend(sockets.iter().map(|s| format!("memif:{},role=server", s.display())));
                words.extend(["--core".into(), core.to_string()]);
                words.extend(faults.words());
                let program = std::env::current_exe()?;
                Some(Process::Child(launch(&program, &words, folder.path(), &sockets)?))
            }
        };
        let [one, other] = devices;
        Ok(Self { _running: running, ports: [one.parse()?, other.parse()?], macs, _folder: folder })
    }
}

impl super::args::Faults {
    /// As the hidden command takes them.
    fn words(&self) -> Vec<String> {
        let Self { drop, duplicate, reorder, corrupt, delay } = *self;
        [
            ("drop", drop),
            ("duplicate", duplicate),
            ("reorder", reorder),
            ("corrupt", corrupt),
            ("delay", delay),
        ]
        .into_iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect()
    }
}

fn testpmd(sockets: &[PathBuf; 2], core: usize, place: &Place) -> Result<Testpmd, Failure> {
    let devices = sockets.iter().enumerate().map(|(number, socket)| {
        format!("net_memif{number},role=server,socket={},socket-abstract=no", socket.display())
    });
    let devices: Vec<String> = devices.collect();
    let mut started = Testpmd::spawn(&testpmd::Setup {
        name: "rfc2544",
        devices: &devices.iter().map(String::as_str).collect::<Vec<_>>(),
        templates: None,
        cores: [core, core],
        hugepages: place.hugepages,
        burst: 32,
        buffers: BUFFERS,
        buffer_size: BUFFER_SIZE,
    })?;
    started.start("io")?;
    Ok(started)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Starts a program, which ends with this one, and waits until these files are there.
fn launch(
    program: &Path,
    words: &[String],
    folder: &Path,
    ready: &[PathBuf],
) -> Result<Running, Failure> {
    /// How long it may take.
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut command = bound();
    command.arg(program).args(words);
    let are_there = |_: &Running| ready.iter().all(|path| path.exists());
    let log = folder.join("log");
    let running = Running::start(&text(program), command, &log, PATIENCE, are_there)?;
    // A socket is there a moment before its port takes connections.
    std::thread::sleep(Duration::from_millis(200));
    Ok(running)
}
