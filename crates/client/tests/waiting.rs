//! Doorbells both ways, and a daemon that ends.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod stub;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use millrace::{Channel, Error, Options};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shm::Meta;
use stub::Stub;

/// Longer than any machine is slow: whoever waits that long was not woken.
const LONG: Duration = Duration::from_secs(60);

fn open(stub: &Stub) -> Channel {
    stub.client().open(&Options::default()).unwrap().channels.pop().unwrap()
}

fn is_readable(channel: &Channel, longest: i64) -> bool {
    let mut polled = [PollFd::new(channel, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: longest, tv_nsec: 0 })).unwrap() > 0
}

#[test]
fn every_packet_wakes_a_sleeper() {
    let stub = Stub::new(2);
    let mut channel = open(&stub);
    let sleeper = std::thread::spawn(move || {
        let (mut packets, mut seen) = (Vec::new(), 0);
        while seen < 200 {
            assert!(channel.wait(Some(LONG)).unwrap(), "nobody rang");
            seen += channel.receive(&mut packets, 8).unwrap();
            channel.release_burst(&mut packets);
        }
    });
    for number in 0..200 {
        stub.inject(0, number % 2, &[1; 60], Meta::default());
        // Now and then it is asleep by then, now and then not.
        if number % 3 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    sleeper.join().unwrap();
}

#[test]
fn a_wait_without_packets_ends() {
    let stub = Stub::new(1);
    let mut channel = open(&stub);
    assert!(!channel.wait(Some(Duration::from_millis(1))).unwrap());
    stub.inject(0, 0, &[1; 60], Meta::default());
    assert!(channel.wait(None).unwrap(), "there already");
}

#[test]
fn the_file_is_for_an_event_loop() {
    let stub = Stub::new(2);
    let mut channel = open(&stub);
    assert!(channel.arm());
    assert!(!is_readable(&channel, 0));
    stub.inject(0, 1, &[1; 60], Meta::default());
    assert!(is_readable(&channel, 60));
    let mut packets = Vec::new();
    assert_eq!(channel.receive(&mut packets, 8).unwrap(), 1);
    assert!(!is_readable(&channel, 0), "what was rung is taken back");
    // Nobody rings for one that does not sleep.
    stub.inject(0, 0, &[1; 60], Meta::default());
    assert!(!is_readable(&channel, 0));
    assert!(!channel.arm(), "a packet is there already");
    channel.release_burst(&mut packets);
}

#[test]
fn a_worker_that_sleeps_is_rung() {
    let stub = Stub::new(2);
    let mut channel = open(&stub);
    let rung = |worker: usize| stub.is_rung(worker, 0);
    channel.send_bytes(&[1; 60], 0).unwrap();
    assert!(!rung(0), "it does not sleep");
    stub.with(|queue| queue.rings[0][0].from_client.sleeps().announce());
    stub.with(|queue| queue.rings[0][1].from_client.sleeps().announce());
    channel.send_bytes(&[1; 60], 0).unwrap();
    assert!(rung(0) && !rung(1));
    stub.inject(0, 1, &[1; 60], Meta::default());
    let mut packets = Vec::new();
    channel.receive(&mut packets, 8).unwrap();
    channel.send_burst(&mut packets).unwrap();
    assert!(rung(1));
    stub.inject(0, 1, &[1; 60], Meta::default());
    channel.receive(&mut packets, 8).unwrap();
    stub.with(|queue| queue.rings[0][1].from_client.sleeps().announce());
    channel.send(packets.pop().unwrap(), 0).unwrap();
    assert!(rung(1));
}

#[test]
fn room_wakes_a_sender() {
    let stub = Stub::new(2);
    let options = Options { slots: 4, ..Options::default() };
    let mut channel = stub.client().open(&options).unwrap().channels.pop().unwrap();
    assert!(channel.wait_for_room(None).unwrap(), "there already");
    let (is_full, full) = std::sync::mpsc::channel();
    let sender = std::thread::spawn(move || {
        for number in 0..200 {
            while let Err(error) = channel.send_bytes(&[number; 60], 0) {
                assert!(matches!(error, Error::Full), "{error}");
                is_full.send(()).unwrap();
                assert!(channel.wait_for_room(Some(LONG)).unwrap(), "nobody rang");
            }
        }
    });
    // Nothing is taken until it has to wait.
    full.recv().unwrap();
    let mut taken = 0;
    while taken < 200 {
        assert!(taken > 190 || !sender.is_finished(), "it gave up");
        taken += usize::from(stub.take(0, 0).or_else(|| stub.take(0, 1)).is_some());
        stub.with(|queue| {
            for rings in &queue.rings[0] {
                queue.channel_bells[0].ring(rings.from_client.producer_sleeps());
            }
        });
        std::thread::yield_now();
    }
    sender.join().unwrap();
}

#[test]
fn queues_that_the_daemon_drops_end_the_wait() {
    let stub = Stub::new(1);
    let mut channel = open(&stub);
    assert!(!channel.wait(Some(Duration::ZERO)).unwrap());
    stub.with(|queue| queue.channel_bells.clear());
    assert!(matches!(channel.wait(None), Err(Error::DaemonGone)));
    assert!(matches!(channel.wait_for_room(None), Ok(true)));
}

#[test]
fn the_daemons_end_wakes_a_sleeper() {
    let mut stub = Stub::new(1);
    let mut channel = open(&stub);
    let sleeper = std::thread::spawn(move || {
        let error = channel.wait(Some(LONG)).unwrap_err();
        assert!(matches!(error, Error::DaemonGone), "{error}");
        assert!(error.to_string().contains("attach again"));
        assert!(is_readable(&channel, 0), "for an event loop too");
    });
    std::thread::sleep(Duration::from_millis(20));
    stub.stop();
    sleeper.join().unwrap();
}

#[test]
fn the_daemons_end_is_seen_while_polling_once_all_is_received() {
    let mut stub = Stub::new(1);
    let mut channel = open(&stub);
    let mut packets = Vec::new();
    assert_eq!(channel.receive(&mut packets, 8).unwrap(), 0);
    stub.inject(0, 0, &[1; 60], Meta::default());
    stub.stop();
    assert_eq!(channel.receive(&mut packets, 8).unwrap(), 1, "what came is not lost");
    let start = Instant::now();
    let error = loop {
        assert!(start.elapsed() < LONG, "not noticed");
        if let Err(error) = channel.receive(&mut packets, 8) {
            break error;
        }
    };
    assert!(matches!(error, Error::DaemonGone));
    assert!(matches!(channel.send_bytes(&[1; 60], 0), Err(Error::DaemonGone)));
    let packet = packets.pop().unwrap();
    let unsent = channel.send(packet, 0).unwrap_err();
    assert!(matches!(unsent.error, Error::DaemonGone));
    assert!(matches!(channel.flush(LONG), Ok(true)), "nothing was sent");
    channel.release(unsent.packet);
    assert!(channel.as_fd().try_clone_to_owned().is_ok());
}
