//! A window of more segments than a list of pages has in one page, half of them lost: records of what is in flight, pieces
//! beyond gaps, and FIFOs of many pieces.

use std::net::IpAddr;

use transport::{Algorithm, Config, Options, Rings, Stack, Write};

use crate::allocator::{PAGE, largest, watch};
use crate::wire::Link;

const BUFFER: u32 = 24 << 20;
const MSS: u16 = 400;

#[test]
fn a_large_window_with_losses_allocates_no_more_than_a_page() {
    let stack = |number| {
        let config =
            Config { seed: [number, 6], transmit_buffer_limit: BUFFER, ..Config::default() };
        Stack::new(config, Rings).unwrap()
    };
    let options = Options {
        mss: MSS,
        congestion: Algorithm::NewReno,
        receive_buffer: BUFFER,
        receive_buffer_limit: BUFFER,
        transmit_buffer: BUFFER,
        ..Options::default()
    };
    let [one, other]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    let mut link = Link::new([stack(1), stack(2)], 64_000, usize::from(MSS) + 60);
    let listener = link.hosts[1].listen((other, 80).into(), 16, &options).unwrap();
    let client = link.hosts[0].connect(link.now, one, 5000, (other, 80).into(), &options).unwrap();
    link.settle();
    let server = link.hosts[1].accept(listener).unwrap();
    let (piece, mut read) = ([7; 65_536], vec![0; 1 << 20]);
    let (mut sent, mut received, mut most, mut rounds) = (0, 0, 0, 0);
    let total = 64 << 20;
    while received < total {
        while sent < total {
            let host = &mut link.hosts[0];
            match watch(|| host.send_with(client, &piece, Write::default()).unwrap()) {
                0 => break,
                count => sent += count,
            }
        }
        let (before, now) = (received, link.now);
        let flight = link.hosts[0].info(client).unwrap().in_flight;
        // Windows of more than 32,768 segments lose half of them.
        most = most.max(flight);
        link.loses = most > 14 << 20 && rounds < 4;
        rounds += u32::from(link.loses);
        let moved = link.step();
        let host = &mut link.hosts[1];
        loop {
            match watch(|| host.recv(server, &mut read).unwrap()) {
                0 => break,
                count => received += count,
            }
        }
        if !moved && received == before {
            let next = link.hosts.iter().filter_map(Stack::next_deadline).min().unwrap();
            link.now = now.max(next);
        }
    }
    let info = link.hosts[0].info(client).unwrap();
    assert!(info.retransmissions > 10_000, "{most} {}", info.retransmissions);
    assert!(largest() <= PAGE, "{} bytes at once", largest());
}
