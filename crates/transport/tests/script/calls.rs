//! Socket calls, settings and looks at a connection.

use std::net::SocketAddr;

use millrace_transport as transport;
use transport::options::{Keepalive, PathProbing};
use transport::{Algorithm, ConnectionId, Ecn, Event, Failure, Reason, SocketError};

use crate::line::Line;
use crate::packet::addresses;
use crate::payload::{self, From, stream};
use crate::runner::{PEER_ISS, Runner, Socket, TOLERANCE};

fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is no value"))
}

/// Seconds as ns.
fn seconds(text: &str) -> Result<u64, String> {
    parsed::<f64>(text).map(|seconds| (seconds * 1e9) as u64)
}

impl Runner {
    pub(crate) fn call(&mut self, line: &Line) -> Result<(), String> {
        let argument = line.word(1);
        match line.word(0) {
            "set" => self.set(line),
            "room" => {
                self.port.room = if argument.is_empty() { usize::MAX } else { parsed(argument)? };
                Ok(())
            }
            "segmentation" => {
                self.port.segmentation = parsed(argument)?;
                Ok(())
            }
            "listen" => {
                let any: SocketAddr =
                    if self.v6 { ([0u16; 8], 80).into() } else { ([0; 4], 80).into() };
                let backlog = line.pairs().find(|(name, _)| *name == "backlog");
                let backlog = backlog.map_or(Ok(10), |(_, value)| parsed(value))?;
                let listener = self.stack.listen(any, backlog, &self.options);
                self.listener = Some(listener.map_err(|error| error.to_string())?);
                Ok(())
            }
            "connect" => {
                let [host, peer] = addresses(self.v6);
                // The stack's choice, or always the same.
                let from = if argument == "ephemeral" { 0 } else { 40_000 };
                self.peer_port = line.number_after("to")?.map_or(80, |port| port as u16);
                let to = SocketAddr::new(peer, self.peer_port);
                let id = self.stack.connect(self.now, host, from, to, &self.options);
                self.open(id.map_err(|error| error.to_string())?, self.peer_port);
                match line.number_after("send")? {
                    Some(count) => self.send(self.connections.len() - 1, count as usize),
                    None => Ok(()),
                }
            }
            "accept" => {
                let listener = self.listener.ok_or("nobody listens")?;
                let id = self.stack.accept(listener);
                match (id, argument) {
                    (None, "nothing") => Ok(()),
                    (Some(id), "") => {
                        let info = self.stack.info(id).ok_or("the connection is gone")?;
                        self.open(id, info.ends.remote.port());
                        Ok(())
                    }
                    (id, _) => Err(format!("accepted {id:?}")),
                }
            }
            "unlisten" => {
                self.stack.close_listener(self.listener.take().ok_or("nobody listens")?);
                Ok(())
            }
            "numbers" => self.look_at_numbers(argument, line.word(2)),
            "event" => self.expect_event(argument),
            "dropped" => {
                let reason = Reason::ALL.iter().find(|reason| reason.name() == argument);
                let reason = reason.ok_or_else(|| format!("no such reason: {argument}"))?;
                let (is, wanted) = (self.stack.counters().dropped(*reason), parsed(line.word(2))?);
                if is == wanted { Ok(()) } else { Err(format!("{is} dropped for {argument}")) }
            }
            "connections" => {
                let (is, wanted) = (self.stack.connections(), parsed::<usize>(argument)?);
                if is == wanted { Ok(()) } else { Err(format!("{is} connections")) }
            }
            "send" | "recv" | "quick_ack" | "shutdown" | "close" | "abort" | "info" => {
                self.call_connection(line)
            }
            other => Err(format!("no such line: {other}")),
        }
    }

    fn call_connection(&mut self, line: &Line) -> Result<(), String> {
        let which = line.pairs().find(|(name, _)| *name == "conn");
        let which: usize = which.map_or(Ok(0), |(_, value)| parsed(value))?;
        let id = self.connections.get(which).ok_or("there is no such connection")?.id;
        let argument = line.word(1);
        match line.word(0) {
            "send" => self.send(which, parsed(argument)?),
            "recv" => self.recv(which, argument),
            "quick_ack" => {
                let on = parsed(argument)?;
                self.stack.set_quick_ack(id, on).map_err(|error| error.to_string())
            }
            "shutdown" => self.stack.shutdown(id).map_err(|error| error.to_string()),
            "close" => {
                self.stack.close(id);
                Ok(())
            }
            "abort" => {
                self.stack.abort(id);
                Ok(())
            }
            _ => {
                let info = self.stack.info(id).ok_or("the connection is gone")?;
                for (name, wanted) in line.pairs().filter(|(name, _)| *name != "conn") {
                    let is = match name {
                        "state" => format!("{:?}", info.state),
                        "cwnd" => info.window.to_string(),
                        "cwnd/mss" => (info.window / u32::from(info.mss)).to_string(),
                        "ssthresh/mss" => (info.threshold / u32::from(info.mss)).to_string(),
                        "mss" => info.mss.to_string(),
                        "flight" => info.in_flight.to_string(),
                        "srtt_ms" => (info.srtt / 1000).to_string(),
                        "rto_ms" => (info.rto / 1000).to_string(),
                        "window" => info.own_window.to_string(),
                        "peer" => info.peer_window.to_string(),
                        "recovering" => info.recovering.to_string(),
                        "resent" => info.retransmissions.to_string(),
                        "congestion" => info.congestion.to_string(),
                        "failure" => format!("{:?}", info.failure),
                        other => return Err(format!("no such look: {other}")),
                    };
                    if is != wanted {
                        return Err(format!("{name} {is} instead of {wanted}"));
                    }
                }
                Ok(())
            }
        }
    }

    fn open(&mut self, id: ConnectionId, port: u16) {
        let next = self.numbers_of(port).peer_start;
        self.connections.push(Socket { id, port, written: 0, next });
    }

    fn send(&mut self, which: usize, count: usize) -> Result<(), String> {
        let socket = &mut self.connections[which];
        let bytes = stream(From::Host, socket.port, socket.written, count);
        match self.stack.send(socket.id, &bytes) {
            Ok(taken) if taken == count => {
                socket.written += count as u32;
                Ok(())
            }
            other => Err(format!("sent: {other:?}")),
        }
    }

    fn recv(&mut self, which: usize, wanted: &str) -> Result<(), String> {
        let mut buffer = vec![0; 1_000_000];
        let Socket { id, port, next, .. } = self.connections[which];
        let failures = [
            ("reset", Failure::Reset),
            ("refused", Failure::Refused),
            ("timed-out", Failure::TimedOut),
            ("unreachable", Failure::HostUnreachable),
            ("aborted", Failure::Aborted),
            ("parameter", Failure::Parameter),
        ];
        if let Some((_, failure)) = failures.iter().find(|(name, _)| *name == wanted) {
            return self.expect_failure(id, *failure);
        }
        let got = self.stack.recv(id, &mut buffer);
        match wanted {
            "eof" if got == Ok(0) && self.stack.is_finished(id) => Ok(()),
            "nothing" if got == Ok(0) && !self.stack.is_finished(id) => Ok(()),
            count => {
                let count: usize = parsed(count)?;
                if got != Ok(count) {
                    return Err(format!("received: {got:?}"));
                }
                // What came with the handshake of a connection from here begins after its answer.
                let next = if next == 0 { PEER_ISS + 1 } else { next };
                self.connections[which].next = next.wrapping_add(count as u32);
                payload::difference(From::Peer, port, next, &buffer[..count])
            }
        }
    }

    /// The connection fails now; it did not some time ago.
    fn expect_failure(&mut self, id: ConnectionId, wanted: Failure) -> Result<(), String> {
        let at = self.now;
        loop {
            let got = self.stack.recv(id, &mut [0; 1]);
            if got == Err(SocketError::Failed(wanted)) {
                let failed = self.failures.iter().find(|(_, failed)| *failed == id);
                let (failed, _) = failed.ok_or("no event told of the failure")?;
                let early = failed.abs_diff(at) > TOLERANCE;
                let why = format!("it failed at {:.4}", self.seconds(*failed));
                return if early { Err(why) } else { Ok(()) };
            }
            match self.stack.next_deadline().filter(|next| *next <= at + TOLERANCE) {
                Some(next) => self.run_until(next)?,
                None => return Err(format!("received: {got:?}")),
            }
        }
    }

    /// Told at the line's time, not before.
    fn expect_event(&mut self, wanted: &str) -> Result<(), String> {
        let fits = |event: &Event| match event {
            Event::Incoming(_) => wanted == "incoming",
            Event::Connected(_) => wanted == "connected",
            Event::Readable(_) => wanted == "readable",
            Event::Writable(_) => wanted == "writable",
            Event::PeerClosed(_) => wanted == "peer-closed",
            Event::Urgent(_) => wanted == "urgent",
            Event::Failed(..) => wanted == "failed",
            Event::Gone(..) => wanted == "gone",
            Event::UdpReadable(_) | Event::UdpError(_) => false,
        };
        let at = self.now;
        loop {
            if let Some(place) = self.events.iter().position(|(_, event)| fits(event)) {
                let (told, _) = self.events.remove(place);
                if told.abs_diff(at) > TOLERANCE {
                    return Err(format!("'{wanted}' was told at {:.4}", self.seconds(told)));
                }
                return Ok(());
            }
            let next = self.stack.next_deadline().filter(|next| *next <= at + TOLERANCE);
            match next {
                Some(next) => self.run_until(next)?,
                None => return Err(format!("no event '{wanted}' among {:?}", self.events)),
            }
        }
    }

    fn set(&mut self, line: &Line) -> Result<(), String> {
        for (name, value) in line.pairs() {
            let options = &mut self.options;
            match name {
                "nodelay" => options.no_delay = parsed(value)?,
                "cork" => options.cork = parsed(value)?,
                "quickack" => options.quick_ack = parsed(value)?,
                "window_scale" => options.window_scale = parsed(value)?,
                "timestamps" => options.timestamps = parsed(value)?,
                "sack" => options.sack = parsed(value)?,
                "fast_open" => options.fast_open = parsed(value)?,
                "pacing" => options.pacing = parsed(value)?,
                "pacing_limit" => options.pacing_limit = parsed(value)?,
                "mtu_discovery" => options.mtu_discovery = parsed(value)?,
                "initial_window" => options.initial_window = parsed(value)?,
                "mss" => options.mss = parsed(value)?,
                "retries" => options.retries = parsed(value)?,
                "orphan_retries" => options.orphan_retries = parsed(value)?,
                "syn_retries" => options.syn_retries = parsed(value)?,
                "syn_ack_retries" => options.syn_ack_retries = parsed(value)?,
                "defer_accept" => options.defer_accept = seconds(value)?,
                "user_timeout" => options.user_timeout = seconds(value)?,
                "receive_buffer" => {
                    options.receive_buffer = parsed(value)?;
                    options.receive_buffer_limit = options.receive_buffer;
                }
                "receive_buffer_limit" => options.receive_buffer_limit = parsed(value)?,
                "transmit_buffer" => options.transmit_buffer = parsed(value)?,
                "time_wait" => options.time_wait = seconds(value)?,
                "minimum_rto" => options.minimum_rto = seconds(value)?,
                "delayed_ack" => options.delayed_ack = seconds(value)?,
                "keepalive" => {
                    let parts: Vec<&str> = value.split(',').collect();
                    let [idle, interval, count] = parts[..] else {
                        return Err("keepalive=IDLE,INTERVAL,COUNT".into());
                    };
                    let (idle, interval) = (seconds(idle)?, seconds(interval)?);
                    options.keepalive = Some(Keepalive { idle, interval, count: parsed(count)? });
                }
                "ecn" => {
                    options.ecn = match value {
                        "off" => Ecn::Off,
                        "passive" => Ecn::Passive,
                        "active" => Ecn::Active,
                        "accurate" => Ecn::Accurate,
                        _ => return Err(format!("no such use of ECN: {value}")),
                    }
                }
                "probing" => {
                    options.path_probing = match value {
                        "off" => PathProbing::Off,
                        "black-hole" => PathProbing::BlackHole,
                        "always" => PathProbing::Always,
                        _ => return Err(format!("no such probing: {value}")),
                    }
                }
                "congestion" => {
                    options.congestion = match value {
                        "cubic" => Algorithm::Cubic,
                        "newreno" => Algorithm::NewReno,
                        "bbr" => Algorithm::Bbr,
                        _ => return Err(format!("no such congestion control: {value}")),
                    }
                }
                _ => return Err(format!("no such option: {name}")),
            }
        }
        let options = self.options.clone();
        if let Some(listener) = self.listener {
            let _ = self.stack.set_listener_options(listener, options.clone());
        }
        for socket in &self.connections {
            // One that is gone needs none.
            let _ = self.stack.set_options(socket.id, options.clone());
        }
        Ok(())
    }
}
