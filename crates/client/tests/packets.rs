//! Receiving, changing, sending, returning.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod stub;

use std::time::Duration;

use millrace::{Channel, Error, Options, Packet};
use shm::Meta;
use shm::attach::flag;
use stub::Stub;

fn open(stub: &Stub, channels: u16, slots: u32) -> Vec<Channel> {
    let options = Options { channels, slots, capacity: 256, ..Options::default() };
    stub.client().open(&options).unwrap().channels
}

fn from(port: u8) -> Meta {
    Meta { port, flags: 0 }
}

fn receive(channel: &mut Channel, limit: usize) -> Vec<Packet> {
    let mut packets = Vec::new();
    channel.receive(&mut packets, limit).unwrap();
    packets
}

#[test]
fn a_packet_is_changed_in_place_and_sent_by_its_worker() {
    let stub = Stub::new(3);
    let mut channels = open(&stub, 2, 16);
    stub.inject(1, 2, &[1; 60], from(4));
    assert!(receive(&mut channels[0], 8).is_empty(), "it is the other channel's");
    let mut packets = receive(&mut channels[1], 8);
    let mut packet = packets.pop().unwrap();
    assert_eq!((packet.length(), packet.port(), packet.pieces()), (60, 4, 1));
    assert!(!packet.is_copy());
    channels[1].bytes_mut(&mut packet)[..2].copy_from_slice(&[7, 8]);
    channels[1].send(packet, 5).unwrap();
    let mut expected = vec![1; 60];
    expected[..2].copy_from_slice(&[7, 8]);
    assert_eq!(stub.take(1, 2), Some((expected, from(5))));
    assert_eq!((stub.take(1, 0), stub.take(1, 1)), (None, None));
    let counters = channels[1].counters();
    assert_eq!((counters.received, counters.sent, counters.full), (1, 1, 0));
}

#[test]
fn rings_are_served_in_turn_up_to_the_limit() {
    let stub = Stub::new(2);
    let mut channels = open(&stub, 1, 16);
    for number in 0..4 {
        stub.inject(0, 0, &[number; 60], from(0));
        stub.inject(0, 1, &[10 + number; 60], from(1));
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        for packet in receive(&mut channels[0], 2) {
            seen.push(channels[0].bytes(&packet)[0]);
            channels[0].release(packet);
        }
    }
    assert_eq!(seen, [0, 1, 10, 11, 2, 3, 12, 13]);
    assert!(!channels[0].has_packets());
}

#[test]
fn what_is_returned_goes_to_the_graph() {
    let stub = Stub::new(1);
    let mut channels = open(&stub, 1, 16);
    stub.inject(0, 0, &[1; 60], Meta { port: 3, flags: flag::COPY });
    let packet = receive(&mut channels[0], 8).pop().unwrap();
    assert!(packet.is_copy());
    channels[0].return_to_graph(packet).unwrap();
    assert_eq!(stub.take(0, 0), Some((vec![1; 60], Meta { port: 3, flags: flag::GRAPH })));
    channels[0].return_bytes(&[2; 70], 1).unwrap();
    assert_eq!(stub.take(0, 0), Some((vec![2; 70], Meta { port: 1, flags: flag::GRAPH })));
}

#[test]
fn long_packets_are_read_by_pieces_and_sent_whole() {
    let stub = Stub::new(1);
    let mut channels = open(&stub, 1, 16);
    let long: Vec<u8> = (0..1000).map(|at| at as u8).collect();
    stub.inject(0, 0, &long, from(2));
    let mut packet = receive(&mut channels[0], 8).pop().unwrap();
    assert_eq!((packet.length(), packet.pieces()), (1000, 4));
    assert_eq!(channels[0].bytes(&packet), &long[..256]);
    assert_eq!(channels[0].piece(&packet, 3), Some(&long[768..]));
    assert_eq!(channels[0].piece(&packet, 4), None);
    channels[0].piece_mut(&mut packet, 3).unwrap()[0] = 99;
    let mut copy = vec![0; 2000];
    assert_eq!(channels[0].copy(&packet, &mut copy), 1000);
    assert_eq!((&copy[..768], copy[768], &copy[769..1000]), (&long[..768], 99, &long[769..]));
    channels[0].send(packet, 1).unwrap();
    assert_eq!(stub.take(0, 0), Some((copy[..1000].to_vec(), from(1))));
    assert!(matches!(channels[0].send_bytes(&[0; 4096], 1), Err(Error::Unsendable(_))));
    assert!(matches!(channels[0].send_bytes(&[], 1), Err(Error::Unsendable(_))));
}

#[test]
fn a_full_queue_gives_the_packet_back() {
    let stub = Stub::new(1);
    let mut channels = open(&stub, 1, 2);
    for number in 0..2 {
        channels[0].send_bytes(&[number; 60], 0).unwrap();
    }
    assert!(matches!(channels[0].send_bytes(&[9; 60], 0), Err(Error::Full)));
    stub.inject(0, 0, &[5; 60], from(0));
    let packet = receive(&mut channels[0], 8).pop().unwrap();
    let unsent = channels[0].send(packet, 1).unwrap_err();
    assert!(matches!(unsent.error, Error::Full));
    assert_eq!(channels[0].counters().full, 2);
    assert!(stub.take(0, 0).is_some());
    channels[0].send(unsent.packet, 1).unwrap();
    assert!(!channels[0].flush(Duration::ZERO).unwrap(), "the daemon has not taken it");
    assert_eq!(stub.take(0, 0), Some((vec![1; 60], from(0))));
    assert_eq!(stub.take(0, 0), Some((vec![5; 60], from(1))));
    assert!(channels[0].flush(Duration::from_secs(60)).unwrap());
}

#[test]
fn a_burst_keeps_what_found_no_room_in_order() {
    let stub = Stub::new(1);
    let mut channels = open(&stub, 1, 4);
    channels[0].send_bytes(&[100; 60], 0).unwrap();
    channels[0].send_bytes(&[101; 60], 0).unwrap();
    for number in 0..4 {
        stub.inject(0, 0, &[number; 60], from(number));
    }
    let mut packets = receive(&mut channels[0], 8);
    packets[1].set_port(9);
    assert_eq!(channels[0].send_burst(&mut packets).unwrap(), 2);
    let rest: Vec<u8> = packets.iter().map(|packet| channels[0].bytes(packet)[0]).collect();
    assert_eq!(rest, [2, 3]);
    let ports: Vec<u8> = std::iter::from_fn(|| stub.take(0, 0)).map(|taken| taken.1.port).collect();
    assert_eq!(ports, [0, 0, 0, 9]);
    assert_eq!(channels[0].return_burst(&mut packets).unwrap(), 2);
    assert_eq!(stub.take(0, 0), Some((vec![2; 60], Meta { port: 2, flags: flag::GRAPH })));
    channels[0].release_burst(&mut packets);
}

#[test]
fn a_burst_of_all_kinds_stays_in_order() {
    let stub = Stub::new(2);
    let mut channels = open(&stub, 2, 64);
    for worker in 0..2 {
        for (number, length) in [60, 256, 1000, 14, 600, 60].into_iter().enumerate() {
            stub.inject(0, worker, &vec![number as u8; length], from(worker as u8));
        }
    }
    stub.inject(1, 0, &[99; 60], from(0));
    let mut packets = receive(&mut channels[0], 3);
    packets.extend(receive(&mut channels[1], 8));
    packets.extend(receive(&mut channels[0], 6));
    packets.extend(receive(&mut channels[0], 8));
    assert_eq!(packets.len(), 13);
    assert_eq!(channels[0].send_burst(&mut packets).unwrap(), 12);
    assert_eq!(channels[0].counters().sent, 12);
    for worker in 0..2 {
        for (number, length) in [60, 256, 1000, 14, 600, 60].into_iter().enumerate() {
            let expected = (vec![number as u8; length], from(worker as u8));
            assert_eq!(stub.take(0, worker), Some(expected));
        }
        assert_eq!(stub.take(0, worker), None);
    }
    assert_eq!(channels[1].bytes(&packets[0]), [99; 60], "it is the other channel's");
    assert_eq!(channels[1].send_burst(&mut packets).unwrap(), 1);
}

#[test]
fn own_packets_go_to_the_next_worker_when_one_is_full() {
    let stub = Stub::new(2);
    let mut channels = open(&stub, 2, 2);
    for number in 0..4 {
        channels[1].send_bytes(&[number; 60], 0).unwrap();
    }
    assert!(matches!(channels[1].send_bytes(&[9; 60], 0), Err(Error::Full)));
    let of = |worker| -> Vec<u8> {
        std::iter::from_fn(|| stub.take(1, worker)).map(|taken| taken.0[0]).collect()
    };
    // The second channel begins with the second worker.
    assert_eq!(of(1), [0, 1]);
    assert_eq!(of(0), [2, 3]);
}

#[test]
fn a_packet_of_another_channel_is_left_alone() {
    let stub = Stub::new(1);
    let mut channels = open(&stub, 2, 2);
    stub.inject(0, 0, &[5; 60], from(0));
    let mut packet = receive(&mut channels[0], 8).pop().unwrap();
    assert!(channels[1].bytes(&packet).is_empty());
    assert!(channels[1].bytes_mut(&mut packet).is_empty());
    assert_eq!(channels[1].copy(&packet, &mut [0; 60]), 0);
    let unsent = channels[1].send(packet, 0).unwrap_err();
    assert!(matches!(unsent.error, Error::Foreign));
    assert_eq!(channels[0].bytes(&unsent.packet), [5; 60]);
    channels[0].release(unsent.packet);
}

#[test]
fn slots_come_round_for_threads_of_their_own() {
    let stub = Stub::new(2);
    let channels = open(&stub, 2, 8);
    let threads: Vec<_> = channels
        .into_iter()
        .map(|mut channel| {
            std::thread::spawn(move || {
                let (mut packets, mut done) = (Vec::new(), 0);
                while done < 2000 {
                    channel.receive(&mut packets, 4).unwrap();
                    while !packets.is_empty() {
                        done += channel.send_burst(&mut packets).unwrap();
                    }
                    std::thread::yield_now();
                }
                channel
            })
        })
        .collect();
    let (mut next, mut back) = ([[0_u32; 2]; 2], [[0_u32; 2]; 2]);
    while back != [[1000; 2]; 2] {
        for (channel, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let number = next[channel][worker];
            let mut bytes = [channel as u8; 60];
            bytes[..4].copy_from_slice(&number.to_ne_bytes());
            if number < 1000 {
                let pushed = stub.with(|queue| {
                    queue.rings[channel][worker].to_client.push(&bytes, from(worker as u8))
                });
                next[channel][worker] += u32::from(pushed.is_ok());
            }
            while let Some((bytes, meta)) = stub.take(channel, worker) {
                let number = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
                assert_eq!(number, back[channel][worker]);
                assert_eq!((bytes[59], meta), (channel as u8, from(worker as u8)));
                back[channel][worker] += 1;
            }
        }
        std::thread::yield_now();
    }
    for thread in threads {
        assert_eq!(thread.join().unwrap().counters().sent, 2000);
    }
}
