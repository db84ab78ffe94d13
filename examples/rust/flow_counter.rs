//! Flow counter: counts copies of all packets by 5-tuple and shows the ten flows with the most bytes.
//!
//! usage: flow_counter [SECONDS [PORT...]]     how often the table is shown (1); names of ports (all)

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use millrace::{Client, Options, Take};

/// Protocol, source and destination with their ports.
type Flow = (u8, IpAddr, u16, IpAddr, u16);
/// Flows at most; packets of others are not counted.
const MOST: usize = 100_000;

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn address<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn flow(frame: &[u8]) -> Option<Flow> {
    let ip = frame.get(14..)?;
    let (protocol, source, destination, header): (u8, IpAddr, IpAddr, usize) =
        match word(frame, 12)? {
            0x0800 => {
                let [source, destination] = [12, 16].map(|at| address::<4>(ip, at));
                let header = usize::from(*ip.first()? & 15) * 4;
                let ends = (Ipv4Addr::from(source?), Ipv4Addr::from(destination?));
                (*ip.get(9)?, ends.0.into(), ends.1.into(), header)
            }
            0x86dd => {
                let [source, destination] = [8, 24].map(|at| address::<16>(ip, at));
                let ends = (Ipv6Addr::from(source?), Ipv6Addr::from(destination?));
                (*ip.get(6)?, ends.0.into(), ends.1.into(), 40)
            }
            _ => return None,
        };
    // A fragment behind the first has no ports.
    let later = source.is_ipv4() && word(ip, 6)? & 0x1fff != 0;
    let port = |at| if matches!(protocol, 6 | 17) && !later { word(ip, at) } else { Some(0) };
    Some((protocol, source, port(header)?, destination, port(header + 2)?))
}

fn show(flows: &HashMap<Flow, (u64, u64)>) -> std::io::Result<()> {
    let mut top: Vec<_> = flows.iter().collect();
    top.sort_unstable_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        write!(out, "\x1b[2J\x1b[H")?;
    }
    writeln!(out, "{:>12} {:>15}  flow ({} known)", "packets", "bytes", flows.len())?;
    for ((protocol, source, from, destination, to), (packets, bytes)) in top.iter().take(10) {
        let ends = format!("{source} {from} > {destination} {to}");
        writeln!(out, "{packets:>12} {bytes:>15}  {protocol} {ends}")?;
    }
    out.flush()
}

fn count() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(1.0), |text| text.parse());
    let seconds = seconds.map_err(|_| "usage: flow_counter [SECONDS [PORT...]]")?;
    let every = Duration::try_from_secs_f64(seconds)?;
    let client = Client::attach(None, "flow counter")?;
    let options = Options { take: Take::Copy, ports: arguments.collect(), ..Options::default() };
    let mut queues = client.open(&options)?;
    let Some(channel) = queues.channels.first_mut() else { return Ok(()) };
    let (mut flows, mut packets) = (HashMap::<Flow, (u64, u64)>::new(), Vec::new());
    let mut next = Instant::now() + every;
    loop {
        channel.wait(Some(next.saturating_duration_since(Instant::now())))?;
        channel.receive(&mut packets, 256)?;
        for packet in packets.drain(..) {
            if let Some(flow) = flow(channel.bytes(&packet)) {
                if flows.len() < MOST || flows.contains_key(&flow) {
                    let count = flows.entry(flow).or_default();
                    *count = (count.0 + 1, count.1 + packet.length() as u64);
                }
            }
            channel.release(packet);
        }
        if Instant::now() >= next {
            show(&flows)?;
            next += every;
        }
    }
}

fn main() {
    if let Err(error) = count() {
        eprintln!("flow_counter: {error}");
        std::process::exit(1);
    }
}
