//! `millrace show`

use std::net::IpAddr;
use std::str::FromStr;

use clap::{Args, Subcommand};
use control::Prefix;
use control::config::Source;

#[derive(Debug, Subcommand)]
pub(crate) enum Show {
    /// The daemon as a whole: what is up, how full the tables are, packets so far
    Summary,
    /// Ports: state, packets and bytes
    #[command(after_help = "Example:\n  millrace show ports --watch 1    rates, every second")]
    Ports(Watch),
    /// Receive queues and the cores that poll them
    Queues,
    /// Cores, and the receive queues that each one polls
    Cores,
    /// Interfaces: ports, VLAN sub-interfaces, bridges
    Interfaces,
    /// VRFs: their interfaces, and how many routes were added to them
    Vrfs,
    /// Sources of routes, and how many routes each has
    Sources,
    /// Routes of a VRF with distance and metric; 'parked': waits for its interface or VRF, 'standby': another is followed
    #[command(
        after_help = "Examples:\n  millrace show routes --vrf red\n  millrace show routes --source bgp"
    )]
    Routes {
        /// The VRF [default: the default one]
        #[arg(long, value_name = "NAME")]
        vrf: Option<String>,
        /// 4 or 6
        #[arg(long, value_parser = family, value_name = "4|6")]
        family: Option<u8>,
        /// Only routes within this prefix
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<Prefix>,
        /// Only routes from this source, as in static, connected or bgp
        #[arg(long, value_name = "NAME")]
        source: Option<Source>,
        /// Routes to show at most
        #[arg(long, default_value_t = 1_000, value_name = "N")]
        limit: u32,
    },
    /// Next hops as the data path uses them
    NextHops,
    /// Neighbours: ARP and neighbour discovery
    Neighbors,
    /// Exact-match flows
    Flows {
        /// Flows to show at most
        #[arg(long, default_value_t = 1_000, value_name = "N")]
        limit: u32,
    },
    /// Client processes: who is attached, and packets to and from them
    Clients(Watch),
    /// Processes with TCP/IP stacks: owner, leased ports, packets to and from them
    Stacks(Watch),
    /// Addresses and ports that are served, and the stacks that serve them
    Listeners,
    /// Connections and UDP sockets of stacks: state, ends, process, queues, round-trip time, windows, retransmissions, drops
    #[command(after_help = "Examples:\n  \
        millrace show sessions --port 80 --state established\n  \
        millrace show sessions --udp --process dnsmasq\n  \
        millrace show sessions --process nginx --info    what `ss -ti` shows of the kernel's")]
    Sessions(Sessions),
    /// Packet functions that run in the daemon
    Functions,
    /// Workers: load and cycles per packet
    Workers(Watch),
    /// Nodes: packets and cycles per packet, by worker
    Nodes(Watch),
    /// Dropped packets by reason
    Drops {
        /// Include reasons without packets
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        watch: Watch,
    },
    /// Bridges: members and learned addresses
    Bridge,
    /// The configuration that is in force
    Config,
    /// Versions of this program and of the daemon
    Version,
}

/// Which connections and UDP sockets, and how.
#[derive(Debug, Args)]
pub(crate) struct Sessions {
    /// TCP connections; alone, no UDP sockets
    #[arg(long)]
    pub(crate) tcp: bool,
    /// UDP sockets; alone, no TCP connections
    #[arg(long)]
    pub(crate) udp: bool,
    /// Only those with this port at either end
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Only those with this address, or one of this prefix, at either end
    #[arg(long, value_name = "ADDRESS|PREFIX", value_parser = network)]
    pub(crate) address: Option<Prefix>,
    /// Only those in these states: established, syn-sent, syn-received, fin-wait-1, fin-wait-2, close-wait, closing, last-ack,
    /// time-wait, closed; UDP sockets are established or unconnected
    #[arg(long = "state", value_name = "STATE,...", value_delimiter = ',')]
    pub(crate) states: Vec<String>,
    /// Only those of processes with this name or id
    #[arg(long, value_name = "NAME|PID")]
    pub(crate) process: Option<String>,
    /// Only those of this stack
    #[arg(long, value_name = "NUMBER")]
    pub(crate) stack: Option<u32>,
    /// All that is known of each connection, in the words of `ss -ti`: times in ms, windows in bytes
    #[arg(long, short)]
    pub(crate) info: bool,
    /// Connections to show at most, and UDP sockets
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub(crate) limit: u32,
}

/// Refreshing.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Watch {
    /// Refresh every SECONDS (0.1 to 3600), and show rates since the last refresh
    #[arg(long = "watch", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) every: Option<f64>,
    /// End after N refreshes
    #[arg(long, value_name = "N", requires = "every")]
    pub(crate) rounds: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("use 0.1 to 3600".to_owned()),
    }
}

/// A prefix, or an address as the prefix that holds it alone.
fn network(text: &str) -> Result<Prefix, String> {
    match text.parse::<IpAddr>() {
        Ok(address) => Ok(Prefix::of(address, if address.is_ipv4() { 32 } else { 128 })),
        Err(_) => text.parse().map_err(|error: <Prefix as FromStr>::Err| error.to_string()),
    }
}

fn family(text: &str) -> Result<u8, String> {
    match text {
        "4" => Ok(4),
        "6" => Ok(6),
        _ => Err("use 4 or 6".to_owned()),
    }
}
