//! Ports on real kernel interfaces and on each other, in a network namespace of this test alone:
//! `afpacket`, `afxdp`, `tap`, `memif`, `vhost-user` with `virtio-user`.
//!
//! Needs root; prints why and passes without it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test file outside #[cfg(test)]")]

mod ports;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use millrace_dpdk::{
    Adjustment, Buffer, BufferPool, Cause, Device, Health, Opened, Port, PortConfig,
};

use ports::open;

/// An EtherType for experiments (IEEE Std 802): the kernel ignores it.
const MARK: [u8; 2] = [0x88, 0xb5];
const BURST: usize = 32;
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

fn make_veth() {
    ip("link add mr-a type veth peer name mr-b");
    ip("link set mr-a up");
    ip("link set mr-b up");
}

fn frame(pool: BufferPool, number: usize) -> Buffer {
    let mut buffer = pool.alloc().unwrap();
    let data = buffer.append(60 + number).unwrap();
    data.fill(number as u8);
    data[..6].fill(0xff);
    data[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    data[12..14].copy_from_slice(&MARK);
    buffer
}

/// Sends 32 frames from one port to the other and compares what arrives with what was sent.
fn pass(pool: BufferPool, from: &mut Opened, to: &mut Opened) {
    let mut out: Vec<Option<Buffer>> = (0..BURST).map(|i| Some(frame(pool, i))).collect();
    let (mut sent, mut got) = (0, Vec::new());
    let end = Instant::now() + PATIENCE;
    while got.len() < BURST && Instant::now() < end {
        sent += from.tx[0].burst(&mut out[sent..]).packets;
        let mut slots = [const { None::<Buffer> }; BURST];
        if to.rx[0].burst(&mut slots) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let marked =
            slots.iter().flatten().filter(|buffer| buffer.data().get(12..14) == Some(&MARK));
        got.extend(marked.map(|buffer| buffer.data().to_vec()));
    }
    let expected: Vec<Vec<u8>> = (0..BURST).map(|i| frame(pool, i).data().to_vec()).collect();
    assert_eq!(got, expected, "{} to {}", from.port.device(), to.port.device());
}

fn both_ways(pool: BufferPool, a: &mut Opened, b: &mut Opened) {
    pass(pool, a, b);
    pass(pool, b, a);
}

fn wait_for(port: &Port, health: Health) {
    let end = Instant::now() + PATIENCE;
    while port.health() != health {
        assert!(Instant::now() < end, "{}: {:?}, not {health:?}", port.device(), port.health());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn close(opened: Opened) {
    let Opened { port, rx, tx, .. } = opened;
    drop((rx, tx));
    port.close().unwrap();
}

/// A namespace of this thread's own; threads that EAL starts later are in it too. It ends with the
/// process.
fn enter_namespace() -> bool {
    // SAFETY: a plain system call; only this thread and its later children are affected.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 {
        return true;
    }
    let why = std::io::Error::last_os_error();
    eprintln!("skipped: no network namespace of its own ({why}); run as root");
    false
}

#[test]
fn interfaces_and_peers() {
    if !enter_namespace() {
        return;
    }
    ports::start(160);
    let pool = BufferPool::new("veth", 16383, 2048, 64, None).unwrap();
    let directory = std::env::temp_dir().join(format!("millrace-veth-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    af_packet_survives_the_loss_of_its_interface(pool);
    pairs(pool, &directory);
    tap_meets_the_kernel(pool);
    assert_eq!(pool.available(), 16383, "every buffer came back");
    af_xdp_opens_again_and_again(pool);
    std::fs::remove_dir_all(&directory).unwrap();
}

fn af_packet_survives_the_loss_of_its_interface(pool: BufferPool) {
    make_veth();
    let (mut a, mut b) = (open("afpacket:mr-a", pool), open("afpacket:mr-b", pool));
    both_ways(pool, &mut a, &mut b);
    assert_eq!((a.port.health(), b.port.health()), (Health::Up, Health::Up));
    ip("link set mr-b down");
    wait_for(&a.port, Health::Down(Cause::NoCarrier));
    wait_for(&b.port, Health::Down(Cause::InterfaceDown));
    ip("link set mr-b up");
    wait_for(&a.port, Health::Up);
    ip("link del mr-a");
    wait_for(&a.port, Health::Gone(Cause::InterfaceDeleted));
    let mut lost = [Some(frame(pool, 0))];
    a.tx[0].burst(&mut lost);
    // Up to 32 at a time, until nothing is left of what the kernel has sent by itself: IPv6 speaks as soon as an interface is up.
    let drained = (0..64).any(|_| a.rx[0].burst(&mut [const { None }; BURST]) == 0);
    assert!(drained, "nothing arrives any more");
    // An interface of the same name is not the same interface.
    make_veth();
    assert_eq!(a.port.health(), Health::Gone(Cause::InterfaceDeleted));
    close(a);
    close(b);
    let (mut a, mut b) = (open("afpacket:mr-a", pool), open("afpacket:mr-b", pool));
    both_ways(pool, &mut a, &mut b);
    ip("link del mr-a");
}

fn pairs(pool: BufferPool, directory: &Path) {
    let memif = directory.join("memif.sock").display().to_string();
    let mut server = open(&format!("memif:{memif},role=server"), pool);
    assert_eq!(server.port.health(), Health::Down(Cause::NoPeer));
    for _ in 0..2 {
        let mut client = open(&format!("memif:{memif},role=client"), pool);
        wait_for(&client.port, Health::Up);
        wait_for(&server.port, Health::Up);
        both_ways(pool, &mut server, &mut client);
        close(client);
        wait_for(&server.port, Health::Down(Cause::NoPeer));
    }
    close(server);

    let vhost = directory.join("vhost.sock").display().to_string();
    let mut host = open(&format!("vhost-user:{vhost}"), pool);
    for _ in 0..2 {
        let mut guest = open(&format!("virtio-user:{vhost}"), pool);
        wait_for(&host.port, Health::Up);
        wait_for(&guest.port, Health::Up);
        assert!(guest.rx[0].interrupt().is_err(), "opened without interrupts");
        both_ways(pool, &mut host, &mut guest);
        close(guest);
        wait_for(&host.port, Health::Down(Cause::NoPeer));
    }
    close(host);
}

fn tap_meets_the_kernel(pool: BufferPool) {
    let device: Device = "tap:mr-tap".parse().unwrap();
    let mut config = PortConfig::new(pool);
    config.rx_interrupts = true;
    let mut tap = Port::open(&device, &config).unwrap();
    ip("link set mr-tap up");
    let mut kernel = open("afpacket:mr-tap", pool);
    both_ways(pool, &mut tap, &mut kernel);
    assert!(tap.rx[0].interrupt().is_ok());
    close(kernel);
    close(tap);
    let gone = open_error("afpacket:mr-tap", pool);
    assert!(gone.contains("no network interface `mr-tap`"), "{gone}");
}

fn open_error(device: &str, pool: BufferPool) -> String {
    Port::open(&device.parse().unwrap(), &PortConfig::new(pool)).unwrap_err().to_string()
}

/// The driver keeps some 2,000 buffers each time; a pool that runs low is replaced.
fn af_xdp_opens_again_and_again(pool: BufferPool) {
    make_veth();
    let mut two = PortConfig::new(pool);
    two.rx_queues = 2;
    two.tx_queues = 2;
    let opened = Port::open(&"afxdp:mr-a".parse().unwrap(), &two).unwrap();
    assert_eq!((opened.rx.len(), opened.tx.len()), (1, 1), "a veth has one queue to offer");
    assert!(opened.adjustments.contains(&Adjustment::RxQueues(2, 1)));
    close(opened);
    for _ in 0..4 {
        let (mut a, mut b) = (open("afxdp:mr-a", pool), open("afxdp:mr-b", pool));
        both_ways(pool, &mut a, &mut b);
        close(a);
        close(b);
    }
}
