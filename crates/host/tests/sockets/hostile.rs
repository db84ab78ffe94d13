//! Any calls in any order, while packets arrive broken: nothing panics, and nothing is told about sessions
//! that are not there.

use std::io::{IoSlice, IoSliceMut};

use millrace_host::{Domain, How, Id, Incoming, Kind, Outgoing};
use proptest::prelude::*;
use transport::Packet;

use crate::pair::{Pair, at, v4, v6};

/// A call, and numbers that say how.
type Call = (u8, u32, u32, u16);

fn call(pair: &mut Pair, side: usize, (what, id, other, number): Call) {
    let (now, id, other) = (pair.now, Id(id), Id(other));
    let sessions = &mut pair.hosts[side].sessions;
    let flags = number;
    let bit = |place: u32| flags >> place & 1 == 1;
    let ip = if bit(0) { v4(1 - side) } else { v6(1 - side) };
    let (source, port) = (if bit(0) { v4(side) } else { v6(side) }, 80 + number % 4);
    match what {
        0 | 1 => {
            let domain = if bit(1) { Domain::V4 } else { Domain::V6 };
            let kind = if bit(2) { Kind::Stream } else { Kind::Datagram };
            let _ = sessions.open(id, domain, kind);
        }
        2 => {
            let _ = sessions.bind(id, at(source, port));
        }
        3 => {
            let _ = sessions.bind(id, at([0; 4].into(), if bit(3) { port } else { 0 }));
        }
        4 => {
            let _ = sessions.listen(id, i32::from(number as i16));
        }
        5 | 6 => {
            let _ = sessions.connect(id, now, source, at(ip, port));
        }
        7 | 8 => {
            let _ = sessions.accept(id, other);
        }
        9 | 10 => {
            let mut bytes = vec![0; usize::from(number) % 5000];
            let (peek, discard) = (bit(4), bit(5));
            let incoming = Incoming { peek, discard, errors: bit(15), ..Incoming::default() };
            let _ = sessions.recv(id, &mut [IoSliceMut::new(&mut bytes)], incoming);
        }
        11 | 12 => {
            let bytes = vec![7; usize::from(number) % 5000];
            let to = bit(6).then_some(at(ip, port));
            let outgoing = Outgoing {
                to,
                source: bit(7).then_some(source),
                more: bit(8),
                end_of_record: bit(9),
                urgent: false,
                fast_open: bit(10),
                segment_size: if bit(11) { number } else { 0 },
                service: bit(12).then_some(number as u8),
                ttl: None,
            };
            let pieces = [IoSlice::new(&bytes), IoSlice::new(b"more")];
            let _ = sessions.send(id, &pieces[..1 + usize::from(bit(13))], outgoing);
        }
        13 => {
            let how = [How::Read, How::Write, How::Both][usize::from(number) % 3];
            let _ = sessions.shutdown(id, how);
        }
        14 => {
            let _ = sessions.close(id);
        }
        15 => sessions.abort(id),
        16 => {
            let _ = sessions.disconnect(id);
        }
        _ => {
            let level = [0, 1, 6, 17, 41][usize::from(number) % 5];
            let name = i32::from(number >> 4) % 80;
            let _ = sessions.set_option(id, level, name, &[number as u8, 0, 0, 0, 5, 0, 0, 0]);
            let _ = (sessions.option(id, level, name, 99), sessions.name(id), sessions.peer(id));
            let _ = (sessions.mask(id), sessions.pending(id), sessions.unsent(id));
        }
    }
}

/// Delivers what was sent, every so many packets broken.
fn deliver(pair: &mut Pair, (breaks, place, bits): (usize, usize, u8)) {
    let now = pair.now;
    for host in &mut pair.hosts {
        host.sessions.turn(now, &mut host.out);
    }
    pair.now += 1_000_000;
    let sent = pair.hosts.each_mut().map(|host| std::mem::take(&mut host.out.packets));
    for (from, packets) in sent.into_iter().enumerate() {
        for (number, mut packet) in packets.into_iter().enumerate() {
            if number % breaks == 0 {
                let length = packet.len();
                packet[place % length] ^= bits;
            }
            let host = &mut pair.hosts[1 - from];
            let packet = Packet { bytes: &packet, checksum_is_good: true };
            host.sessions.input(pair.now, &[packet], &mut host.out);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_upsets_it(
        steps in proptest::collection::vec(
            (0..2usize, (0..19u8, 0..8u32, 0..8u32, any::<u16>()), (1..6usize, 0..120usize, any::<u8>())),
            1..150),
    ) {
        let mut pair = Pair::default();
        let any = "[::]:80".parse().unwrap();
        pair.listen(Id(0), any);
        pair.client().open(Id(0), Domain::V6, Kind::Datagram).unwrap();
        pair.client().bind(Id(0), any).unwrap();
        for (side, what, packets) in steps {
            call(&mut pair, side, what);
            deliver(&mut pair, packets);
            for host in &mut pair.hosts {
                while let Some(ready) = host.sessions.next_ready() {
                    prop_assert!(host.sessions.has(ready.id));
                }
            }
        }
        for host in &mut pair.hosts {
            (0..8).for_each(|id| host.sessions.abort(Id(id)));
        }
        // Even what was broken ends some day.
        for _ in 0..40 {
            pair.run_for(60_000_000_000);
        }
        prop_assert!(pair.hosts.iter().all(|host| host.sessions.is_drained()));
    }
}
