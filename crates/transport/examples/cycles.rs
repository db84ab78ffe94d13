//! Nanoseconds of one keep-alive request and response: one data segment each way, acknowledgments on
//! their backs, over many connections between two stacks in memory.
//!
//! `cargo run --release --example cycles [CONNECTIONS [BYTES]]`

use std::time::{Duration, Instant};

use millrace_transport::{
    Config, ConnectionId, Departure, Event, Options, Packet, Rings, Sink, Stack,
};

/// Packets that travel together.
const BATCH: usize = 64;

/// Buffers that are used again.
struct Arena {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

const ROOM: usize = 2048;

impl Arena {
    fn packets(&self) -> Vec<Packet<'_>> {
        let chunks = self.bytes.chunks(ROOM).zip(&self.lengths);
        chunks.map(|(chunk, length)| Packet::new(&chunk[..*length])).collect()
    }
}

impl Sink for Arena {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        let start = self.lengths.len() * ROOM;
        if self.bytes.len() < start + ROOM {
            self.bytes.resize(start + ROOM, 0);
        }
        self.bytes.get_mut(start..start + length)
    }

    fn send(&mut self, departure: Departure) {
        self.lengths.push(departure.length);
    }
}

struct Bench {
    client: Stack<Rings>,
    server: Stack<Rings>,
    wire: Arena,
    now: u64,
}

impl Bench {
    fn exchange(&mut self) {
        for _ in 0..4 {
            self.now += 10_000;
            self.wire.lengths.clear();
            self.client.flush(self.now, &mut self.wire);
            let mut back = Arena { bytes: Vec::new(), lengths: Vec::new() };
            self.server.input(self.now, &self.wire.packets(), &mut back);
            self.server.flush(self.now, &mut back);
            self.wire.lengths.clear();
            self.client.input(self.now, &back.packets(), &mut self.wire);
            let mut late = Arena { bytes: Vec::new(), lengths: Vec::new() };
            self.server.input(self.now, &self.wire.packets(), &mut late);
        }
    }

    fn connect(&mut self, count: usize) -> Result<Vec<ConnectionId>, Box<dyn std::error::Error>> {
        let options = Options::default();
        let remote = ([10, 0, 0, 2], 80).into();
        let listener = self.server.listen(remote, BATCH * 2, &options)?;
        let mut ids = Vec::new();
        while ids.len() < count {
            for _ in 0..BATCH.min(count - ids.len()) {
                let n = ids.len();
                let local = [10, 1, (n / 40_000) as u8, 1].into();
                let port = 1024 + (n % 40_000) as u16;
                ids.push(self.client.connect(self.now, local, port, remote, &options)?);
            }
            self.exchange();
            while self.server.accept(listener).is_some() {}
            while self.client.poll_event().is_some() || self.server.poll_event().is_some() {}
        }
        Ok(ids)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map_while(|word| word.parse().ok());
    let count: usize = arguments.next().unwrap_or(10_000);
    let size: usize = arguments.next().unwrap_or(64);
    let stack = |seed| {
        let config = Config {
            connections_v4: count + 100,
            connections_v6: 1,
            seed: [seed; 2],
            ..Config::default()
        };
        Stack::new(config, Rings)
    };
    let wire = Arena { bytes: Vec::new(), lengths: Vec::new() };
    let mut bench = Bench { client: stack(1)?, server: stack(2)?, wire, now: 1_000_000_000 };
    let ids = bench.connect(count)?;
    println!(
        "{} connections, {} bytes each",
        bench.client.connections(),
        Stack::<Rings>::PLACE_BYTES
    );
    let (mut out, mut back) = (
        Arena { bytes: Vec::new(), lengths: Vec::new() },
        Arena { bytes: Vec::new(), lengths: Vec::new() },
    );
    let body = vec![7; size];
    let mut buffer = vec![0; 4096];
    let (mut client_time, mut server_time, mut pairs) = (Duration::ZERO, Duration::ZERO, 0u64);
    let rounds = (2_000_000 / count).max(3);
    for round in 0..rounds + 1 {
        for group in ids.chunks(BATCH) {
            bench.now += 20_000;
            let start = Instant::now();
            for id in group {
                let _ = bench.client.send(*id, &body);
            }
            out.lengths.clear();
            bench.client.flush(bench.now, &mut out);
            let packets = out.packets();
            let middle = Instant::now();
            back.lengths.clear();
            bench.server.input(bench.now, &packets, &mut back);
            while let Some(event) = bench.server.poll_event() {
                if let Event::Readable(id) = event {
                    let _ = bench.server.recv(id, &mut buffer);
                    let _ = bench.server.send(id, &body);
                }
            }
            bench.server.flush(bench.now, &mut back);
            bench.server.expire(bench.now, &mut back);
            let packets = back.packets();
            let end = Instant::now();
            out.lengths.clear();
            bench.client.input(bench.now + 10_000, &packets, &mut out);
            while let Some(event) = bench.client.poll_event() {
                if let Event::Readable(id) = event {
                    pairs += u64::from(round > 0 && bench.client.recv(id, &mut buffer) == Ok(size));
                    if round == 0 {
                        let _ = bench.client.recv(id, &mut buffer);
                    }
                }
            }
            bench.client.expire(bench.now, &mut out);
            if round > 0 {
                server_time += end - middle;
                client_time += middle - start + end.elapsed();
            }
            assert!(out.lengths.is_empty() || round == 0, "an acknowledgment of its own");
        }
    }
    let per = |time: Duration| time.as_nanos() as f64 / pairs as f64;
    println!("{pairs} pairs: server {:.0} ns, client {:.0} ns", per(server_time), per(client_time));
    println!(
        "retransmissions {}",
        bench.client.counters().retransmissions + bench.server.counters().retransmissions
    );
    Ok(())
}
