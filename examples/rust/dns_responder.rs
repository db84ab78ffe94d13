//! DNS responder: answers queries for IPv4 addresses of the names that it knows; all else goes on its way.
//!
//! usage: dns_responder NAME=ADDRESS...

use std::collections::HashMap;
use std::net::Ipv4Addr;

use millrace::{Client, Options};

/// Where UDP and DNS begin in a frame with an IPv4 header without options.
const UDP: usize = 34;
const DNS: usize = UDP + 8;

/// The name asked for, in lower case, and where the question ends; `None` for what is no query for an address.
fn question(frame: &[u8]) -> Option<(String, usize)> {
    let header = frame.get(DNS..DNS + 12)?;
    let is_query = header[2] & 0xf8 == 0 && header[4..6] == [0, 1];
    // IPv4 without options or tag, UDP, not a fragment.
    let is_whole = frame[20] & 0x3f == 0 && frame[21] == 0;
    let is_plain = frame[12..15] == [8, 0, 0x45] && frame[23] == 17 && is_whole;
    let (mut name, mut at) = (String::new(), DNS + 12);
    while let length @ 1..64 = usize::from(*frame.get(at)?) {
        let label = frame.get(at + 1..at + 1 + length).filter(|label| !label.contains(&b'.'))?;
        name.push_str(&(String::from_utf8_lossy(label).to_ascii_lowercase() + "."));
        at += 1 + length;
    }
    // A zero ends the name; then type A, class IN.
    let wanted = frame.get(at..at + 5)? == [0, 0, 1, 0, 1];
    (is_query && is_plain && wanted).then_some((name, at + 5))
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum = words.sum::<u32>();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn answer(frame: &[u8], end: usize, address: Ipv4Addr) -> Vec<u8> {
    let mut reply = frame[..end].to_vec();
    reply[..12].rotate_left(6); // Ethernet
    reply[26..34].rotate_left(4); // IPv4
    reply[34..38].rotate_left(2); // UDP
    reply[DNS + 2] = 0x84 | frame[DNS + 2] & 1; // an answer, with authority
    reply[DNS + 3] = 0;
    reply[DNS + 6..DNS + 12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    // The name above, type A, class IN, a minute, four bytes.
    reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    reply.extend(address.octets());
    let length = reply.len() as u16;
    reply[16..18].copy_from_slice(&(length - 14).to_be_bytes());
    reply[38..40].copy_from_slice(&(length - UDP as u16).to_be_bytes());
    reply[40..42].fill(0); // no UDP checksum, as IPv4 allows
    reply[22] = 64;
    reply[24..26].fill(0);
    let sum = checksum(&reply[14..UDP]);
    reply[24..26].copy_from_slice(&sum.to_be_bytes());
    reply
}

fn respond() -> Result<(), Box<dyn std::error::Error>> {
    let known = |argument: String| {
        let (name, address) = argument.split_once('=')?;
        let name = name.trim_end_matches('.').to_ascii_lowercase() + ".";
        Some((name, address.parse::<Ipv4Addr>().ok()?))
    };
    let names: Option<HashMap<_, _>> = std::env::args().skip(1).map(known).collect();
    let names = names.filter(|names| !names.is_empty());
    let names = names.ok_or("usage: dns_responder NAME=ADDRESS...")?;
    let mut options = Options::default();
    options.filter.protocol = Some("udp".into());
    options.filter.destination_port = Some(53);
    let client = Client::attach(None, "dns responder")?;
    let mut queues = client.open(&options)?;
    let Some(channel) = queues.channels.first_mut() else { return Ok(()) };
    let mut packets = Vec::new();
    loop {
        channel.wait(None)?;
        channel.receive(&mut packets, 64)?;
        for packet in packets.drain(..) {
            let frame = channel.bytes(&packet);
            let known = question(frame).and_then(|(name, end)| Some((*names.get(&name)?, end)));
            if let Some((address, end)) = known {
                let reply = answer(frame, end, address);
                // An answer that finds no room is one that was lost: it is asked for again.
                let _ = channel.send_bytes(&reply, packet.port());
                channel.release(packet);
            } else if let Err(unsent) = channel.return_to_graph(packet) {
                channel.release(unsent.packet);
            }
        }
    }
}

fn main() {
    if let Err(error) = respond() {
        eprintln!("dns_responder: {error}");
        std::process::exit(1);
    }
}
