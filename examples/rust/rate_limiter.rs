//! Rate limiter: lets packets that come in by the ports go on up to a rate, and drops what is above (token bucket).
//!
//! usage: rate_limiter MBIT/S BURST-KB [PORT...]

use std::time::{Duration, Instant};

use millrace::{Client, Options};

/// So many bytes may pass: refilled with time, up to the burst.
struct Bucket {
    bytes_per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(bytes_per_second: f64, burst: f64) -> Self {
        Self { bytes_per_second, burst, tokens: burst, filled: Instant::now() }
    }

    fn refill(&mut self) {
        let now = Instant::now();
        let more = (now - self.filled).as_secs_f64() * self.bytes_per_second;
        self.tokens = (self.tokens + more).min(self.burst);
        self.filled = now;
    }

    fn take(&mut self, bytes: usize) -> bool {
        let passes = self.tokens >= bytes as f64;
        if passes {
            self.tokens -= bytes as f64;
        }
        passes
    }
}

fn limit() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: rate_limiter MBIT/S BURST-KB [PORT...]";
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next()?.parse::<f64>().ok();
    let (rate, burst) = number().zip(number()).ok_or(usage)?;
    let mut bucket = Bucket::new(rate * 1e6 / 8.0, burst * 1e3);
    let options = Options { ports: arguments.collect(), ..Options::default() };
    let client = Client::attach(None, "rate limiter")?;
    let mut queues = client.open(&options)?;
    let Some(channel) = queues.channels.first_mut() else { return Ok(()) };
    let (mut passed, mut dropped) = (0_u64, 0_u64);
    let mut said = Instant::now();
    let (mut packets, mut pass) = (Vec::new(), Vec::new());
    loop {
        channel.wait(Some(Duration::from_millis(200)))?;
        channel.receive(&mut packets, 64)?;
        bucket.refill();
        for packet in packets.drain(..) {
            if bucket.take(packet.length()) {
                pass.push(packet);
            } else {
                dropped += 1;
                channel.release(packet);
            }
        }
        passed += channel.return_burst(&mut pass)? as u64;
        dropped += pass.len() as u64;
        channel.release_burst(&mut pass);
        if said.elapsed() >= Duration::from_secs(1) {
            said = Instant::now();
            println!("{passed} passed, {dropped} dropped");
        }
    }
}

fn main() {
    if let Err(error) = limit() {
        eprintln!("rate_limiter: {error}");
        std::process::exit(1);
    }
}
