//! What a device needs besides its scenario: root, programs, interfaces. Looked at before anything is started, by a run as by
//! `--check`.

use std::path::Path;

use dpdk::DeviceKind;

use super::scenario::{Device, Forwarding, Scenario};
use crate::failure::Failure;
use crate::namespace::{self, BOUND};
use crate::process::{self, Program, is_installed};

/// Forwards where a guest or the device does.
const TESTPMD: Program = ("dpdk-testpmd", "dpdk-dev");
/// Where the kernel shows cards.
const CARDS: &str = "/sys/bus/pci/devices";

/// Who starts devices.
struct Host<'a> {
    is_root: bool,
    has: &'a dyn Fn(&str) -> bool,
    /// Folder of `millraced`.
    programs: &'a Path,
    /// The folder that has an entry for each card.
    cards: &'a Path,
}

/// Refuses a scenario whose device cannot be had here. `programs`: folder of `millraced`.
pub(super) fn check(scenario: &Scenario, programs: &Path) -> Result<(), Failure> {
    let is_root = process::is_root();
    let cards = Path::new(CARDS);
    Host { is_root, has: &is_installed, programs, cards }.check(&scenario.device)
}

impl Host<'_> {
    fn check(&self, device: &Device) -> Result<(), Failure> {
        match device {
            Device::None {} => Ok(()),
            Device::External { ports, .. } => {
                ports.iter().try_for_each(|port| self.port(&port.parse::<dpdk::Device>()?))
            }
            Device::Kernel {} => granted(namespace::lacks(self.is_root, self.has)),
            Device::Testpmd { .. } => self.find(&[TESTPMD]),
            Device::Impaired { .. } => self.find(&[BOUND]),
            Device::Millraced(daemon) => {
                let program = process::daemon(self.programs);
                if !program.exists() {
                    let program = program.display();
                    let why = format!("there is no {program}; say where with --programs");
                    return Err(Failure::UnderTest(why));
                }
                match daemon.forwarding {
                    Forwarding::Guest => self.find(&[BOUND, TESTPMD]),
                    _ => self.find(&[BOUND]),
                }
            }
        }
    }

    /// Whether the tester can open a port.
    fn port(&self, port: &dpdk::Device) -> Result<(), Failure> {
        port.check()?;
        let address = port.argument().to_ascii_lowercase();
        if port.kind() != DeviceKind::Pci || self.cards.join(&address).exists() {
            return Ok(());
        }
        let why = format!("there is no card {address} on PCI; `lspci -D` lists those that are");
        Err(Failure::UnderTest(why))
    }

    fn find(&self, programs: &[Program]) -> Result<(), Failure> {
        granted(process::lacks(programs, self.has))
    }
}

/// Nothing is lacking, or the device cannot be had for that.
fn granted(lacking: Option<String>) -> Result<(), Failure> {
    lacking.map_or(Ok(()), |why| Err(Failure::UnderTest(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let check = |is_root: bool, lacks: &str, device: &str| {
            let device: Device = toml::from_str(device).unwrap();
            let has = |name: &str| name != lacks;
            let host = Host { is_root, has: &has, programs: folder.path(), cards: folder.path() };
            host.check(&device).map_err(|why| why.to_string())
        };
        let kernel = "kind = \"kernel\"";
        assert!(check(false, "", kernel).unwrap_err().contains("run this as root"));
        let said = check(true, "nsenter", kernel).unwrap_err();
        assert!(said.contains("nsenter is not installed") && said.contains("util-linux"), "{said}");
        assert!(check(true, "", kernel).is_ok());
        let testpmd = "kind = \"testpmd\"";
        assert!(check(false, "dpdk-testpmd", testpmd).unwrap_err().contains("dpdk-dev"));
        assert!(check(false, "", testpmd).is_ok());
        assert!(check(false, "setpriv", "kind = \"impaired\"").is_err());
        let absent = "kind = \"external\"\nports = [\"null\", \"afpacket:no-such\"]";
        assert!(check(true, "", absent).unwrap_err().contains("no-such"));
        assert!(check(false, "", "kind = \"external\"\nports = [\"null\", \"null\"]").is_ok());
        let card = "kind = \"external\"\nports = [\"null\", \"pci:0000:AF:00.1,mprq_en=1\"]";
        let said = check(true, "", card).unwrap_err();
        assert!(said.contains("no card 0000:af:00.1") && said.contains("lspci"), "{said}");
        std::fs::create_dir(folder.path().join("0000:af:00.1")).unwrap();
        assert!(check(true, "", card).is_ok());
        let daemon = "kind = \"millraced\"\n";
        let guest = format!("{daemon}forwarding = \"guest\"\n");
        let said = check(false, "", daemon).unwrap_err();
        assert!(said.contains("/millraced; say where with --programs"), "{said}");
        std::fs::write(folder.path().join("millraced"), "").unwrap();
        assert!(check(false, "dpdk-testpmd", daemon).is_ok());
        assert!(check(false, "dpdk-testpmd", &guest).unwrap_err().contains("dpdk-testpmd"));
        assert!(check(false, "setpriv", &guest).is_err());
    }
}
