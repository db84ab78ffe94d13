//! Network cards on PCI, whether the kernel drives them or DPDK.

use crate::root::{Fact, Root};

pub(super) const DEVICES: &str = "/sys/bus/pci/devices";

/// PCI class of Ethernet controllers, without its interface byte.
const ETHERNET: &str = "0x0200";

/// A network card's function.
#[derive(Debug, Clone, PartialEq)]
pub struct Nic {
    /// Its PCI address, as in `0000:81:00.0`.
    pub address: String,
    /// Its driver; none: no driver has it.
    pub driver: Option<String>,
    /// Kernel interfaces on it.
    pub interfaces: Vec<String>,
    /// Whether the default route leaves through one of them.
    pub default_route: bool,
    /// Whether it is a virtual function (SR-IOV), whose PCIe link is that of its card.
    pub is_virtual: bool,
    /// Its NUMA node; none: the firmware does not say.
    pub node: Option<u16>,
    /// Speed of its link, when the kernel drives it: Mbit/s.
    pub speed: Option<u32>,
    /// Its PCIe link as it is; none: it has none.
    pub link: Option<Lanes>,
    /// The most that card and slot agree on.
    pub capable: Option<Lanes>,
    /// Type of its IOMMU group, as in `identity` or `DMA`; none: it has no group.
    pub iommu: Option<String>,
}

/// A PCIe link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lanes {
    /// Speed of a lane: GT/s.
    pub speed: f64,
    /// Number of lanes.
    pub width: u16,
}

impl Lanes {
    /// What it carries each way after its line code: Gbit/s.
    #[must_use]
    pub fn gigabits(self) -> f64 {
        // 8b/10b up to 5 GT/s, 128b/130b up to 32; from 64 on, flits of 256 bytes carry 242 (PCIe 6.0 4.2.3).
        let code = match self.speed {
            speed if speed < 8.0 => 0.8,
            speed if speed < 64.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        self.speed * f64::from(self.width) * code
    }

    fn read(root: &Root, device: &str, which: &str) -> Option<Self> {
        let speed = root.text(&format!("{device}/{which}_link_speed")).ok()?;
        // `8.0 GT/s PCIe`; `Unknown` where there is no link.
        let speed: f64 = speed.split_whitespace().next()?.parse().ok()?;
        let width: u16 = root.value(&format!("{device}/{which}_link_width")).ok()?;
        // 63: the kernel does not know.
        let known = speed.is_finite() && speed > 0.0 && (1..=32).contains(&width);
        known.then_some(Self { speed, width })
    }
}

impl Nic {
    /// Its name for people: its interfaces, or its address.
    #[must_use]
    pub fn name(&self) -> String {
        if self.interfaces.is_empty() { self.address.clone() } else { self.interfaces.join(", ") }
    }

    /// Its slot: functions of one card share its link.
    #[must_use]
    pub fn slot(&self) -> &str {
        self.address.rsplit_once('.').map_or(&self.address, |(slot, _)| slot)
    }

    fn read(root: &Root, address: String, routed: &[String]) -> Option<Self> {
        let device = format!("{DEVICES}/{address}");
        if !root.text(&format!("{device}/class")).ok()?.starts_with(ETHERNET) {
            return None;
        }
        let interfaces = interfaces(root, &device);
        let speed = interfaces.iter().find_map(|name| {
            // -1 while the link is down.
            root.value::<u32>(&format!("/sys/class/net/{name}/speed"))
                .ok()
                .filter(|speed| *speed > 0)
        });
        Some(Self {
            driver: root.target(&format!("{device}/driver")),
            default_route: interfaces.iter().any(|name| routed.contains(name)),
            is_virtual: root.exists(&format!("{device}/physfn")),
            // -1 where the firmware does not say.
            node: root.value(&format!("{device}/numa_node")).ok(),
            link: Lanes::read(root, &device, "current"),
            capable: Lanes::read(root, &device, "max"),
            iommu: root.text(&format!("{device}/iommu_group/type")).ok(),
            interfaces,
            speed,
            address,
        })
    }
}

/// Interfaces of a device; those of virtio are one level further down.
fn interfaces(root: &Root, device: &str) -> Vec<String> {
    let own = root.entries(&format!("{device}/net")).unwrap_or_default();
    if !own.is_empty() {
        return own;
    }
    let below = root.entries(device).unwrap_or_default();
    let virtio = below.iter().filter(|name| name.starts_with("virtio"));
    virtio
        .flat_map(|name| root.entries(&format!("{device}/{name}/net")).unwrap_or_default())
        .collect()
}

/// Interfaces that the default routes lead to.
fn routed(root: &Root) -> Vec<String> {
    // Interface and destination are the first two columns; zeros mean any destination.
    let four = root.text("/proc/net/route").unwrap_or_default();
    let four = four.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let is_default = words.next()? == "00000000" && words.nth(5)? == "00000000";
        is_default.then(|| name.to_owned())
    });
    // Destination and its length come first, flags ninth, the interface last; the kernel has a default route of its own on `lo`.
    let six = root.text("/proc/net/ipv6_route").unwrap_or_default();
    let six = six.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [destination, "00", .., name] = words.as_slice() else { return None };
        let is_default = destination.bytes().all(|byte| byte == b'0') && *name != "lo";
        is_default.then(|| (*name).to_owned())
    });
    four.chain(six).collect()
}

pub(super) fn read(root: &Root) -> Fact<Vec<Nic>> {
    let routed = routed(root);
    let addresses = root.entries(DEVICES)?;
    Ok(addresses.into_iter().filter_map(|address| Nic::read(root, address, &routed)).collect())
}
