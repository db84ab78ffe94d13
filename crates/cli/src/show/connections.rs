//! `millrace show sessions`

use control::api::{Connection, ConnectionPage, ConnectionQuery, Transport, UdpSocket};
use control::client::{Client, with_query};
use serde_json::Value;

use crate::args::Sessions;
use crate::failure::Failure;
use crate::output::{Table, json as print_json, line, or_dash, printable};
use crate::units::{age, bit_rate, bytes, count};

/// What the API gives at most.
const MOST: u32 = 100_000;

pub(super) async fn run(client: &Client, json: bool, wanted: Sessions) -> Result<(), Failure> {
    let Sessions { tcp, udp, port, address, states, process, stack, info, limit } = wanted;
    let protocol = match (tcp, udp) {
        (true, false) => Some(Transport::Tcp),
        (false, true) => Some(Transport::Udp),
        _ => None,
    };
    let state = (!states.is_empty()).then(|| states.join(","));
    let limit = Some(limit.clamp(1, MOST));
    let query = ConnectionQuery { protocol, port, address, state, process, stack, limit };
    let path = with_query("/v1/sessions/connections", &query);
    if json {
        return print_json(&client.get::<Value>(&path).await?);
    }
    let page: ConnectionPage = client.get(&path).await?;
    let has_udp = !page.udp_sockets.is_empty();
    let only_udp = protocol == Some(Transport::Udp) || page.connections.is_empty() && has_udp;
    if !only_udp && info {
        details(&page.connections)?;
    } else if !only_udp {
        table(&page.connections)?;
    }
    if !only_udp && has_udp {
        line("")?;
    }
    if only_udp || has_udp {
        udp_table(&page.udp_sockets)?;
    }
    notes(&page).into_iter().try_for_each(line)
}

fn table(connections: &[Connection]) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "state",
        "local",
        "peer",
        "process",
        "path",
        "#age",
        "#recv-q",
        "#send-q",
        "#rtt",
        "#cwnd",
        "#window",
        "#retrans",
        "#sent",
        "#received",
    ]);
    for one in connections {
        table.row([
            one.state.name().to_owned(),
            one.local.to_string(),
            one.remote.to_string(),
            process(&one.name, one.pid),
            path(one).to_owned(),
            age(one.age),
            one.receive_queue.to_string(),
            one.send_queue.to_string(),
            if one.rtt == 0 { "-".to_owned() } else { format!("{} ms", millis(one.rtt)) },
            bytes(one.congestion_window.into()),
            bytes(one.peer_window.into()),
            one.retransmissions.to_string(),
            bytes(one.bytes_acknowledged),
            bytes(one.bytes_received),
        ]);
    }
    table.print("no connection")
}

fn udp_table(sockets: &[UdpSocket]) -> Result<(), Failure> {
    let mut table =
        Table::new(&["udp", "local", "peer", "process", "#stack", "#recv-q", "#send-q", "#drops"]);
    for one in sockets {
        table.row([
            one.state.name().to_owned(),
            one.local.to_string(),
            or_dash(one.remote),
            process(&one.name, one.pid),
            one.stack.to_string(),
            one.receive_queue.to_string(),
            one.send_queue.to_string(),
            one.dropped.to_string(),
        ]);
    }
    table.print("no UDP socket")
}

/// Each connection with all that is known of it, in the words of `ss -ti`.
fn details(connections: &[Connection]) -> Result<(), Failure> {
    if connections.is_empty() {
        return line("no connection");
    }
    for one in connections {
        line(format!(
            "{} {} -> {} {}, stack {}, {}, by {}, for {}",
            one.state.name(),
            one.local,
            one.remote,
            process(&one.name, one.pid),
            one.stack,
            origin(one),
            path(one),
            age(one.age)
        ))?;
        line(format!("    {}", words(one).join(" ")))?;
    }
    Ok(())
}

/// Who has opened it.
fn origin(one: &Connection) -> &'static str {
    match (one.outgoing, one.waits) {
        (true, _) => "opened here",
        (false, true) => "not accepted yet",
        (false, false) => "accepted",
    }
}

/// Where its packets pass.
fn path(one: &Connection) -> &'static str {
    if one.linked { "link" } else { "daemon" }
}

fn words(one: &Connection) -> Vec<String> {
    let mut words = Vec::new();
    for (is_used, name) in [(one.timestamps, "ts"), (one.sack, "sack"), (one.ecn, "ecn")] {
        if is_used {
            words.push(name.to_owned());
        }
    }
    if !one.congestion_control.is_empty() {
        words.push(printable(&one.congestion_control));
    }
    let mut say = |name: &str, value: String| words.push(format!("{name}:{value}"));
    say("recv-q", one.receive_queue.to_string());
    say("send-q", one.send_queue.to_string());
    say("wscale", format!("{},{}", one.peer_window_shift, one.own_window_shift));
    say("rto", millis(one.timeout));
    if one.backoff > 0 {
        say("backoff", one.backoff.to_string());
    }
    if one.rtt > 0 {
        say("rtt", format!("{}/{}", millis(one.rtt), millis(one.rtt_variation)));
    }
    if one.least_rtt > 0 {
        say("minrtt", millis(one.least_rtt));
    }
    say("mss", one.mss.to_string());
    say("pmtu", one.path_mtu.to_string());
    say("cwnd", one.congestion_window.to_string());
    if let Some(threshold) = one.threshold {
        say("ssthresh", threshold.to_string());
    }
    say("peer-window", one.peer_window.to_string());
    say("own-window", one.own_window.to_string());
    say("in-flight", one.in_flight.to_string());
    say("lost", one.lost.to_string());
    say("retrans", one.retransmissions.to_string());
    say("bytes_sent", one.bytes_sent.to_string());
    say("bytes_acked", one.bytes_acknowledged.to_string());
    say("bytes_received", one.bytes_received.to_string());
    say("segs_out", one.segments_sent.to_string());
    say("segs_in", one.segments_received.to_string());
    for (name, ago) in [("lastsnd", one.last_sent), ("lastrcv", one.last_received)] {
        if let Some(ago) = ago {
            say(name, ago.to_string());
        }
    }
    if one.delivery_rate > 0 {
        words.push(format!("delivery_rate {}", bit_rate(one.delivery_rate, 1.0)));
    }
    words
}

fn process(name: &str, pid: i32) -> String {
    format!("{}/{pid}", printable(name))
}

/// Milliseconds of microseconds.
fn millis(micros: u32) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// What was not shown.
fn notes(page: &ConnectionPage) -> Vec<String> {
    let mut notes = Vec::new();
    let kinds = [
        ("", page.connections.len(), page.total, page.unlisted),
        (" UDP sockets", page.udp_sockets.len(), page.udp_total, page.udp_unlisted),
    ];
    for (what, shown, total, unlisted) in kinds {
        let shown = u64::try_from(shown).unwrap_or(u64::MAX);
        if total > shown {
            let (shown, total) = (count(shown), count(total));
            notes.push(format!("{shown}{what} shown, {total} in all; use --limit for more"));
        }
        if unlisted > 0 {
            let more = count(unlisted);
            notes.push(format!("{more} more{what} for which the tables have no place"));
        }
    }
    if page.time_wait > 0 {
        notes.push(format!("TIME-WAIT: {} connections, not listed", count(page.time_wait)));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted() {
        assert_eq!(notes(&ConnectionPage::default()), [""; 0]);
        let page = ConnectionPage {
            total: 1000,
            unlisted: 2,
            time_wait: 16_384,
            udp_unlisted: 3,
            ..ConnectionPage::default()
        };
        let told = [
            "0 shown, 1,000 in all; use --limit for more",
            "2 more for which the tables have no place",
            "3 more UDP sockets for which the tables have no place",
            "TIME-WAIT: 16,384 connections, not listed",
        ];
        assert_eq!(notes(&page), told);
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!((millis(1), millis(12_345)), ("0.001".to_owned(), "12.345".to_owned()));
    }
}
