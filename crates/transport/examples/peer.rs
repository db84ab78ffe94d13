//! A peer over a Unix datagram socket, one IP packet per datagram: echoes on port 7, TCP and UDP, swallows
//! on port 9, sends 10 MB on port 19; or connects to an echo server and sends. For tests against other
//! stacks, with a bridge between the socket and a TUN device (`lab/transport/bridge`).
//!
//! `peer OWN-SOCKET BRIDGE-SOCKET [connect LOCAL-IP REMOTE-IP PORT BYTES]`; the environment's `CONGESTION`
//! is `cubic`, `newreno` or `bbr`.

use std::collections::HashMap;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use millrace_transport::{
    Algorithm, Config, ConnectionId, Departure, Ecn, Event, Message, Options, Packet, Rings, Sink,
    Stack, UdpOptions,
};

/// Sends each packet as a datagram.
struct Bridge<'a> {
    socket: &'a UnixDatagram,
    bytes: Vec<u8>,
}

impl Sink for Bridge<'_> {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.bytes.resize(length, 0);
        Some(&mut self.bytes)
    }

    fn send(&mut self, departure: Departure) {
        // A full bridge is a lossy path.
        let _ = self.socket.send(&self.bytes[..departure.length]);
    }
}

const TOTAL: usize = 10_000_000;

fn byte(at: usize) -> u8 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 24) as u8
}

#[derive(Default)]
struct Talk {
    port: u16,
    written: usize,
    read: usize,
    wrong: usize,
    goal: usize,
    pending: Vec<u8>,
    over: bool,
}

/// Moves what can be moved.
fn serve(stack: &mut Stack<Rings>, id: ConnectionId, talk: &mut Talk) {
    let mut buffer = [0; 65_536];
    loop {
        if !talk.pending.is_empty() {
            let taken = stack.send(id, &talk.pending).unwrap_or(0);
            talk.pending.drain(..taken);
            if !talk.pending.is_empty() {
                return;
            }
        }
        while talk.written < talk.goal {
            let end = (talk.written + buffer.len()).min(talk.goal);
            let chunk: Vec<u8> = (talk.written..end).map(byte).collect();
            let taken = stack.send(id, &chunk).unwrap_or(0);
            talk.written += taken;
            if taken < chunk.len() {
                break;
            }
        }
        let count = stack.recv(id, &mut buffer).unwrap_or(0);
        for (place, found) in buffer[..count].iter().enumerate() {
            talk.wrong += usize::from(*found != byte(talk.read + place));
        }
        talk.read += count;
        if talk.port == 7 {
            talk.pending.extend_from_slice(&buffer[..count]);
        }
        if count == 0 {
            break;
        }
    }
    let sent = talk.written >= talk.goal && talk.pending.is_empty();
    if !talk.over && sent && (talk.port == 19 || stack.is_finished(id)) {
        let _ = stack.shutdown(id);
        if stack.is_finished(id) {
            talk.over = true;
            println!(
                "port {} read {} wrong {} {:?}",
                talk.port,
                talk.read,
                talk.wrong,
                stack.info(id)
            );
            stack.close(id);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [own, bridge, rest @ ..] = &words[..] else {
        return Err("usage: peer OWN BRIDGE [connect LOCAL REMOTE PORT BYTES]".into());
    };
    let socket = UnixDatagram::bind(own)?;
    socket.connect(bridge)?;
    let start = Instant::now();
    let config = Config { seed: [11, 22], ..Config::default() };
    let mut stack = Stack::new(config, Rings)?;
    let congestion = match std::env::var("CONGESTION").as_deref() {
        Ok("newreno") => Algorithm::NewReno,
        Ok("bbr") => Algorithm::Bbr,
        _ => Algorithm::Cubic,
    };
    let options = Options { ecn: Ecn::Active, congestion, ..Options::default() };
    let mut talks: HashMap<ConnectionId, Talk> = HashMap::new();
    let mut listeners = HashMap::new();
    for port in [7, 9, 19] {
        let any = (std::net::Ipv6Addr::UNSPECIFIED, port).into();
        listeners.insert(stack.listen(any, 100, &options)?, port);
    }
    stack.udp_bind((std::net::Ipv6Addr::UNSPECIFIED, 7).into(), &UdpOptions::default())?;
    if let [word, local, remote, port, bytes] = rest {
        if word == "connect" {
            let remote = std::net::SocketAddr::new(remote.parse()?, port.parse()?);
            let id = stack.connect(1, local.parse()?, 0, remote, &options)?;
            talks.insert(id, Talk { port: 1, goal: bytes.parse()?, ..Talk::default() });
        }
    }
    let mut bytes = [0; 70_000];
    loop {
        let now = |start: Instant| start.elapsed().as_nanos() as u64 + 1_000_000_000;
        let mut sink = Bridge { socket: &socket, bytes: Vec::new() };
        while let Some(event) = stack.poll_event() {
            match event {
                Event::Incoming(listener) => {
                    while let Some(id) = stack.accept(listener) {
                        let port = listeners[&listener];
                        let goal = if port == 19 { TOTAL } else { 0 };
                        talks.insert(id, Talk { port, goal, ..Talk::default() });
                    }
                }
                Event::Failed(id, failure) => {
                    println!("failed: {failure} {:?}", stack.info(id));
                    talks.remove(&id);
                    stack.close(id);
                }
                Event::UdpReadable(id) => {
                    while let Ok(Some(head)) = stack.udp_recv(id, &mut bytes) {
                        let data = &bytes[..head.length];
                        let from = Some(head.to.ip());
                        let answer = Message { from, ..Message::to(head.from, data) };
                        // What does not fit is lost, as on any path.
                        let _ = stack.udp_send(now(start), id, &answer, &mut sink);
                    }
                }
                _ => {}
            }
        }
        for (id, talk) in &mut talks {
            serve(&mut stack, *id, talk);
            if talk.port == 1 && !talk.over && talk.written == talk.goal {
                let _ = stack.shutdown(*id);
            }
        }
        if talks.values().any(|talk| talk.port == 1 && talk.over) {
            talks.retain(|_, talk| talk.port != 1);
        }
        talks.retain(|_, talk| !talk.over);
        stack.expire(now(start), &mut sink);
        stack.flush(now(start), &mut sink);
        let wait = stack.next_deadline().map_or(50_000_000, |at| at.saturating_sub(now(start)));
        let wait = wait.clamp(20_000, 50_000_000);
        socket.set_read_timeout(Some(Duration::from_nanos(wait)))?;
        let mut group = Vec::new();
        while let Ok(count) = socket.recv(&mut bytes) {
            group.push(bytes[..count].to_vec());
            if group.len() >= 64 {
                break;
            }
            socket.set_nonblocking(true)?;
        }
        socket.set_nonblocking(false)?;
        let packets: Vec<Packet<'_>> = group.iter().map(|bytes| Packet::new(bytes)).collect();
        stack.input(now(start), &packets, &mut sink);
    }
}
