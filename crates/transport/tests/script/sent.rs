//! What the host sends: taken from its port, checked, and compared with what a line says.

use millrace_transport::Event;

use crate::line::Line;
use crate::packet::{Segment, flag_names, flags};
use crate::payload::{self, From};
use crate::runner::{Numbers, PEER_ISS, Runner, TOLERANCE};

impl Runner {
    /// Takes what the stack has sent and told. Every packet must be sound, and every byte of data the one
    /// that belongs at its place in the stream.
    pub(crate) fn collect(&mut self) -> Result<(), String> {
        self.stack.flush(self.now, &mut self.port);
        let now = self.now;
        while let Some(event) = self.stack.poll_event() {
            if let Event::Failed(id, _) = event {
                self.failures.push((now, id));
            }
            self.events.push((now, event));
        }
        for mut sent in std::mem::take(&mut self.port.sent) {
            sent.at = now;
            let time = self.seconds(now);
            let segment = Segment::of_packet(&sent)
                .map_err(|why| format!("no sound segment was sent at {time:.4}: {why}"))?;
            self.check_data(&segment).map_err(|why| format!("sent at {time:.4}: {why}"))?;
            self.history.push(sent);
            self.out.push_back((now, segment));
        }
        Ok(())
    }

    fn check_data(&mut self, sent: &Segment) -> Result<(), String> {
        let peer = sent.ports.1;
        let numbers = self.numbers_of(peer);
        if sent.has("SYN") {
            numbers.host_iss = Some(sent.seq);
            numbers.host_port = Some(sent.ports.0);
            if sent.has("ACK") {
                numbers.peer_start = numbers.last_syn.wrapping_add(1);
            }
        }
        let iss = numbers.host_iss;
        if let Some(cookie) = sent.cookie() {
            self.cookie = Some(cookie.to_vec());
        }
        if sent.data.is_empty() {
            return Ok(());
        }
        let iss = iss.ok_or("data without a SYN")?;
        let offset = sent.data_start().wrapping_sub(iss).wrapping_sub(1);
        payload::difference(From::Host, peer, offset, &sent.data)
    }

    pub(crate) fn seconds(&self, at: u64) -> f64 {
        (at - self.zero) as f64 / 1e9
    }

    pub(crate) fn none_left(&self) -> Result<(), String> {
        let Some((at, sent)) = self.out.front() else { return Ok(()) };
        Err(format!("sent unexpectedly at {:.4}: {}", self.seconds(*at), self.describe(sent)))
    }

    /// A segment in relative numbers.
    fn describe(&self, sent: &Segment) -> String {
        let numbers = self.numbers.get(&sent.ports.1).cloned().unwrap_or_default();
        let seq = sent.seq.wrapping_sub(numbers.host_iss.unwrap_or(0)) as i32;
        let ack = sent.ack.wrapping_sub(PEER_ISS) as i32;
        let names = flag_names(sent.flags, sent.ae);
        let (window, length) = (sent.window, sent.data.len());
        let options = crate::options::words(sent, PEER_ISS).join(", ");
        format!(
            "{names} seq {seq} ack {ack} len {length} win {window} ecn {} <{options}>",
            sent.ecn
        )
    }

    pub(crate) fn expect(&mut self, line: &Line, at: u64) -> Result<(), String> {
        while self.out.is_empty() && self.now < at + TOLERANCE {
            let next = self.stack.next_deadline().unwrap_or(u64::MAX).min(at + TOLERANCE);
            self.run_until(next)?;
        }
        let Some((sent_at, sent)) = self.out.pop_front() else {
            return Err("nothing was sent".into());
        };
        if sent_at.abs_diff(at) > TOLERANCE {
            let text = self.describe(&sent);
            return Err(format!("sent at {:.4}: {text}", self.seconds(sent_at)));
        }
        let differs = self.compare(line, &sent)?;
        if let Some((value, _)) = sent.timestamps() {
            let numbers = self.numbers_of(sent.ports.1);
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
        let numbers: Numbers = self.numbers_of(sent.ports.1).clone();
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
            ("len", sent.data.len() as i64),
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
        if !line.has("len") && !line.has("any-length") && !sent.data.is_empty() {
            return Ok(Some(format!("{} bytes of data instead of none", sent.data.len())));
        }
        let Some(wanted) = &line.options else { return Ok(None) };
        crate::options::compare(wanted, sent, &numbers, PEER_ISS)
    }
}
