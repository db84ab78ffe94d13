//! Packet scripts: what a peer sends, what the stack must answer, and when. `tests/scripts/README.md` is
//! their language.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod calls;
mod line;
mod numbers;
mod options;
mod packet;
mod payload;
mod port;
mod runner;
mod sent;

use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// Runs a script over a version, `None` being what the script says itself.
fn run(name: &str) {
    let path = folder().join(format!("{name}.script"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{name}: {why}"));
    for v6 in [false, true] {
        if text.contains(if v6 { "only v4" } else { "only v6" }) {
            continue;
        }
        if let Err(why) = runner::run(&text, v6) {
            let version = if v6 { "IPv6" } else { "IPv4" };
            panic!("{name}.script, {version}, {why}");
        }
    }
}

macro_rules! scripts {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*
    };
}

include!("list.rs");

#[test]
fn every_script_is_run() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            Some(entry.unwrap().file_name().to_str()?.strip_suffix(".script")?.into())
        })
        .collect();
    found.sort();
    let mut listed = NAMES.to_vec();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn what_does_not_happen_is_told() {
    for (text, expected) in [
        ("listen\n< SYN seq 0 win 1000\n> SYN ACK seq 0 ack 2", "line 3: ack 1 instead of 2"),
        ("listen\n< SYN seq 0 win 1000\n+1 nothing", "line 3: sent unexpectedly"),
        ("connect\n> SYN seq 0\n+0.5 > SYN seq 0", "line 3: nothing was sent"),
        ("connect\n> SYN seq 0\n+0.9 > SYN seq 0", "line 3: nothing was sent"),
        ("connect\n> SYN seq 0\n+0.4 info state=established", "line 3: state"),
        ("fly", "line 1: no such"),
        // Neither may be later than a line says.
        ("connect\n> SYN seq 0\n< RST ACK ack 1\nevent failed\nrecv refused", ""),
        ("connect\n> SYN seq 0\n< RST ACK ack 1\n+0.1 event failed", "line 4: 'failed' was told"),
        ("connect\n> SYN seq 0\n< RST ACK ack 1\n+0.1 recv refused", "line 4: it failed at 0.0"),
    ] {
        let why = runner::run(text, false).err().unwrap_or_default();
        assert!(!expected.is_empty() || why.is_empty(), "{why}");
        assert!(why.starts_with(expected), "{why}");
    }
}

#[test]
fn a_packet_that_is_not_sound_is_no_segment() {
    let segment = packet::Segment {
        data: payload::stream(payload::From::Host, 5, 7, 9),
        ..Default::default()
    };
    for v6 in [false, true] {
        let good = port::Sent { at: 0, bytes: segment.to_packet(v6), segment_size: 0 };
        assert!(packet::Segment::of_packet(&good).is_ok());
        for at in [good.bytes.len() - 1, good.bytes.len() - 12] {
            let mut bad = good.clone();
            bad.bytes[at] ^= 1;
            assert!(packet::Segment::of_packet(&bad).is_err(), "byte {at}");
        }
        let mut long = good.clone();
        long.bytes.push(0);
        assert!(packet::Segment::of_packet(&long).is_err());
    }
}

#[test]
fn data_from_a_wrong_place_shows() {
    let data = payload::stream(payload::From::Host, 80, 1000, 100);
    let differs = |from, port, offset| payload::difference(from, port, offset, &data).is_err();
    assert!(!differs(payload::From::Host, 80, 1000));
    assert!((0..2000).filter(|offset| *offset != 1000).all(|at| differs(
        payload::From::Host,
        80,
        at
    )));
    assert!(differs(payload::From::Peer, 80, 1000) && differs(payload::From::Host, 81, 1000));
}
