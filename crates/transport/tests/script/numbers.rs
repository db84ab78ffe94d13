//! What the host's SYNs give away: initial sequence numbers and ports.

use crate::packet::Segment;
use crate::runner::Runner;

/// Steps of the clock behind initial sequence numbers in a second (RFC 9293 3.4.1).
const STEPS: f64 = 250_000.0;
/// Two numbers nearer than this may be counted from one to the next.
const NEAR: u32 = 1_000_000;
/// Ports that are chosen: the configuration's default.
const DYNAMIC: std::ops::RangeInclusive<u16> = 32_768..=60_999;

impl Runner {
    /// `grew SECONDS`: the last two SYNs between the same ends are so far apart (RFC 6528 3); `unrelated`:
    /// those between different ends say nothing of each other; `ports`: nor do the ports (RFC 6056 3.1).
    pub(crate) fn look_at_numbers(&self, what: &str, argument: &str) -> Result<(), String> {
        let all = self.history.iter().filter_map(|sent| Segment::of_packet(sent).ok());
        let syns: Vec<Segment> = all.filter(|sent| sent.flags & 2 != 0).collect();
        let [.., before, last] = &syns[..] else { return Err("fewer than two SYNs".into()) };
        let apart = last.seq.wrapping_sub(before.seq);
        let same = last.ports == before.ports;
        match what {
            "grew" if same => {
                let wanted: f64 = argument.parse().map_err(|_| "no number of seconds")?;
                let is = f64::from(apart) / STEPS;
                let fits = (is - wanted).abs() < 0.01;
                if fits { Ok(()) } else { Err(format!("{is} seconds' worth")) }
            }
            "unrelated" if !same => {
                let near = apart.min(apart.wrapping_neg()) < NEAR;
                if near { Err(format!("{apart} apart")) } else { Ok(()) }
            }
            "ports" => {
                let ports: Vec<u16> = syns.iter().map(|sent| sent.ports.0).collect();
                let next = ports.windows(2).any(|pair| pair[0].abs_diff(pair[1]) < 2);
                let outside = ports.iter().any(|port| !DYNAMIC.contains(port));
                if next || outside { Err(format!("ports {ports:?}")) } else { Ok(()) }
            }
            other => Err(format!("no such look at these SYNs: {other}")),
        }
    }
}
