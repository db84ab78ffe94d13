//! Runs a script against a stack.

use std::collections::{HashMap, VecDeque};

use millrace_transport as transport;
use transport::{
    Config, ConnectionId, Departure, Event, ListenerId, Offloads, Options, Packet, Rings, Sink,
    Stack,
};

use crate::line::{Line, lines};
use crate::packet::{Segment, flag_names, flags, icmp};

/// How much earlier or later than a script says something may happen: ns. The timers' grain, and a
/// millisecond of the time stamps'.
const TOLERANCE: u64 = 2_000_000;
/// The peer's initial sequence number.
const PEER_ISS: u32 = 50_000;

/// What one connection's numbers are relative to, by the peer's port.
#[derive(Debug, Default, Clone)]
pub(crate) struct Numbers {
    pub(crate) host_iss: Option<u32>,
    /// The time stamp of the host's last segment, and of its first.
    pub(crate) last_stamp: u32,
    pub(crate) first_stamp: Option<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Port {
    pub(crate) segmentation: u32,
    pub(crate) sent: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Sink for Port {
    fn offloads(&self) -> Offloads {
        Offloads { segmentation: self.segmentation, ..Offloads::default() }
    }

    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.buffer = vec![0; length];
        Some(&mut self.buffer)
    }

    fn send(&mut self, departure: Departure) {
        self.buffer.truncate(departure.length);
        self.sent.push(std::mem::take(&mut self.buffer));
    }
}

pub(crate) struct Runner {
    pub(crate) stack: Stack<Rings>,
    pub(crate) v6: bool,
    /// ns; the script's zero is not the clock's.
    pub(crate) now: u64,
    zero: u64,
    pub(crate) port: Port,
    /// Sent and not looked at: when, and what.
    out: VecDeque<(u64, Vec<u8>)>,
    /// All that was sent.
    pub(crate) history: Vec<Vec<u8>>,
    pub(crate) numbers: HashMap<u16, Numbers>,
    /// The peer's port of this script's first connection.
    pub(crate) peer_port: u16,
    pub(crate) options: Options,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) connections: Vec<ConnectionId>,
    pub(crate) events: Vec<Event>,
}

/// Runs a script; what was wrong, if anything.
pub(crate) fn run(text: &str, v6: bool) -> Result<(), String> {
    let lines = lines(text)?;
    let mut config = Config { connections_v4: 64, connections_v6: 64, ..Config::default() };
    for (name, value) in lines.iter().filter(|line| line.word(0) == "host").flat_map(Line::pairs) {
        match name {
            "mtu" => config.mtu = value.parse().map_err(|_| format!("mtu '{value}'"))?,
            "challenges" => config.challenges = value.parse().map_err(|_| "challenges")?,
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
        self.run_until(at);
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
        self.collect();
        Ok(())
    }

    /// Takes what the stack has sent.
    fn collect(&mut self) {
        self.stack.flush(self.now, &mut self.port);
        self.events.extend(std::iter::from_fn(|| self.stack.poll_event()));
        for packet in std::mem::take(&mut self.port.sent) {
            self.history.push(packet.clone());
            self.out.push_back((self.now, packet));
        }
    }

    fn run_until(&mut self, at: u64) {
        while let Some(next) = self.stack.next_deadline().filter(|next| *next <= at) {
            self.now = self.now.max(next);
            self.stack.expire(self.now, &mut self.port);
            self.collect();
        }
        self.now = self.now.max(at);
    }

    fn seconds(&self, at: u64) -> f64 {
        (at - self.zero) as f64 / 1e9
    }

    fn none_left(&self) -> Result<(), String> {
        match self.out.front() {
            None => Ok(()),
            Some((at, packet)) => {
                let sent = Segment::of_packet(packet);
                let text = sent.map_or("no segment".into(), |sent| self.describe(&sent));
                Err(format!("sent unexpectedly at {:.4}: {text}", self.seconds(*at)))
            }
        }
    }

    pub(crate) fn numbers_of(&mut self, port: u16) -> &mut Numbers {
        self.numbers.entry(port).or_default()
    }

    /// A segment in relative numbers.
    fn describe(&self, sent: &Segment) -> String {
        let numbers = self.numbers.get(&sent.ports.1).cloned().unwrap_or_default();
        let seq = sent.seq.wrapping_sub(numbers.host_iss.unwrap_or(0));
        let ack = sent.ack.wrapping_sub(PEER_ISS);
        let names = flag_names(sent.flags, sent.ae);
        let (window, length) = (sent.window, sent.length);
        let options = crate::options::words(sent, PEER_ISS).join(", ");
        format!(
            "{names} seq {seq} ack {ack} len {length} win {window} ecn {} <{options}>",
            sent.ecn
        )
    }

    fn peer_port_of(&mut self, line: &Line) -> Result<u16, String> {
        let given = line.number_after("port")?.map(|port| port as u16);
        Ok(given.unwrap_or(if self.peer_port == 0 { 40_000 } else { self.peer_port }))
    }

    fn inject(&mut self, line: &Line) -> Result<(), String> {
        let peer = self.peer_port_of(line)?;
        let host = if peer == 80 { 40_000 } else { 80 };
        let numbers = self.numbers_of(peer).clone();
        let relative = |name: &str, base: u32| -> Result<u32, String> {
            Ok(base.wrapping_add(line.number_after(name)?.unwrap_or(0) as u32))
        };
        let number = |name: &str| line.number_after(name).map(|n| n.unwrap_or(0));
        let segment = Segment {
            ports: (peer, line.number_after("to")?.map_or(host, |port| port as u16)),
            flags: flags(line),
            ae: line.has("AE"),
            seq: relative("seq", PEER_ISS)?,
            ack: if line.has("ack") { relative("ack", numbers.host_iss.unwrap_or(0))? } else { 0 },
            window: number("win")? as u16,
            urgent: number("urg")? as u16,
            options: crate::options::bytes(line, &numbers)?,
            length: number("len")? as usize,
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
        let about = |packet: &&Vec<u8>| {
            Segment::of_packet(packet).is_some_and(|sent| sent.seq == seq && sent.ports.1 == peer)
        };
        let quoted = match self.history.iter().rev().find(about) {
            Some(quoted) => quoted.clone(),
            // Never sent: made up after one that was.
            None => {
                let mut last = self.history.last().cloned().ok_or("nothing was sent")?;
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

    fn expect(&mut self, line: &Line, at: u64) -> Result<(), String> {
        while self.out.is_empty() && self.now < at + TOLERANCE {
            let next = self.stack.next_deadline().unwrap_or(u64::MAX).min(at + TOLERANCE);
            self.run_until(next);
        }
        let Some((sent_at, packet)) = self.out.pop_front() else {
            return Err("nothing was sent".into());
        };
        let sent = Segment::of_packet(&packet).ok_or("what was sent is no segment")?;
        let early = sent_at + TOLERANCE < at;
        if early || sent_at > at + TOLERANCE {
            let text = self.describe(&sent);
            return Err(format!("sent at {:.4}: {text}", self.seconds(sent_at)));
        }
        let peer = sent.ports.1;
        if sent.flags & 2 != 0 {
            self.numbers_of(peer).host_iss = Some(sent.seq);
        }
        let differs = self.compare(line, &sent)?;
        if let Some((value, _)) = sent.timestamps() {
            let numbers = self.numbers_of(peer);
            numbers.last_stamp = value;
            numbers.first_stamp.get_or_insert(value);
        }
        match differs {
            Some(what) => Err(format!("{what}; sent: {}", self.describe(&sent))),
            None => Ok(()),
        }
    }

    /// The first difference between what was sent and what a line says.
    fn compare(&mut self, line: &Line, sent: &Segment) -> Result<Option<String>, String> {
        let numbers = self.numbers_of(sent.ports.1).clone();
        let (flags, ae) = (flags(line), line.has("AE"));
        if flags != sent.flags || ae != sent.ae {
            let (is, wanted) = (flag_names(sent.flags, sent.ae), flag_names(flags, ae));
            return Ok(Some(format!("{is} instead of {wanted}")));
        }
        let seq = sent.seq.wrapping_sub(numbers.host_iss.unwrap_or(0));
        let ack = sent.ack.wrapping_sub(PEER_ISS);
        for (name, value) in [
            ("port", i64::from(sent.ports.1)),
            // One that belongs to no connection has the number that it was asked with.
            ("seq", i64::from(seq as i32)),
            ("ack", i64::from(ack as i32)),
            ("len", sent.length as i64),
            ("win", sent.window.into()),
            ("ecn", sent.ecn.into()),
            ("df", i64::from(sent.dont_fragment)),
        ] {
            if let Some(wanted) = line.number_after(name)? {
                if wanted != value {
                    return Ok(Some(format!("{name} {value} instead of {wanted}")));
                }
            }
        }
        if !line.has("len") && !line.has("any-length") && sent.length > 0 {
            return Ok(Some(format!("{} bytes of data instead of none", sent.length)));
        }
        let Some(wanted) = &line.options else { return Ok(None) };
        crate::options::compare(wanted, sent, &numbers, PEER_ISS)
    }
}
