//! Which NUMA node cores and devices belong to, as the kernel tells in sysfs; and where buffers are to be.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use control::config::{self, Config};
use dpdk::{Device, DeviceKind};

/// The machine's cores and devices.
#[derive(Debug, Clone)]
pub(crate) struct Numa {
    sys: PathBuf,
}

impl Numa {
    /// This machine.
    pub(crate) fn of_machine() -> Self {
        Self { sys: "/sys".into() }
    }

    /// The node of a core; 0 where the kernel knows no nodes.
    pub(super) fn of_core(&self, core: u16) -> u32 {
        let folder = self.sys.join(format!("devices/system/cpu/cpu{core}"));
        let number = |entry: fs::DirEntry| -> Option<u32> {
            entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()
        };
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.flatten().find_map(number).unwrap_or(0)
    }

    /// The node of a device, where the kernel knows it.
    fn of_device(&self, device: &Device) -> Option<u32> {
        let path = match (device.kind(), device.interface()) {
            (DeviceKind::Pci, _) => {
                // The kernel writes it in small letters.
                format!("bus/pci/devices/{}/numa_node", device.argument().to_ascii_lowercase())
            }
            (_, Some(interface)) => format!("class/net/{interface}/device/numa_node"),
            _ => return None,
        };
        // -1 means that there is none.
        fs::read_to_string(self.sys.join(path)).ok()?.trim().parse().ok()
    }

    /// The nodes of the buffers of a port's receive queues, in order: the device's, which writes them; of a device in software,
    /// those of the cores that poll the queues and write them. `cores`: the workers'.
    pub(super) fn of_queues(
        &self,
        port: &config::Port,
        device: &Device,
        cores: &[u16],
    ) -> Vec<u32> {
        let own = self.of_device(device);
        let poller = |queue| {
            let place = port.queues.iter().find(|place| place.queue == queue);
            let core = place.map(|place| place.core).filter(|core| cores.contains(core));
            core.or(cores.first().copied()).map_or(0, |core| self.of_core(core))
        };
        (0..port.rx_queues.max(1)).map(|queue| own.unwrap_or_else(|| poller(queue))).collect()
    }

    /// All nodes where buffers are, for the workers or the ports of a configuration.
    pub(super) fn of_config(&self, config: &Config) -> BTreeSet<u32> {
        let cores = &config.workers.cores;
        let mut nodes: BTreeSet<u32> = cores.iter().map(|core| self.of_core(*core)).collect();
        for port in &config.ports {
            if let Ok(device) = port.device.as_str().parse() {
                nodes.extend(self.of_queues(port, &device, cores));
            }
        }
        nodes
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A machine with cores 0 and 2 on node 0 and 1 and 3 on node 1; `eth0` and 0000:81:00.0 are on node 1, `eth1` on none.
    pub(in crate::ports) fn two_nodes() -> (TempDir, Numa) {
        let folder = tempfile::tempdir().unwrap();
        for core in 0..4 {
            let node = format!("devices/system/cpu/cpu{core}/node{}", core % 2);
            fs::create_dir_all(folder.path().join(node)).unwrap();
            fs::create_dir_all(
                folder.path().join(format!("devices/system/cpu/cpu{core}/topology")),
            )
            .unwrap();
        }
        for (device, node) in [
            ("bus/pci/devices/0000:81:00.0", "1\n"),
            ("bus/pci/devices/0000:af:00.0", "1\n"),
            ("class/net/eth0/device", "1\n"),
            ("class/net/eth1/device", "-1\n"),
        ] {
            fs::create_dir_all(folder.path().join(device)).unwrap();
            fs::write(folder.path().join(device).join("numa_node"), node).unwrap();
        }
        let numa = Numa { sys: folder.path().to_owned() };
        (folder, numa)
    }

    fn parsed(text: &str) -> Config {
        Config::parse_for(text, std::path::Path::new("test.toml"), &[0, 1, 2, 3]).unwrap()
    }

    #[test]
    fn a_core_has_the_node_that_sysfs_says() {
        let (_folder, numa) = two_nodes();
        assert_eq!([0, 1, 2, 3, 4].map(|core| numa.of_core(core)), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn buffers_are_at_the_device_and_without_one_at_who_polls() {
        let (_folder, numa) = two_nodes();
        let workers = "[workers]\ncores = [0, 1, 2]\n";
        for (device, queues, nodes) in [
            ("pci:0000:81:00.0", "", vec![1, 1, 1]),
            ("pci:0000:AF:00.0", "", vec![1, 1, 1]),
            ("afpacket:eth0", "", vec![1, 1, 1]),
            (
                "afpacket:eth1",
                "queues = [{ queue = 1, core = 1 }, { queue = 0, core = 0 }, { queue = 2, core = 2 }]",
                vec![0, 1, 0],
            ),
            (
                "null",
                "queues = [{ queue = 0, core = 1 }, { queue = 1, core = 2 }, { queue = 2, core = 1 }]",
                vec![1, 0, 1],
            ),
            ("null", "", vec![0, 1, 0]),
        ] {
            let port =
                format!("[[port]]\nname = \"a\"\ndevice = \"{device}\"\nrx-queues = 3\n{queues}");
            let config = parsed(&format!("{workers}{port}"));
            let port = &config.ports[0];
            let device = port.device.as_str().parse().unwrap();
            assert_eq!(numa.of_queues(port, &device, &config.workers.cores), nodes, "{queues}");
        }
    }

    #[test]
    fn every_node_of_a_worker_or_port_has_buffers() {
        let (_folder, numa) = two_nodes();
        let nodes = |text: &str| numa.of_config(&parsed(text)).into_iter().collect::<Vec<_>>();
        assert_eq!(nodes("[workers]\ncores = [0, 2]\n"), [0]);
        assert_eq!(nodes("[workers]\ncores = [1]\n"), [1]);
        assert_eq!(nodes("[workers]\ncores = [2, 3]\n"), [0, 1]);
        let port = "[[port]]\nname = \"a\"\ndevice = \"afpacket:eth0\"\n";
        assert_eq!(nodes(&format!("[workers]\ncores = [0]\n{port}")), [0, 1]);
    }
}
