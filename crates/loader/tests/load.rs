//! Functions in C, compiled here, loaded, and run on packets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use dpdk::{Buffer, BufferPool, Eal, EalOptions, Memory};
use graph::{
    Counters, Doorbell, Exits, Function, HandoffReceiver, Output, PortId, Reason, TransmitPath,
};
use millrace_loader::{LoadError, Object};

fn pool() -> BufferPool {
    static POOL: OnceLock<BufferPool> = OnceLock::new();
    *POOL.get_or_init(|| {
        let options = EalOptions { megabytes: 64, memory: Memory::Plain, ..EalOptions::default() };
        Eal::init(&options).unwrap();
        BufferPool::new("loader", 1023, 2048, 0, None).unwrap()
    })
}

/// Compiles the function with these definitions.
fn compiled(folder: &Path, definitions: &[&str]) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/limit.c");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../function/include");
    let target = folder.join("limit.so");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-Wno-stringop-truncation", "-o"])
        .arg(&target)
        .args([source, "-I", include])
        .args(definitions)
        .output()
        .unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    target
}

fn load(path: &Path) -> Result<Object, LoadError> {
    Object::load(path)
}

fn packet(bytes: &[u8]) -> Option<Buffer> {
    let mut buffer = pool().alloc().unwrap();
    buffer.append(bytes.len()).unwrap().copy_from_slice(bytes);
    Some(buffer)
}

/// Exits whose port 3 leads into a ring.
fn exits() -> (Exits, Arc<Counters>, HandoffReceiver<Buffer>) {
    pool();
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let (to_control, _) = graph::ring(8, Arc::clone(&doorbell));
    let counters = Arc::new(Counters::new(1, 4));
    let mut exits = Exits::new(Output::new(4, 0), Arc::clone(&counters), to_control);
    let (sender, receiver) = graph::ring(8, doorbell);
    exits.set_path(PortId::new(3), Some(TransmitPath::Worker(sender)));
    (exits, counters, receiver)
}

#[test]
fn packets_pass_change_leave_and_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let object = load(&compiled(folder.path(), &[])).unwrap();
    let mut function = object.instance("100", None).unwrap();
    let (mut exits, counters, mut port) = exits();
    let mut packets = [
        packet(&[b'x'; 100]),
        packet(&[b'x'; 101]),
        None,
        packet(b"reflect"),
        packet(b"grow"),
        packet(b"shrink"),
    ];
    function.receive(PortId::new(0), &mut packets, &mut exits, 0);
    let left: Vec<_> = packets.iter().flatten().map(|buffer| buffer.data().to_vec()).collect();
    assert_eq!(left, [vec![b'x'; 100], b"headgrowtail".to_vec(), b"hr".to_vec()]);
    assert_eq!(counters.drops[Reason::Function as usize].get(), 1);
    exits.output.flush(&counters);
    assert_eq!(port.pop().unwrap().data(), b"reflect");
    // Of another port's packets it knows nothing.
    let mut function = object.instance("100", Some(PortId::new(1))).unwrap();
    let mut packets = [packet(&[b'x'; 101])];
    function.receive(PortId::new(0), &mut packets, &mut exits, 0);
    assert!(packets[0].is_some());
    function.receive(PortId::new(1), &mut packets, &mut exits, 0);
    assert!(packets[0].is_none());
}

#[test]
fn a_function_that_leaves_its_bounds_loses_the_packet() {
    let folder = tempfile::tempdir().unwrap();
    for verdict in ["0", "2", "-1", "300"] {
        let odd = format!("-DODD={verdict}");
        let object = load(&compiled(folder.path(), &[&odd])).unwrap();
        let mut function = object.instance("1", None).unwrap();
        let (mut exits, counters, _) = exits();
        let mut packets = [packet(b"one"), packet(b"two")];
        function.receive(PortId::new(0), &mut packets, &mut exits, 0);
        assert!(packets.iter().all(Option::is_none));
        assert_eq!(counters.drops[Reason::Function as usize].get(), 2);
        drop((function, object));
        std::fs::remove_file(folder.path().join("limit.so")).unwrap();
    }
}

#[test]
fn what_cannot_be_loaded_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| load(path).unwrap_err().to_string();
    assert!(refused(&folder.path().join("nothing.so")).contains("No such file"));
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no object").unwrap();
    assert!(refused(&text).contains("too short") || refused(&text).contains("invalid"));
    let path = compiled(folder.path(), &["-DNAMELESS"]);
    assert!(refused(&path).contains("exports no millrace_function"));
    std::fs::remove_file(&path).unwrap();
    let path = compiled(folder.path(), &["-DVERSION=99"]);
    assert!(
        refused(&path).contains("made for version 99") && refused(&path).contains("has version 1")
    );
    std::fs::remove_file(&path).unwrap();
    let path = compiled(folder.path(), &[]);
    let object = load(&path).unwrap();
    let words = object.instance("none", None).err().unwrap().to_string();
    assert!(words.ends_with("refuses: give the longest packet: bytes"), "{words}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(&path).contains("others may write"));
}
