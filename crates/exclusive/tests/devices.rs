//! Exclusive mode over devices that need no network: `pcap`, `null`, and a `memif` without a peer.
#![allow(
    clippy::unwrap_used,
    reason = "clippy's exemption for tests misses test files' own functions"
)]

#[path = "../../dpdk/tests/captures/mod.rs"]
mod captures;

use std::path::Path;
use std::thread;

use millrace_exclusive::{
    Devices, Dispatch, Error, Memory, Options, Packet, Queue, SendError, register_thread,
};

use captures::{read_capture, write_capture};

fn options() -> Options {
    Options { memory: Memory::Plain, descriptors: 256, buffers: 1024, ..Options::default() }
}

fn open(devices: &[(&str, &str)], queues: u16, dispatch: Dispatch) -> Devices {
    Devices::open(devices, queues, &Options { dispatch, ..options() }).unwrap()
}

fn refusal(devices: &[(&str, &str)], queues: u16, dispatch: Dispatch) -> Error {
    Devices::open(devices, queues, &Options { dispatch, ..options() }).unwrap_err()
}

/// One process has one DPDK, so this is one test.
#[test]
fn devices() {
    let folder = tempfile::tempdir().unwrap();
    requests_without_sense_are_refused();
    packets_go_from_port_to_port(folder.path());
    long_packets_have_pieces(folder.path());
    every_thread_has_a_queue_of_every_port();
    ports_can_be_bound_to_threads();
    too_few_queues_are_refused(folder.path());
    buffers_come_back();
    buffers_of_closed_devices_are_used_again();
    what_is_not_sent_comes_back(folder.path());
}

/// Before DPDK runs: a mistake in the request must not use up the one start.
fn requests_without_sense_are_refused() {
    let null = ("one", "null");
    assert!(matches!(refusal(&[], 1, Dispatch::Port), Error::Devices(0)));
    assert!(matches!(refusal(&[null], 0, Dispatch::Port), Error::Queues(0)));
    assert!(matches!(refusal(&[null], 65, Dispatch::Port), Error::Queues(65)));
    assert!(
        matches!(refusal(&[null, null], 1, Dispatch::Port), Error::Name(name) if name == "one")
    );
    let unknown = refusal(&[null, ("two", "nul")], 1, Dispatch::Port).to_string();
    assert!(unknown.starts_with("port two: ") && unknown.contains("nul"), "{unknown}");
}

fn packets_go_from_port_to_port(folder: &Path) {
    let [input, empty] = ["in.pcap", "empty.pcap"].map(|name| folder.join(name));
    let [left, right] = ["left.pcap", "right.pcap"].map(|name| folder.join(name));
    let packets: Vec<Vec<u8>> =
        (0..200_u8).map(|i| (0..60 + usize::from(i)).map(|at| at as u8 ^ i).collect()).collect();
    write_capture(&input, &packets);
    write_capture(&empty, &[]);
    let strings = [(&input, &left), (&empty, &right)]
        .map(|(from, to)| format!("pcap:{},out={}", from.display(), to.display()));
    let devices = [("left", strings[0].as_str()), ("right", strings[1].as_str())];
    let Devices { mut queues, ports } = open(&devices, 1, Dispatch::RoundRobin);
    let names: Vec<_> = ports.iter().map(|port| (port.number, port.name.as_str())).collect();
    assert_eq!(names, [(0, "left"), (1, "right")]);
    let queue = &mut queues[0];
    let mut received = Vec::new();
    // No more than was asked for, and what is left the next time.
    assert_eq!(queue.receive(&mut received, 7), 7);
    while queue.receive(&mut received, 100) > 0 {}
    assert_eq!(received.len(), 200);
    for (packet, sent) in received.iter_mut().zip(&packets) {
        assert_eq!((packet.port(), packet.length(), packet.pieces()), (0, sent.len(), 1));
        assert_eq!(queue.bytes(packet), sent);
        queue.bytes_mut(packet)[0] = 0xaa;
        // Every third goes back.
        packet.set_port(u8::from(sent.len() % 3 > 0));
    }
    assert_eq!(queue.send_burst(&mut received), 200);
    assert!(received.is_empty());
    queue.send_bytes(&[5; 70], 1).unwrap();
    let counted = queue.counters();
    assert_eq!((counted.received, counted.sent, counted.full), (200, 201, 0));
    assert_eq!(ports[0].stats().unwrap().rx_packets, 200);
    // The files are written out when the ports close.
    drop((queues, ports));
    let mut changed = packets;
    changed.iter_mut().for_each(|packet| packet[0] = 0xaa);
    let (back, mut on): (Vec<_>, Vec<_>) =
        changed.into_iter().partition(|packet| packet.len() % 3 == 0);
    on.push(vec![5; 70]);
    assert_eq!(read_capture(&left), back);
    assert_eq!(read_capture(&right), on);
}

fn long_packets_have_pieces(folder: &Path) {
    let [input, output] = ["long.pcap", "long-out.pcap"].map(|name| folder.join(name));
    let long: Vec<u8> = (0..5000_u32).map(|at| (at / 7) as u8).collect();
    write_capture(&input, std::slice::from_ref(&long));
    let device = format!("pcap:{},out={}", input.display(), output.display());
    let Devices { mut queues, ports } = open(&[("long", &device)], 1, Dispatch::Port);
    let (queue, mut packets) = (&mut queues[0], Vec::new());
    assert_eq!(queue.receive(&mut packets, 64), 1);
    let packet = packets.pop().unwrap();
    assert_eq!((packet.length(), packet.pieces()), (5000, 3));
    let pieces = (0..).map_while(|piece| queue.piece(&packet, piece));
    assert_eq!(pieces.collect::<Vec<_>>().concat(), long);
    let mut whole = vec![0; 6000];
    assert_eq!(queue.copy(&packet, &mut whole), 5000);
    assert_eq!(whole[..5000], long);
    let mut part = [0; 3000];
    assert_eq!(queue.copy(&packet, &mut part), 3000);
    assert_eq!(part, long[..3000]);
    queue.send(packet, 0).unwrap();
    drop((queues, ports));
    assert_eq!(read_capture(&output), [long]);
}

/// Which ports a queue receives from, seen on a thread of its own.
fn ports_of(mut queue: Queue) -> Vec<u8> {
    let look = move || {
        let _cache = register_thread().unwrap();
        let mut packets = Vec::new();
        // Every receive queue has its turn.
        for _ in 0..4 {
            queue.receive(&mut packets, 32);
        }
        let mut ports: Vec<u8> = packets.iter().map(Packet::port).collect();
        assert_eq!(queue.send_burst(&mut packets), ports.len());
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    thread::spawn(look).join().unwrap()
}

const THREE: [(&str, &str); 3] = [("a", "null"), ("b", "null"), ("c", "null")];

fn every_thread_has_a_queue_of_every_port() {
    for queue in open(&THREE, 2, Dispatch::RoundRobin).queues {
        assert_eq!(ports_of(queue), [0, 1, 2]);
    }
}

fn ports_can_be_bound_to_threads() {
    let queues = open(&THREE, 2, Dispatch::Port).queues;
    let ports: Vec<_> = queues.into_iter().map(ports_of).collect();
    assert_eq!(ports, [vec![0, 2], vec![1]]);
    let queues = open(&THREE[..1], 2, Dispatch::Port).queues;
    let mut ports = queues.into_iter().map(ports_of);
    assert_eq!(ports.next().unwrap(), [0]);
    assert!(ports.next().unwrap().is_empty(), "more threads than ports: it only sends");
}

fn too_few_queues_are_refused(folder: &Path) {
    let input = folder.join("few.pcap");
    write_capture(&input, &[]);
    let device = format!("pcap:{},out={}", input.display(), folder.join("x.pcap").display());
    let devices = [("many", "null"), ("few", device.as_str())];
    let error = refusal(&devices, 2, Dispatch::RoundRobin);
    assert!(matches!(error, Error::ReceiveQueues { has: 1, asked: 2, .. }), "{error}");
    assert!(error.to_string().starts_with("port few has 1 of 2 receive queues, "), "{error}");
    let error = refusal(&devices, 2, Dispatch::Port);
    assert!(matches!(error, Error::TransmitQueues { has: 1, asked: 2, .. }), "{error}");
    let error = refusal(&[("gone", "pcap:/nonexistent.pcap")], 1, Dispatch::Port).to_string();
    assert!(error.starts_with("port gone: ") && error.contains("/nonexistent.pcap"), "{error}");
    // Nothing of it is left open.
    assert_eq!(open(&devices, 1, Dispatch::RoundRobin).ports.len(), 2);
}

/// Many times the packets for which there are buffers.
fn buffers_come_back() {
    let Devices { mut queues, .. } = open(&[("null", "null")], 1, Dispatch::Port);
    let (queue, mut packets) = (&mut queues[0], Vec::new());
    for round in 0..1000 {
        assert_eq!(queue.receive(&mut packets, 100), 100, "round {round}");
        assert!(queue.receive(&mut packets, 0) == 0 && packets.len() == 100);
        match round % 3 {
            0 => queue.release_burst(&mut packets),
            1 => packets.drain(..).for_each(|packet| queue.release(packet)),
            _ => assert_eq!(queue.send_burst(&mut packets), 100),
        }
        assert!(packets.is_empty());
    }
    // All that there are: the last bursts find none.
    packets.append(&mut take_all(queue));
    assert_eq!(queue.send_bytes(&[1; 60], 0), Err(SendError::NoBuffer));
    queue.release_burst(&mut packets);
    queue.send_bytes(&[1; 60], 0).unwrap();
}

fn take_all(queue: &mut Queue) -> Vec<Packet> {
    let mut packets = Vec::new();
    while queue.receive(&mut packets, 64) > 0 {}
    packets
}

fn buffers_of_closed_devices_are_used_again() {
    let open = || open(&[("null", "null")], 1, Dispatch::Port).queues.remove(0);
    // There is memory for a few pools only.
    for _ in 0..50 {
        assert_eq!(open().receive(&mut Vec::new(), 10), 10);
    }
    // Those of open devices are not.
    let (mut one, mut other) = (open(), open());
    let held = take_all(&mut one);
    assert_eq!(other.receive(&mut Vec::new(), 10), 10);
    // Nor those in which packets still lie.
    drop((one, other));
    let (mut one, mut other) = (open(), open());
    assert_eq!(one.receive(&mut Vec::new(), 10), 10);
    assert_eq!(other.receive(&mut Vec::new(), 10), 10);
    assert!(held.len() > 1000);
}

fn what_is_not_sent_comes_back(folder: &Path) {
    // Nobody is there to take what a memif without peer is given.
    let deaf = format!("memif:{},role=server", folder.join("memif.sock").display());
    let devices = [("from", "null,size=80"), ("deaf", deaf.as_str())];
    let Devices { mut queues, .. } = open(&devices, 1, Dispatch::RoundRobin);
    let (queue, mut packets) = (&mut queues[0], Vec::new());
    queue.receive(&mut packets, 6);
    for (number, packet) in (0..).zip(&mut packets) {
        queue.bytes_mut(packet)[0] = number;
        packet.set_port(number % 3);
    }
    // Port 0 takes its two; 1 is full, and there is no 2.
    assert_eq!(queue.send_burst(&mut packets), 2);
    let order = |queue: &Queue, port| {
        let those = packets.iter().filter(|packet| packet.port() == port);
        those.map(|packet| queue.bytes(packet)[0]).collect::<Vec<_>>()
    };
    assert_eq!((order(queue, 1), order(queue, 2)), (vec![1, 4], vec![2, 5]));
    let counted = queue.counters();
    assert_eq!((counted.received, counted.sent, counted.full), (6, 2, 2));

    let unsent = queue.send(packets.pop().unwrap(), 1).unwrap_err();
    assert_eq!((unsent.error, unsent.packet.length()), (SendError::Full, 80));
    let unsent = queue.send(unsent.packet, 9).unwrap_err();
    assert_eq!(unsent.error, SendError::NoPort(9));
    queue.send(unsent.packet, 0).unwrap();
    queue.release_burst(&mut packets);
    assert_eq!(queue.send_bytes(&[1; 60], 1), Err(SendError::Full));
    assert_eq!(queue.send_bytes(&[1; 60], 2), Err(SendError::NoPort(2)));
    assert_eq!(queue.send_bytes(&[], 0), Err(SendError::Length { length: 0, most: 2048 }));
    assert_eq!(
        queue.send_bytes(&[1; 2049], 0),
        Err(SendError::Length { length: 2049, most: 2048 })
    );
    queue.send_bytes(&[1; 2048], 0).unwrap();
}
