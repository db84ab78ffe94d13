//! Runs a script against a stack.

use std::collections::{HashMap, VecDeque};

use millrace_transport as transport;
use transport::{Config, ConnectionId, Event, ListenerId, Options, Packet, Rings, Stack};

use crate::line::{Line, lines};
use crate::packet::{Segment, flags, icmp};
use crate::payload::{From, stream};
use crate::port::{Port, Sent};

/// How much earlier or later than a script says something may happen: ns. Timers have a
/// grain of 65.5 us, which adds up from one to the next.
pub(crate) const TOLERANCE: u64 = 200_000;
/// The peer's initial sequence number.
pub(crate) const PEER_ISS: u32 = 50_000;

/// What one connection's numbers are relative to, by the peer's port.
#[derive(Debug, Default, Clone)]
pub(crate) struct Numbers {
    pub(crate) host_iss: Option<u32>,
    /// The host's, by its last SYN.
    pub(crate) host_port: Option<u16>,
    /// The time stamp of the host's last segment, and of its first.
    pub(crate) last_stamp: u32,
    pub(crate) first_stamp: Option<u32>,
    /// The peer's last SYN, and its first byte of data after the one that was answered.
    pub(crate) last_syn: u32,
    pub(crate) peer_start: u32,
    /// The Fast Open cookie that the host gave last.
    pub(crate) cookie: Option<Vec<u8>>,
}

/// What a script has done with a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Socket {
    pub(crate) id: ConnectionId,
    /// The peer's.
    pub(crate) port: u16,
    /// Bytes written.
    pub(crate) written: u32,
    /// The sequence number of the next byte to read.
    pub(crate) next: u32,
}

pub(crate) struct Runner {
    pub(crate) stack: Stack<Rings>,
    pub(crate) v6: bool,
    /// ns; the script's zero is not the clock's.
    pub(crate) now: u64,
    pub(crate) zero: u64,
    pub(crate) port: Port,
    /// Sent and not looked at: when, and what.
    pub(crate) out: VecDeque<(u64, Segment)>,
    /// All that was sent.
    pub(crate) history: Vec<Sent>,
    pub(crate) numbers: HashMap<u16, Numbers>,
    /// The peer's port of this script's first connection.
    pub(crate) peer_port: u16,
    pub(crate) options: Options,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) connections: Vec<Socket>,
    /// Told and not looked at: when, and what.
    pub(crate) events: Vec<(u64, Event)>,
    /// When connections failed.
    pub(crate) failures: Vec<(u64, ConnectionId)>,
    /// The Fast Open cookie that the host gave last.
    pub(crate) cookie: Option<Vec<u8>>,
}

/// Runs a script; what was wrong, if anything.
pub(crate) fn run(text: &str, v6: bool) -> Result<(), String> {
    let lines = lines(text)?;
    let mut config = Config { connections_v4: 64, connections_v6: 64, ..Config::default() };
    for (name, value) in lines.iter().filter(|line| line.word(0) == "host").flat_map(Line::pairs) {
        match name {
            "mtu" => config.mtu = value.parse().map_err(|_| format!("mtu '{value}'"))?,
            "challenges" => config.challenges = value.parse().map_err(|_| "challenges")?,
            "orphans" => config.orphans = value.parse().map_err(|_| "orphans")?,
            "resets" => config.resets = value.parse().map_err(|_| "resets")?,
            _ => return Err(format!("no such setting of the host: {name}")),
        }
    }
    let zero = 100_000_000_000;
    let mut runner = Runner {
        stack: Stack::new(config, Rings).map_err(|error| error.to_string())?,
        v6,
        now: zero,
        zero,
        port: Port::default(),
        out: VecDeque::new(),
        history: Vec::new(),
        numbers: HashMap::new(),
        peer_port: 0,
        options: Options::default(),
        listener: None,
        connections: Vec::new(),
        events: Vec::new(),
        failures: Vec::new(),
        cookie: None,
    };
    for line in &lines {
        runner.step(line).map_err(|why| format!("line {}: {why}", line.number))?;
    }
    runner.none_left().map_err(|why| format!("at the end: {why}"))
}

impl Runner {
    fn step(&mut self, line: &Line) -> Result<(), String> {
        let at = self.zero + line.at;
        match line.word(0) {
            ">" => return self.expect(line, at),
            "host" | "only" => return Ok(()),
            _ => {}
        }
        self.run_until(at)?;
        if line.word(0) == "anything" {
            self.out.clear();
            return Ok(());
        }
        if line.word(0) != "info" && line.word(0) != "dropped" {
            self.none_left()?;
        }
        match line.word(0) {
            "nothing" => {}
            "<" if line.word(1) == "icmp" => self.inject_icmp(line)?,
            "<" => self.inject(line)?,
            _ => self.call(line)?,
        }
        self.collect()
    }

    pub(crate) fn run_until(&mut self, at: u64) -> Result<(), String> {
        while let Some(next) = self.stack.next_deadline().filter(|next| *next <= at) {
            self.now = self.now.max(next);
            self.stack.expire(self.now, &mut self.port);
            self.collect()?;
        }
        self.now = self.now.max(at);
        Ok(())
    }

    pub(crate) fn numbers_of(&mut self, port: u16) -> &mut Numbers {
        self.numbers.entry(port).or_default()
    }

    fn peer_port_of(&mut self, line: &Line) -> Result<u16, String> {
        let given = line.number_after("port")?.map(|port| port as u16);
        Ok(given.unwrap_or(if self.peer_port == 0 { 40_000 } else { self.peer_port }))
    }

    fn inject(&mut self, line: &Line) -> Result<(), String> {
        let peer = self.peer_port_of(line)?;
        let mut numbers = self.numbers_of(peer).clone();
        let host = numbers.host_port.unwrap_or(if peer == 80 { 40_000 } else { 80 });
        numbers.cookie = self.cookie.clone();
        let relative = |name: &str, base: u32| -> Result<u32, String> {
            Ok(base.wrapping_add(line.number_after(name)?.unwrap_or(0) as u32))
        };
        let number = |name: &str| line.number_after(name).map(|n| n.unwrap_or(0));
        let seq = relative("seq", PEER_ISS)?;
        let is_syn = line.has("SYN");
        if is_syn {
            self.numbers_of(peer).last_syn = seq;
        }
        let start = seq.wrapping_add(u32::from(is_syn));
        let segment = Segment {
            ports: (peer, line.number_after("to")?.map_or(host, |port| port as u16)),
            flags: flags(line),
            ae: line.has("AE"),
            seq,
            ack: if line.has("ack") { relative("ack", numbers.host_iss.unwrap_or(0))? } else { 0 },
            window: number("win")? as u16,
            urgent: number("urg")? as u16,
            options: crate::options::bytes(line, &numbers)?,
            data: stream(From::Peer, peer, start, number("len")? as usize),
            ecn: number("ecn")? as u8,
            dont_fragment: true,
        };
        let mut packet = segment.to_packet(self.v6);
        if line.has("corrupt") {
            *packet.last_mut().unwrap() ^= 1;
        }
        self.stack.input(self.now, &[Packet::new(&packet)], &mut self.port);
        Ok(())
    }

    fn inject_icmp(&mut self, line: &Line) -> Result<(), String> {
        let peer = self.peer_port_of(line)?;
        let iss = self.numbers_of(peer).host_iss.unwrap_or(0);
        let seq = iss.wrapping_add(line.number_after("seq")?.unwrap_or(0) as u32);
        let about = |sent: &&Sent| {
            Segment::of_packet(sent).is_ok_and(|sent| sent.seq == seq && sent.ports.1 == peer)
        };
        let quoted = match self.history.iter().rev().find(about) {
            Some(quoted) => quoted.bytes.clone(),
            // Never sent: made up after one that was.
            None => {
                let mut last = self.history.last().ok_or("nothing was sent")?.bytes.clone();
                let start = if self.v6 { 40 } else { 20 };
                last[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
                last
            }
        };
        let mtu = line.number_after("mtu")?.unwrap_or(0) as u16;
        let error = icmp(&quoted, line.word(2), mtu).ok_or("no such ICMP error")?;
        self.stack.input(self.now, &[Packet::new(&error)], &mut self.port);
        Ok(())
    }
}
