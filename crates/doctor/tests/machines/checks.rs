//! The checks on machines that are trees of files.

use crate::fixture::{Tree, assert_state, find, findings, setup, tuned, untuned, virtual_machine};
use millrace_doctor::machine::ProcessorTime;
use millrace_doctor::{Change, Finding, Remedy, Setup, State, checks, kernel_parameters};

fn parameters(finding: &Finding) -> Vec<&str> {
    let parameters = finding.remedies.iter().filter_map(|remedy| match remedy {
        Remedy::KernelParameter(text) => Some(text.as_str()),
        _ => None,
    });
    parameters.collect()
}

#[test]
fn each_cache_is_there_once() {
    let caches = tuned().machine().topology.caches.unwrap();
    let of = |level| caches.iter().filter(|cache| cache.level == level).collect::<Vec<_>>();
    assert_eq!([of(1).len(), of(2).len(), of(3).len()], [8, 8, 2]);
    let [first, second] = of(3)[..] else { panic!("{caches:?}") };
    assert_eq!((first.size, first.kind.as_str()), (32_768, "Unified"));
    assert_eq!([first.cores.as_str(), second.cores.as_str()], ["0-3,8-11", "4-7,12-15"]);
    assert_eq!(virtual_machine().machine().topology.caches, Ok(vec![]));
}

#[test]
fn the_host_took_what_passed_between_two_looks() {
    let tree = virtual_machine();
    let before = ProcessorTime::read(tree.path()).unwrap();
    assert_eq!(before.stolen_share(), 0.1);
    tree.put("proc/stat", "cpu  150 0 120 720 0 0 0 110 0 0");
    let passed = ProcessorTime::read(tree.path()).unwrap().since(before);
    assert_eq!(passed, ProcessorTime { all: 100, busy: 70, stolen: 10 });
    tree.put("proc/stat", "cpu x");
    assert!(ProcessorTime::read(tree.path()).is_err());
}

#[test]
fn a_tuned_server_has_nothing_to_change() {
    let findings = findings(&tuned(), "1-3");
    for finding in &findings {
        assert!(!finding.state.is_complaint(), "{finding:#?}");
        assert!(finding.changes.is_empty(), "{finding:#?}");
        assert!(!finding.why.is_empty() && !finding.source.is_empty(), "{finding:#?}");
    }
    let good = [
        "isolated cores",
        "tick",
        "housekeeping core",
        "SMT siblings",
        "lockup watchdogs",
        "P-states and governor",
        "turbo",
        "C-states",
        "transparent huge pages",
        "KSM",
        "NUMA balancing",
        "IRQ affinity",
        "service",
        "IOMMU",
        "mitigations",
        "clock source",
        "memlock",
        "open files",
        "inotify",
        "immutable memory",
    ];
    for name in good {
        assert_state(&findings, (name, ""), State::Good);
    }
    for port in ["east", "west"] {
        assert_state(&findings, ("device", port), State::Good);
        assert_state(&findings, ("NUMA node of the card", port), State::Good);
        assert_state(&findings, ("PCIe link", port), State::Good);
    }
    assert_state(&findings, ("hugepages", "node 0"), State::Good);
    assert_state(&findings, ("ring sizes", "east"), State::Good);
    // Prefetchers, DDIO and memory channels are hidden, and that is said.
    let hidden = findings.iter().filter(|finding| finding.state == State::CannotBeTold);
    assert_eq!(hidden.count(), 3);
}

#[test]
fn an_untuned_server_is_told_what_to_change() {
    let tree = untuned();
    let findings = findings(&tree, "1-4,12");
    let better = [
        "isolated cores",
        "tick",
        "lockup watchdogs",
        "P-states and governor",
        "C-states",
        "transparent huge pages",
        "KSM",
        "NUMA balancing",
        "IRQ affinity",
        "memlock",
        "open files",
    ];
    for name in better {
        assert_state(&findings, (name, ""), State::CouldBeBetter);
    }
    assert_eq!(
        parameters(find(&findings, "isolated cores", "")),
        ["isolcpus=managed_irq,domain,1-4,12"]
    );
    assert_eq!(parameters(find(&findings, "tick", "")), ["nohz_full=1-4,12 rcu_nocbs=1-4,12"]);
    assert_state(&findings, ("turbo", ""), State::Choice);
    assert_state(&findings, ("clock source", ""), State::Bad);
    let siblings = find(&findings, "SMT siblings", "");
    assert_eq!(siblings.state, State::Bad);
    assert!(siblings.is.ends_with(": 4 and 12"), "{}", siblings.is);
    let node = find(&findings, "NUMA node of the card", "west");
    assert_eq!(node.state, State::Bad);
    assert!(node.is.contains("cores 1-3 are"), "{}", node.is);
    assert!(
        find(&findings, "C-states", "")
            .is
            .contains("C6 on cores 1-4,12: waking takes up to 133 us")
    );
    let irqs = find(&findings, "IRQ affinity", "");
    assert!(irqs.is.starts_with("2 of 3") && irqs.is.contains("40 (east-rx-0)"), "{}", irqs.is);
    assert!(!irqs.is.contains("nvme"), "{}", irqs.is);
    // Neither to workers nor to their siblings.
    let command = "for irq in 40 41; do echo 0,5-8,13-15 > /proc/irq/$irq/smp_affinity_list; done";
    assert_eq!(irqs.remedies[0], Remedy::Command(command.into()));
    for node in ["node 0", "node 1"] {
        assert_state(&findings, ("hugepages", node), State::CouldBeBetter);
    }
    assert_eq!(
        parameters(find(&findings, "hugepages", "node 1")),
        ["hugepagesz=2M hugepages=1:64"]
    );
}

#[test]
fn interrupts_that_the_kernel_manages_are_not_to_be_moved() {
    let tree = untuned();
    tree.managed_interrupt(43, "nvme0q1", "1");
    let managed = |remedy: &Remedy| matches!(remedy, Remedy::Manual(text) if text.contains("managed_irq") && text.contains(" 43 "));
    let all = findings(&tree, "1-4,12");
    let irqs = find(&all, "IRQ affinity", "");
    assert!(irqs.is.starts_with("3 of 4"), "{}", irqs.is);
    assert_eq!(irqs.changes.len(), 2);
    let [Remedy::Command(command), _, manual] = &irqs.remedies[..] else { panic!("{irqs:?}") };
    assert!(command.starts_with("for irq in 40 41; do") && managed(manual), "{irqs:?}");
    // Where there are no others, nothing can be done at once.
    tree.interrupt(40, "east-rx-0", "0");
    tree.interrupt(41, "east-rx-1", "0");
    let all = findings(&tree, "1-4,12");
    let irqs = find(&all, "IRQ affinity", "");
    assert!(irqs.changes.is_empty() && irqs.remedies.len() == 1, "{irqs:?}");
    assert!(managed(&irqs.remedies[0]));
}

#[test]
fn every_complaint_says_what_to_do() {
    for tree in [tuned(), untuned(), virtual_machine(), Tree::new()] {
        for workers in ["", "1", "0-1", "0-15"] {
            for finding in findings(&tree, workers) {
                let told = finding.better.is_some() && !finding.remedies.is_empty();
                assert!(told || !finding.state.is_complaint(), "{finding:#?}");
                assert!(finding.state.is_complaint() || finding.changes.is_empty(), "{finding:#?}");
            }
        }
    }
}

#[test]
fn changes_know_what_was_before() {
    let tree = untuned();
    for finding in findings(&tree, "1-4,12") {
        for change in finding.changes {
            let Change::Write { path, value, before } = change else { continue };
            let held = tree.get(path.trim_start_matches('/'));
            assert!(
                held == before || held.contains(&format!("[{before}]")),
                "{path}: {held}, {before}"
            );
            assert_ne!(value, before, "{path}");
        }
    }
}

#[test]
fn links_with_fewer_lanes_or_less_speed_are_found() {
    let findings = findings(&untuned(), "1-3");
    // 4 lanes at 8 GT/s carry 31.5 Gbit/s: enough for 25, less than the card could.
    assert_state(&findings, ("PCIe link", "east"), State::CouldBeBetter);
    // 8 at 2.5 carry 16.
    let west = find(&findings, "PCIe link", "west");
    assert_eq!(west.state, State::Bad);
    assert!(west.is.contains("16 Gbit/s each way; ports of 25 Gbit/s"), "{}", west.is);
}

#[test]
fn functions_of_a_card_share_its_link() {
    let tree = tuned();
    for function in 1..4 {
        tree.nic(
            &format!("0000:18:00.{function}"),
            &format!("east{function}"),
            0,
            ("8.0 GT/s PCIe", 8),
        );
    }
    let findings = findings(&tree, "1-3");
    let east = find(&findings, "PCIe link", "port east");
    assert_eq!(east.state, State::Bad, "{east:#?}");
    assert!(east.is.contains("ports of 100 Gbit/s"), "{}", east.is);
    assert_state(&findings, ("PCIe link", "port west"), State::Good);
}

#[test]
fn services_are_stopped_only_when_systemd_runs_them_and_nothing_else_suffers() {
    let findings = findings(&untuned(), "1-3");
    let irqbalance = find(&findings, "service", "irqbalance");
    assert_eq!(irqbalance.state, State::CouldBeBetter);
    assert_eq!(irqbalance.changes, [Change::Stop { unit: "irqbalance.service".into() }]);
    let firewalld = find(&findings, "service", "firewalld");
    assert_eq!(firewalld.state, State::Choice);
    assert!(firewalld.changes.is_empty());
    // A process of that name in somebody's session.
    assert!(find(&findings, "service", "ksmtuned").changes.is_empty());
}

#[test]
fn on_a_virtual_machine_the_host_is_named() {
    let tree = virtual_machine();
    let machine = tree.machine();
    let findings = checks::all(&machine, &Setup::assumed(&machine));
    for name in ["P-states and governor", "turbo", "C-states", "hardware prefetchers", "PCIe link"]
    {
        let finding = find(&findings, name, "");
        assert_eq!(finding.state, State::DoesNotApply, "{finding:#?}");
        assert!(matches!(finding.remedies[..], [Remedy::Host(_)]), "{finding:#?}");
    }
    let stolen = find(&findings, "time taken by the host", "");
    assert_eq!(stolen.state, State::CouldBeBetter);
    assert!(stolen.is.starts_with("10.000 %"), "{}", stolen.is);
    assert_state(&findings, ("clock source", ""), State::Good);
    // The kernel cannot isolate core 0, and the default leaves it out.
    assert_eq!(
        parameters(find(&findings, "isolated cores", "")),
        ["isolcpus=managed_irq,domain,1"]
    );
}

#[test]
fn where_nothing_can_be_read_that_is_said() {
    let machine = Tree::new().machine();
    let findings = checks::all(&machine, &Setup::assumed(&machine));
    assert!(findings.iter().all(|finding| !finding.state.is_complaint()), "{findings:#?}");
    let isolated = find(&findings, "isolated cores", "");
    assert_eq!(isolated.state, State::CannotBeTold);
    assert_eq!(isolated.is, "/sys/devices/system/cpu/isolated does not exist");
}

#[test]
fn a_worker_on_core_0_is_no_kernel_parameter() {
    let findings = findings(&untuned(), "0-15");
    assert_state(&findings, ("housekeeping core", ""), State::CouldBeBetter);
    assert_eq!(parameters(find(&findings, "tick", "")), ["nohz_full=1-15 rcu_nocbs=1-15"]);
    // There is no other core for interrupts and watchdogs, and so no change.
    assert_state(&findings, ("IRQ affinity", ""), State::DoesNotApply);
    assert!(find(&findings, "lockup watchdogs", "").changes.is_empty());
}

#[test]
fn idle_siblings_belong_to_their_workers() {
    let tree = tuned();
    tree.put("sys/devices/system/cpu/isolated", "1-3");
    let findings = findings(&tree, "1-3");
    let siblings = find(&findings, "SMT siblings", "");
    assert_eq!(siblings.state, State::CouldBeBetter);
    assert!(siblings.is.contains("cores 9-11"), "{}", siblings.is);
}

#[test]
fn a_parameter_keeps_what_is_isolated_already() {
    let findings = findings(&tuned(), "1-4");
    let line = kernel_parameters(&findings);
    assert!(line.starts_with("isolcpus=managed_irq,domain,1-4,9-12 nohz_full=1-4,9-11 "), "{line}");
}

#[test]
fn rings_below_the_default_are_too_small() {
    let machine = tuned().machine();
    let state = |descriptors| {
        let mut setup = setup(&machine, "1-3");
        setup.ports[0].rx_descriptors = descriptors;
        let findings = checks::all(&machine, &setup);
        find(&findings, "ring sizes", "east").state
    };
    assert_eq!([512, 1_024, 2_048].map(state), [State::CouldBeBetter, State::Choice, State::Good]);
}

#[test]
fn busy_workers_never_sleep() {
    let machine = untuned().machine();
    let setup = Setup { busy: true, ..setup(&machine, "1-3") };
    assert_state(&checks::all(&machine, &setup), ("C-states", ""), State::Good);
}

#[test]
fn hugepages_are_as_necessary_as_the_configuration_says() {
    use millrace_doctor::setup::Hugepages::{Auto, Never, Require};
    let machine = untuned().machine();
    let state = |hugepages| {
        let findings = checks::all(&machine, &Setup { hugepages, ..setup(&machine, "1") });
        let of_node = findings.iter().find(|finding| finding.name == "hugepages").unwrap();
        of_node.state
    };
    assert_eq!(
        [Auto, Require, Never].map(state),
        [State::CouldBeBetter, State::Bad, State::DoesNotApply]
    );
}

#[test]
fn kernel_parameters_are_one_line() {
    let line = kernel_parameters(&findings(&untuned(), "1-2,4"));
    let words: Vec<_> = line.split(' ').collect();
    // Each key once; the siblings' list is the longer one; both nodes have their pages.
    let keys =
        ["isolcpus=managed_irq,domain,1-2,4,9-10,12", "hugepages=0:64,1:64", "nohz_full=1-2,4"];
    for word in keys {
        assert!(words.contains(&word), "{word}: {line}");
    }
    let mut names: Vec<_> = words.iter().map(|word| word.split('=').next()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "{line}");
    assert_eq!(kernel_parameters(&findings(&tuned(), "1-3")), "");
}
