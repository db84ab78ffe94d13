//! Machines as trees of files: what `/proc` and `/sys` would hold.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use millrace_doctor::setup::{Hugepages, Port};
use millrace_doctor::{CoreSet, Finding, Machine, Setup, State, checks};

/// Two sockets of four cores with two threads each: node 0 has 0-3 and 8-11, node 1 the rest.
const NODES: [&str; 2] = ["0-3,8-11", "4-7,12-15"];

const PROCESSOR: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\n";

/// A tree below a folder of its own.
pub(crate) struct Tree {
    pub(crate) folder: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn put(&self, path: &str, text: &str) -> &Self {
        let place = self.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, format!("{text}\n")).unwrap();
        self
    }

    pub(crate) fn get(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap().trim().to_owned()
    }

    pub(crate) fn machine(&self) -> Machine {
        Machine::read(self.path(), None)
    }

    fn link(&self, path: &str, target: &str) {
        let place = self.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(target, place).unwrap();
    }

    /// A network card that the kernel drives as `name`.
    pub(crate) fn nic(&self, address: &str, name: &str, node: i32, (speed, width): (&str, u16)) {
        let device = format!("sys/bus/pci/devices/{address}");
        self.put(&format!("{device}/class"), "0x020000");
        self.put(&format!("{device}/numa_node"), &node.to_string());
        self.put(&format!("{device}/current_link_speed"), speed);
        self.put(&format!("{device}/current_link_width"), &width.to_string());
        self.put(&format!("{device}/max_link_speed"), "8.0 GT/s PCIe");
        self.put(&format!("{device}/max_link_width"), "8");
        self.put(&format!("{device}/iommu_group/type"), "identity");
        self.put(&format!("{device}/net/{name}/speed"), "25000");
        self.put(&format!("sys/class/net/{name}/speed"), "25000");
        self.link(&format!("{device}/driver"), "../../drivers/ice");
    }

    pub(crate) fn interrupt(&self, number: u16, name: &str, cores: &str) {
        self.put(&format!("proc/irq/{number}/smp_affinity_list"), cores);
        self.put(&format!("proc/irq/{number}/effective_affinity_list"), cores);
        self.put(&format!("proc/irq/{number}/{name}/.keep"), "");
    }

    /// One that the kernel lets nobody move.
    pub(crate) fn managed_interrupt(&self, number: u16, name: &str, cores: &str) {
        self.interrupt(number, name, cores);
        let list = self.path().join(format!("proc/irq/{number}/smp_affinity_list"));
        fs::set_permissions(list, fs::Permissions::from_mode(0o444)).unwrap();
    }

    pub(crate) fn service(&self, process: u32, name: &str, unit: &str) {
        self.put(&format!("proc/{process}/comm"), name);
        self.put(&format!("proc/{process}/cgroup"), &format!("0::/system.slice/{unit}"));
    }

    fn cores(&self, governor: &str, deep: &str) {
        let cpu = "sys/devices/system/cpu";
        for core in 0..16 {
            let own = format!("{cpu}/cpu{core}");
            let siblings = format!("{},{}", core % 8, core % 8 + 8);
            self.put(&format!("{own}/topology/thread_siblings_list"), &siblings);
            self.put(&format!("{own}/cpufreq/scaling_driver"), "intel_pstate");
            self.put(&format!("{own}/cpufreq/scaling_governor"), governor);
            self.put(
                &format!("{own}/cpufreq/scaling_available_governors"),
                "performance powersave",
            );
            let level_3 = if core % 8 < 4 { NODES[0] } else { NODES[1] };
            for (index, level, kind, size, shared) in [
                (0, "1", "Data", "48K", siblings.as_str()),
                (1, "2", "Unified", "2048K", &siblings),
                (2, "3", "Unified", "32768K", level_3),
            ] {
                let folder = format!("{own}/cache/index{index}");
                self.put(&format!("{folder}/level"), level);
                self.put(&format!("{folder}/type"), kind);
                self.put(&format!("{folder}/size"), size);
                self.put(&format!("{folder}/shared_cpu_list"), shared);
            }
            for (state, name, latency, disable) in
                [(0, "POLL", 0, "0"), (1, "C1", 2, "0"), (2, "C6", 133, deep)]
            {
                let folder = format!("{own}/cpuidle/state{state}");
                self.put(&format!("{folder}/name"), name);
                self.put(&format!("{folder}/latency"), &latency.to_string());
                self.put(&format!("{folder}/disable"), disable);
            }
        }
    }

    fn nodes(&self, pages: u64) {
        for (node, cores) in NODES.iter().enumerate() {
            let folder = format!("sys/devices/system/node/node{node}");
            self.put(&format!("{folder}/cpulist"), cores);
            for (size, count) in [(2_048, pages), (1_048_576, 0)] {
                let pool = format!("{folder}/hugepages/hugepages-{size}kB");
                self.put(&format!("{pool}/nr_hugepages"), &count.to_string());
                self.put(&format!("{pool}/free_hugepages"), &count.to_string());
            }
        }
    }

    fn kernel(&self, words: [&str; 9]) {
        let [isolated, nohz, nmi, watched, transparent, merging, balancing, turbo, parameters] =
            words;
        let cpu = "sys/devices/system/cpu";
        self.put(&format!("{cpu}/online"), "0-15")
            .put(&format!("{cpu}/isolated"), isolated)
            .put(&format!("{cpu}/nohz_full"), nohz)
            .put(&format!("{cpu}/intel_pstate/no_turbo"), turbo)
            .put("proc/cmdline", parameters)
            .put("proc/cpuinfo", &format!("{PROCESSOR}flags\t\t: fpu constant_tsc nonstop_tsc"))
            .put("proc/sys/kernel/nmi_watchdog", nmi)
            .put("proc/sys/kernel/soft_watchdog", "1")
            .put("proc/sys/kernel/watchdog_cpumask", watched)
            .put("proc/sys/kernel/numa_balancing", balancing)
            .put("sys/kernel/mm/transparent_hugepage/enabled", transparent)
            .put("sys/kernel/mm/ksm/run", merging)
            .put(&format!("{cpu}/vulnerabilities/meltdown"), "Not affected")
            .put("sys/kernel/iommu_groups/0/type", "identity");
    }

    fn rest(&self, clock: &str, locked: &str, files: &str) {
        let source = "sys/devices/system/clocksource/clocksource0";
        let limits = format!(
            "Limit                     Soft Limit           Hard Limit           Units\n\
             Max open files            1024                 {files}              files\n\
             Max locked memory         {locked}             unlimited            bytes"
        );
        self.put(&format!("{source}/current_clocksource"), clock)
            .put(&format!("{source}/available_clocksource"), "tsc hpet acpi_pm")
            .put("proc/self/limits", &limits)
            .put("proc/self/status", "Name:\tmillrace\nCapEff:\t0\nCapBnd:\t000001ffffffffff")
            .put("proc/sys/fs/inotify/max_user_instances", "128")
            .put("proc/sys/fs/inotify/max_user_watches", "524288")
            .put("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3")
            .put("proc/net/route", "Iface\tDestination\tGateway\nmgmt\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0");
    }
}

/// A server on which everything is as it should be for workers on 1-3: all isolated with their siblings, cards on node 0.
pub(crate) fn tuned() -> Tree {
    let tree = Tree::new();
    tree.cores("performance", "1");
    tree.nodes(512);
    tree.kernel([
        "1-3,9-11",
        "1-3,9-11",
        "0",
        "0,4-8,12-15",
        "always [madvise] never",
        "0",
        "0",
        "1",
        "BOOT_IMAGE=/vmlinuz isolcpus=managed_irq,domain,1-3,9-11 nohz_full=1-3,9-11 iommu=pt",
    ]);
    tree.rest("tsc", "unlimited", "1048576");
    tree.nic("0000:18:00.0", "east", 0, ("8.0 GT/s PCIe", 8));
    tree.nic("0000:19:00.0", "west", 0, ("8.0 GT/s PCIe", 8));
    tree.interrupt(40, "east-rx-0", "0");
    tree.put("proc/200/comm", "sshd");
    tree
}

/// The same server as a distribution installs it, with a card that has half its lanes on the other node.
pub(crate) fn untuned() -> Tree {
    let tree = Tree::new();
    tree.cores("powersave", "0");
    tree.nodes(0);
    tree.kernel([
        "",
        "(null)",
        "1",
        "0-15",
        "[always] madvise never",
        "1",
        "1",
        "0",
        "BOOT_IMAGE=/vmlinuz quiet",
    ]);
    tree.rest("hpet", "8388608", "4096");
    tree.nic("0000:18:00.0", "east", 0, ("8.0 GT/s PCIe", 4));
    tree.nic("0000:af:00.0", "west", 1, ("2.5 GT/s PCIe", 8));
    tree.interrupt(40, "east-rx-0", "2");
    tree.interrupt(41, "east-rx-1", "0-15");
    tree.interrupt(42, "nvme0q0", "7");
    tree.service(900, "irqbalance", "irqbalance.service");
    tree.service(901, "firewalld", "firewalld.service");
    tree.put("proc/902/comm", "ksmtuned").put("proc/902/cgroup", "0::/user.slice/session-1.scope");
    tree
}

/// A virtual machine of two cores, as clouds have them.
pub(crate) fn virtual_machine() -> Tree {
    let tree = Tree::new();
    let cpu = "sys/devices/system/cpu";
    tree.put(&format!("{cpu}/online"), "0-1")
        .put(&format!("{cpu}/isolated"), "")
        .put(&format!("{cpu}/cpu0/topology/thread_siblings_list"), "0")
        .put(&format!("{cpu}/cpu1/topology/thread_siblings_list"), "1")
        .put("sys/devices/system/node/node0/cpulist", "0-1")
        .put("proc/cpuinfo", "vendor_id : AuthenticAMD\nmodel name : EPYC\nflags : fpu constant_tsc nonstop_tsc hypervisor")
        .put("sys/bus/pci/devices/0000:00:03.0/class", "0x020000")
        .put("sys/bus/pci/devices/0000:00:03.0/numa_node", "-1")
        .put("sys/bus/pci/devices/0000:00:03.0/virtio2/net/eth0/speed", "-1")
        .put("sys/class/net/eth0/speed", "-1");
    tree.rest("kvm-clock", "unlimited", "1048576");
    tree.put("proc/stat", "cpu  100 0 100 700 0 0 0 100 0 0");
    tree
}

/// Workers on these cores, and ports `east` and `west` on the cards of those names, polled by all of them.
pub(crate) fn setup(machine: &Machine, workers: &str) -> Setup {
    let cores: CoreSet = workers.parse().unwrap();
    let port = |name: &str, kind: &str, argument: &str| Port {
        name: name.into(),
        device: format!("{kind}:{argument}"),
        kind: kind.into(),
        argument: argument.into(),
        speed: None,
        rx_descriptors: 2_048,
        tx_descriptors: 2_048,
        cores: cores.clone(),
    };
    let ports = vec![port("east", "pci", "0000:18:00.0"), port("west", "afxdp", "west")];
    Setup { ports, workers: cores.clone(), hugepages: Hugepages::Auto, ..Setup::assumed(machine) }
}

/// Everything that is found for these workers and ports.
pub(crate) fn findings(tree: &Tree, workers: &str) -> Vec<Finding> {
    let machine = tree.machine();
    checks::all(&machine, &setup(&machine, workers))
}

/// The one finding of that name, about that subject where there are several.
pub(crate) fn find<'a>(findings: &'a [Finding], name: &str, subject: &str) -> &'a Finding {
    let about =
        |finding: &&Finding| finding.subject.as_deref().unwrap_or_default().contains(subject);
    let mut all = findings.iter().filter(|finding| finding.name == name).filter(about);
    let first = all.next().unwrap_or_else(|| panic!("nothing about {name} {subject}"));
    assert!(all.next().is_none(), "more than one about {name} {subject}");
    first
}

/// Its state, with what the finding says where a test fails.
pub(crate) fn assert_state(findings: &[Finding], (name, subject): (&str, &str), state: State) {
    let finding = find(findings, name, subject);
    assert_eq!(finding.state, state, "{finding:#?}");
}
