//! What the daemon needs of a machine that is a tree of files.

use crate::fixture::{assert_state, find, findings, setup, tuned, untuned};
use millrace_doctor::{Change, Machine, Remedy, Setup, State, checks};

#[test]
fn a_device_that_is_not_there_is_named() {
    let machine = tuned().machine();
    let mut setup = setup(&machine, "1-3");
    setup.ports[0].argument = "0000:81:00.0".into();
    setup.ports[1].argument = "south".into();
    let findings = checks::all(&machine, &setup);
    let [east, west] = ["east", "west"].map(|port| find(&findings, "device", port));
    assert_eq!((east.state, west.state), (State::Bad, State::Bad));
    assert_eq!(east.is, "there is no 0000:81:00.0 on PCI");
    assert_eq!(east.better.as_deref(), Some("pci:0000:18:00.0, pci:0000:19:00.0"));
    assert_eq!(west.better.as_deref(), Some("afxdp:east, afxdp:west"));
    // Other kinds are made when they are opened, and a card need not be for Ethernet alone.
    setup.ports[1].kind = "tap".into();
    let tree = tuned();
    tree.put("sys/bus/pci/devices/0000:81:00.0/class", "0x020700");
    let findings = checks::all(&tree.machine(), &setup);
    assert_state(&findings, ("device", ""), State::Good);
}

#[test]
fn a_card_is_the_same_in_capital_letters() {
    let machine = untuned().machine();
    let mut setup = setup(&machine, "1-3");
    setup.ports[0].argument = "0000:AF:00.0".into();
    setup.ports.truncate(1);
    let findings = checks::all(&machine, &setup);
    // The card is on the other node, and its port is on that card.
    let node = find(&findings, "NUMA node of the card", "port east");
    assert_eq!(node.state, State::Bad, "{node:#?}");
    assert_state(&findings, ("device", "port east"), State::Good);
}

#[test]
fn what_shared_memory_needs_is_looked_at() {
    let tree = tuned();
    tree.put("proc/sys/fs/inotify/max_user_instances", "64");
    let all = findings(&tree, "1-3");
    let inotify = find(&all, "inotify", "");
    assert_eq!(inotify.state, State::CouldBeBetter);
    let path = "/proc/sys/fs/inotify/max_user_instances".to_owned();
    let change = Change::Write { path, value: "128".into(), before: "64".into() };
    assert_eq!(inotify.changes, [change]);
    let command = "sysctl -w fs.inotify.max_user_instances=128";
    assert_eq!(inotify.remedies, [Remedy::Command(command.into())]);
    tree.put("proc/sys/fs/inotify/max_user_instances", "0");
    tree.put("proc/sys/fs/inotify/max_user_watches", "4096");
    let all = findings(&tree, "1-3");
    let inotify = find(&all, "inotify", "");
    assert_eq!((inotify.state, inotify.changes.len()), (State::Bad, 2));
    // A container without the right; and a daemon that has it, whatever it could get.
    tree.put("proc/self/status", "CapEff:\t000001ffffffffff\nCapBnd:\t00000000a80425fb");
    assert_state(&findings(&tree, "1-3"), ("immutable memory", ""), State::CouldBeBetter);
    let of_daemon = |rights: &str| {
        tree.put("proc/7/status", &format!("CapBnd:\t000001ffffffffff\nCapEff:\t{rights}"));
        let machine = Machine::read(tree.path(), Some(7));
        let setup = Setup { process: Some(7), ..setup(&machine, "1-3") };
        find(&checks::all(&machine, &setup), "immutable memory", "").state
    };
    assert_eq!(of_daemon("0000000000000200"), State::Good);
    assert_eq!(of_daemon("00000000000001ff"), State::CouldBeBetter);
    assert_eq!(of_daemon("none"), State::CannotBeTold);
    tree.put("proc/sys/kernel/osrelease", "5.10.0-28-amd64");
    assert_eq!(of_daemon("0"), State::DoesNotApply);
}

#[test]
fn hugepages_that_others_have_are_none() {
    let tree = tuned();
    let pool = "sys/devices/system/node/node0/hugepages/hugepages-2048kB";
    tree.put(&format!("{pool}/free_hugepages"), "10");
    let machine = tree.machine();
    let alone = setup(&machine, "1-3");
    let running = Setup { process: Some(7), ..alone.clone() };
    for (setup, state) in [(alone, State::CannotBeTold), (running, State::Good)] {
        assert_state(&checks::all(&machine, &setup), ("hugepages", "node 0"), state);
    }
}
