//! `millrace trace` and `capture`

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Follow single packets through the nodes, in words
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  millrace trace --protocol icmp --count 2\n  \
                        millrace trace --protocol tcp --transport-port 80    into and out of a served program")]
pub(crate) struct Trace {
    /// Packets to follow, 1 to 10000 [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) count: Option<u32>,
    /// Only packets that come in by this port
    #[arg(long, value_name = "NAME")]
    pub(crate) port: Option<String>,
    /// Only packets from or to this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<IpAddr>,
    /// Only packets of this protocol: tcp, udp, icmp, icmp6, arp or a number
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Only packets from or to this port of TCP or UDP
    #[arg(long, value_name = "NUMBER")]
    pub(crate) transport_port: Option<u16>,
    /// End after this many seconds, at most 86400 [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout: Option<u32>,
}

/// Write packets to a pcapng file
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  millrace capture --write all.pcapng --timeout 10\n  millrace \
                        capture --write - --protocol tcp | tshark -r -\n\nCtrl-C ends it, too."
)]
pub(crate) struct Capture {
    /// The file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) write: PathBuf,
    /// Only packets of this port
    #[arg(long, value_name = "NAME")]
    pub(crate) port: Option<String>,
    /// Only packets from or to this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<IpAddr>,
    /// Only packets of this protocol: tcp, udp, icmp, icmp6, arp or a number
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// Only packets from or to this port of TCP or UDP
    #[arg(long, value_name = "NUMBER")]
    pub(crate) transport_port: Option<u16>,
    /// Packets to write [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Bytes to keep of each packet, 64 to 65535 [default: 65535]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=65_535))]
    pub(crate) snaplen: Option<u32>,
    /// End after this many seconds [default: only by Ctrl-C or --count]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout: Option<u32>,
    /// Where packets are captured
    #[arg(long, value_enum, default_value_t = Point::Any)]
    pub(crate) direction: Point,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Point {
    /// As they arrive
    Rx,
    /// As they leave
    Tx,
    /// Where they are dropped; the reason is the packet's comment
    Drop,
    /// At all three
    Any,
}
