//! Rows of machines, whose `/proc` and `/sys` are trees of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use doctor::{CoreSet, Machine};

use super::args::{Args, Vary};
use super::memory::Pages;
use super::pair::{Pair, Place};
use super::places::{Placement, Placements};
use super::rows::{Row, What, rows};
use crate::command_line::parse;

/// So many nodes, L3 caches of each, physical cores of each of these, and threads of each of those.
#[derive(Clone, Copy)]
struct Shape {
    nodes: u16,
    caches: u16,
    cores: u16,
    threads: u16,
}

impl Shape {
    const fn new([nodes, caches, cores, threads]: [u16; 4]) -> Self {
        Self { nodes, caches, cores, threads }
    }

    /// Linux numbers the first threads of all cores first. Without L3 caches, cores count as if each node had one.
    fn tree(self) -> tempfile::TempDir {
        let Self { nodes, caches, cores, threads } = self;
        let folder = tempfile::tempdir().unwrap();
        let put = |path: String, text: String| put(folder.path(), &path, &text);
        let of_cache = cores;
        let of_node = of_cache * caches.max(1);
        let physical = of_node * nodes;
        let all = |first: u16, count: u16| {
            let cores = (0..threads).flat_map(|thread| {
                (first..first + count).map(move |core| core + thread * physical)
            });
            cores.collect::<CoreSet>().to_string()
        };
        let cpu = "sys/devices/system/cpu";
        put(format!("{cpu}/online"), all(0, physical));
        for node in 0..nodes {
            let list = all(node * of_node, of_node);
            put(format!("sys/devices/system/node/node{node}/cpulist"), list);
        }
        for core in 0..physical * threads {
            let own = core % physical;
            put(format!("{cpu}/cpu{core}/topology/thread_siblings_list"), all(own, 1));
            let index = format!("{cpu}/cpu{core}/cache/index3");
            for (name, text) in [
                ("level", "3".to_owned()),
                ("type", "Unified".to_owned()),
                ("size", "32768K".to_owned()),
                ("shared_cpu_list", all(own / of_cache * of_cache, of_cache)),
            ] {
                if caches > 0 {
                    put(format!("{index}/{name}"), text);
                }
            }
        }
        folder
    }

    fn machine(self) -> Machine {
        Machine::read(self.tree().path(), None)
    }
}

fn put(root: &Path, path: &str, text: &str) {
    let place = root.join(path);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, format!("{text}\n")).unwrap();
}

fn args(line: &str) -> Args {
    parse(line).unwrap()
}

/// All cores of a machine may be used.
fn rows_of(machine: &Machine, line: &str) -> Vec<Row> {
    rows(machine, &(0..4096).collect::<Vec<_>>(), &args(line))
}

/// Placements that can be run, with their cores, and the reasons of those that cannot.
fn placements(shape: [u16; 4]) -> (BTreeMap<String, [u16; 3]>, BTreeSet<String>) {
    let rows = rows_of(&Shape::new(shape).machine(), "--vary cores");
    assert_eq!(rows.len(), 35, "every placement has a row");
    let can = rows.iter().filter_map(|row| {
        let setup = row.setup.as_ref().ok()?;
        Some((row.what.words(), setup.cores))
    });
    let cannot = rows.iter().filter_map(|row| row.setup.clone().err());
    (can.collect(), cannot.collect())
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn one_core_has_one_placement() {
    let (can, cannot) = placements([1, 1, 1, 1]);
    assert_eq!(can, BTreeMap::from([("all on one core".to_owned(), [0; 3])]));
    let reasons = [
        "no core has an SMT sibling",
        "no core has an SMT sibling; there is one NUMA node",
        "no core has an SMT sibling; there is one physical core",
        "there is one NUMA node",
        "there is one physical core",
        "there is one physical core; there is one NUMA node",
    ];
    assert_eq!(cannot, set(&reasons));
}

#[test]
fn two_cores_of_one_node_have_four() {
    let (can, cannot) = placements([1, 1, 2, 1]);
    let expected = [
        ("all on one core", [1, 1, 1]),
        ("receive and worker: same core; transmit: same L3", [1, 1, 0]),
        ("receive and transmit: same core; worker: same L3", [1, 0, 1]),
        ("worker and transmit: same core; receive: same L3", [1, 0, 0]),
    ];
    assert_eq!(can, expected.map(|(words, cores)| (words.to_owned(), cores)).into());
    assert!(cannot.contains("no three cores share an L3 cache"));
    assert!(cannot.contains("no NUMA node has more than one L3 cache"));
    assert!(cannot.contains("there is one NUMA node"));
    assert!(cannot.contains("no core has an SMT sibling"));
}

#[test]
fn a_machine_that_tells_of_no_cache_is_not_said_to_share_one() {
    let (can, cannot) = placements([1, 0, 2, 1]);
    assert_eq!(can.len(), 4);
    assert_eq!(can["receive and transmit: same core; worker: same node"], [1, 0, 1]);
    assert!(cannot.contains("the kernel does not say which cores share an L3 cache"));
    assert!(cannot.contains("no NUMA node has three cores"));
}

#[test]
fn two_sockets_with_smt_have_all_but_other_caches_of_a_node() {
    let (can, cannot) = placements([2, 1, 4, 2]);
    assert_eq!(can.len(), 20);
    let words = "receive and transmit: SMT sibling; worker: other node";
    // 0-3 and 8-11 are node 0; 15 and 7 are one core.
    assert_eq!(can[words], [15, 11, 7]);
    let reasons = [
        "no NUMA node has more than one L3 cache",
        "no core has three threads",
        "there are two NUMA nodes",
    ];
    assert_eq!(cannot, set(&reasons));
}

#[test]
fn two_caches_of_one_node_are_told_apart() {
    let (can, cannot) = placements([1, 2, 4, 2]);
    assert_eq!(can.len(), 20);
    assert_eq!(can["receive and worker: same L3; transmit: same node"], [15, 14, 11]);
    assert!(cannot.contains("there is one NUMA node"));
    assert!(cannot.contains("no NUMA node has three L3 caches"));
}

#[test]
fn large_machines_have_all() {
    assert_eq!(placements([3, 3, 3, 3]).0.len(), 35);
    let (can, cannot) = placements([2, 4, 8, 2]);
    assert_eq!(can.len(), 33);
    assert_eq!(cannot, set(&["no core has three threads", "there are two NUMA nodes"]));
}

#[test]
fn only_cores_that_may_be_used_are() {
    let machine = Shape::new([2, 1, 4, 2]).machine();
    let usable = [1, 9, 64];
    let places = Place::all(&machine.topology, &usable);
    assert_eq!(places.iter().map(|place| place.core).collect::<Vec<_>>(), [1, 9]);
    assert_eq!(places[0].to(&places[1]), Pair::Sibling);
    let placements = Placements::on(places);
    let cores = placements.cores(Placement::ONE_CORE).unwrap();
    assert_eq!(cores.map(|place| place.core), [9; 3]);
    let none = rows(&machine, &[], &args(""));
    assert!(none.iter().all(|row| row.setup.is_err()) && none.len() > 35);
}

/// Two cores, with free hugepages: of 2 MB, of 1 GB.
fn with_hugepages(small: u64, large: u64) -> Machine {
    let tree = Shape::new([1, 1, 2, 1]).tree();
    for (size, count) in [(2048, small), (1 << 20, large)] {
        let pool = format!("sys/devices/system/node/node0/hugepages/hugepages-{size}kB");
        for name in ["nr_hugepages", "free_hugepages"] {
            put(tree.path(), &format!("{pool}/{name}"), &count.to_string());
        }
    }
    Machine::read(tree.path(), None)
}

/// By MB: whether pages of that size can be had; the reasons.
fn pages(rows: &[Row], wanted: Pages) -> BTreeMap<u32, Result<Pages, String>> {
    let of = rows.iter().filter_map(|row| match row.what {
        What::Pages(pages, megabytes) if pages == wanted => {
            Some((megabytes, row.setup.clone().map(|setup| setup.memory.pages)))
        }
        _ => None,
    });
    of.collect()
}

#[test]
fn hugepages_are_those_that_the_machine_has() {
    let rows = rows_of(&with_hugepages(100, 1), "");
    let small = pages(&rows, Pages::Huge(2048));
    assert_eq!(small.keys().copied().collect::<Vec<_>>(), [128, 256, 512, 1024, 2048]);
    assert_eq!(small[&128], Ok(Pages::Huge(2048)));
    let why = small[&256].as_ref().unwrap_err();
    let file = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    let expected = "hugepages of 2 MB: 128 needed, 100 free on node 0; write 128 to ";
    assert_eq!(*why, format!("{expected}{file}"));
    let large = pages(&rows, Pages::Huge(1 << 20));
    assert_eq!(large[&512].as_ref().unwrap_err(), "a hugepage of 1 GB is more than that");
    assert_eq!(large[&1024], Ok(Pages::Huge(1 << 20)));
    assert!(large[&2048].as_ref().unwrap_err().contains("of 1 GB: 2 needed, 1 free"));
    assert!(pages(&rows, Pages::Ordinary).values().all(Result::is_ok));
    // What does not vary pages has the smallest hugepages.
    let others = rows.iter().filter(|row| !matches!(row.what, What::Pages(..)));
    let mut others = others.filter_map(|row| row.setup.as_ref().ok());
    assert!(others.all(|setup| setup.memory.pages == Pages::Huge(2048)));
    let few = rows_of(&with_hugepages(63, 0), "");
    assert_eq!(few[0].setup.as_ref().unwrap().memory.pages, Pages::Ordinary);
}

#[test]
fn no_hugepages_are_used_where_none_are_wanted_or_known() {
    let rows = rows_of(&with_hugepages(5000, 5), "--no-huge");
    for size in [2048, 1 << 20] {
        let all = pages(&rows, Pages::Huge(size));
        assert_eq!(all.len(), 5);
        assert!(all.values().all(|why| *why == Err("--no-huge forbids hugepages".to_owned())));
    }
    assert_eq!(rows[0].setup.as_ref().unwrap().memory.pages, Pages::Ordinary);
    let rows = rows_of(&Shape::new([1, 1, 2, 1]).machine(), "");
    assert_eq!(pages(&rows, Pages::Huge(2048)).values().filter(|why| why.is_err()).count(), 5);
}

#[test]
fn what_is_named_is_varied_beside_the_yardstick() {
    let machine = with_hugepages(64, 0);
    let kinds = |line| {
        let rows = rows_of(&machine, line);
        assert!(rows[0].what.is_yardstick());
        let count = |is: fn(&What) -> bool| rows.iter().filter(|row| is(&row.what)).count();
        [
            count(|what| matches!(what, What::Cores(_))),
            count(|what| matches!(what, What::Pages(..))),
            count(|what| matches!(what, What::Channels(_))),
        ]
    };
    assert_eq!(kinds(""), [35, 15, 4]);
    assert_eq!(kinds("--vary channels"), [1, 0, 4]);
    assert_eq!(kinds("--vary cores,pages"), [35, 15, 0]);
    let channels: Vec<u8> = rows_of(&machine, "--vary channels")
        .iter()
        .filter_map(|row| row.setup.as_ref().unwrap().memory.channels.map(|count| count.get()))
        .collect();
    assert_eq!(channels, [1, 2, 3, 4]);
    assert_eq!(args("--vary pages").vary, [Vary::Pages]);
    assert_eq!((args("").frame, args("--frame 1518").frame), (64, 1518));
    for wrong in ["--frame 63", "--frame 1519", "--vary sockets", "--rounds 0"] {
        assert!(parse::<Args>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn names_are_unique() {
    let rows = rows_of(&with_hugepages(0, 0), "");
    let names: BTreeSet<String> = rows.iter().map(|row| row.what.words()).collect();
    assert_eq!(names.len(), rows.len());
    let cases = rows.iter().map(|row| format!("{} {:?}", row.what.name(), row.what.parameters()));
    assert_eq!(cases.collect::<BTreeSet<_>>().len(), rows.len());
}
