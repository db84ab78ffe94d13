//! PoF (packet on fly): forwards packets and works for each, which shows how much an application may do: n times the
//! MD5 of the packet, or n reads of memory that no cache holds, of which each waits for the one before.
//!
//! usage: pof IN OUT md5|memory N MB, or to raise n until the rate falls: pof IN OUT sweep SECONDS MB

use std::hint::black_box;
use std::time::{Duration, Instant};

use md5::{Digest, Md5};
use millrace::{Channel, Client, Error, Options};

struct Forwarder {
    channel: Channel,
    out: u8,
    memory: Vec<u64>,
    place: u64,
}

impl Forwarder {
    /// Forwards for a while; gives bytes received, and how long none waited.
    fn forward(&mut self, md5: bool, n: u64, time: Duration) -> Result<(usize, Duration), Error> {
        let (end, mut packets) = (Instant::now() + time, Vec::new());
        let (mut bytes, mut idle) = (0, Duration::ZERO);
        while Instant::now() < end {
            if self.channel.receive(&mut packets, 32)? == 0 {
                let start = Instant::now();
                self.channel.wait(Some(Duration::from_millis(1)))?;
                idle += start.elapsed();
            }
            for packet in &mut packets {
                bytes += packet.length();
                packet.set_port(self.out);
                for _ in 0..if md5 { n } else { 0 } {
                    black_box(Md5::digest(self.channel.bytes(packet)));
                }
                for _ in 0..if md5 { 0 } else { n } {
                    let read = self.memory[(self.place >> 24) as usize % self.memory.len()];
                    self.place = self.place.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(read);
                }
            }
            self.channel.send_burst(&mut packets)?;
            self.channel.release_burst(&mut packets);
        }
        Ok((bytes, idle))
    }

    /// Prints a line of the table; gives the share of time that was left: percent.
    fn measure(&mut self, md5: bool, n: u64, time: Duration) -> Result<f64, Error> {
        self.forward(md5, 0, time / 4)?; // What still waits.
        let (start, before) = (Instant::now(), self.channel.counters());
        let (bytes, idle) = self.forward(md5, n, time)?;
        let (seconds, after) = (start.elapsed().as_secs_f64(), self.channel.counters());
        let size = bytes as f64 / (after.received - before.received).max(1) as f64;
        let rate = (after.sent - before.sent) as f64 / seconds;
        let (kind, lost) = (if md5 { "md5" } else { "memory" }, after.full - before.full);
        let (gigabits, idle) = (rate * size * 8e-9, 100.0 * idle.as_secs_f64() / seconds);
        println!("{kind:<6} {size:>6.0} {n:>9} {rate:>12.0} {gigabits:>9.4} {lost:>9} {idle:>7.1}");
        Ok(if rate > 0.0 { idle } else { 0.0 })
    }

    /// The largest n at which time is left: with more, packets come faster than they go, and the rate falls.
    fn sweep(&mut self, md5: bool, time: Duration) -> Result<u64, Error> {
        let (mut holds, mut falls) = (0, None);
        self.measure(md5, 0, time)?;
        // Doubles n, then halves the gap in which the rate begins to fall; a fall is looked at twice.
        while falls.map_or(holds < 1 << 24, |falls| falls - holds > 1.max(holds / 8)) {
            let n = falls.map_or(1.max(holds * 2), |falls| (holds + falls) / 2);
            let kept = self.measure(md5, n, time)? > 5.0 || self.measure(md5, n, time)? > 5.0;
            *(if kept { &mut holds } else { falls.insert(n) }) = n;
        }
        Ok(holds)
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let usage = "usage: pof IN OUT md5|memory N MB, or pof IN OUT sweep SECONDS MB";
    let &[from, out, mode @ ("md5" | "memory" | "sweep"), number, megabytes] = &words[..] else {
        return Err(usage.into());
    };
    let n: f64 = number.parse().map_err(|_| usage)?;
    let (time, size) = (Duration::try_from_secs_f64(n)?, megabytes.parse::<u16>());
    let memory = vec![1; (usize::from(size.map_err(|_| usage)?) << 17).next_power_of_two()];
    let client = Client::attach(None, "pof")?;
    let (ports, wrong) = (client.ports()?, format!("there is no port {out}"));
    let out = ports.iter().find(|port| port.name == out).ok_or(wrong)?.number;
    let options = Options { ports: vec![from.into()], ..Options::default() };
    let channel = client.open(&options)?.channels.pop().ok_or("no channel")?;
    let mut forwarder = Forwarder { channel, out, memory, place: 0 };
    println!("work    bytes         n    packets/s    Gbit/s      lost  idle %");
    if mode != "sweep" {
        loop {
            forwarder.measure(mode == "md5", n as u64, Duration::from_secs(1))?;
        }
    }
    let (md5, memory) = (forwarder.sweep(true, time)?, forwarder.sweep(false, time)?);
    let limit = if md5 < memory { "CPU" } else { "memory" };
    println!("without loss: {md5} md5 or {memory} reads a packet; {limit} is the limit");
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("pof: {error}");
        std::process::exit(1);
    }
}
