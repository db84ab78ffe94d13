//! `millrace route`, `neighbor`, `flow`, `function` and `port`

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use control::config::Source;
use control::{MacAddr, Prefix};

const ROUTES: &str = "Examples:
  millrace route add 0.0.0.0/0 via 192.0.2.2
  millrace route add 10.0.0.0/8 via 192.0.2.2,192.0.2.3
  millrace route add 10.0.0.0/8 via 192.0.2.2 weight 3 192.0.2.3
  millrace route add 2001:db8:1::/48 via fe80::1 dev left
  millrace route add 203.0.113.0/24 dev right
  millrace route add 192.168.0.0/16 blackhole
  millrace route add 10.0.0.0/8 via 192.0.2.2 --vrf red
  millrace route add 10.9.0.0/16 lookup blue --vrf red    look packets up in another VRF
  millrace route add 0.0.0.0/0 via 198.51.100.9 --distance 200    take over when the other one is gone
  millrace route add 10.8.0.0/16 via 192.0.2.3 --source ospf --metric 20

Of the usable routes to a prefix, packets follow one with the least distance, and among those the one with the least metric.
A prefix has one route from each source at each distance. Usual distances: connected 0, static 1, bgp 20, ospf 110,
isis 115, rip 120, ibgp 200; 150 for names that are not known.";

const FILE: &str = "A line has what follows 'route add', with vrf, source, distance and metric as words at its end; \
'#' starts a comment. The whole file is read before anything changes; then it is sent in parts of 10,000 lines, each \
taken whole or not at all.";

#[derive(Debug, Subcommand)]
pub(crate) enum Route {
    /// Add or replace a route
    #[command(after_help = ROUTES)]
    Add {
        /// PREFIX via ADDRESS[,ADDRESS...] | PREFIX dev NAME | PREFIX lookup VRF |
        /// PREFIX blackhole|unreachable|local
        #[arg(required = true, num_args = 2.., value_name = "ROUTE")]
        words: Vec<String>,
        #[command(flatten)]
        scope: Scope,
        #[command(flatten)]
        standing: Standing,
        /// Decides among routes with the same distance: the least is followed [default: 0]
        #[arg(long, value_name = "N")]
        metric: Option<u32>,
    },
    /// Remove routes
    Del {
        /// Their prefixes
        #[arg(required = true)]
        prefixes: Vec<Prefix>,
        #[command(flatten)]
        scope: Scope,
        #[command(flatten)]
        standing: Standing,
    },
    /// Remove all routes of a source, for instance when a routing daemon has died
    #[command(after_help = "Example:\n  millrace route withdraw bgp")]
    Withdraw {
        /// The source
        source: Source,
        /// Only its routes in this VRF [default: in all]
        #[arg(long, value_name = "NAME")]
        vrf: Option<String>,
    },
    /// Look up the route and the next hops that packets to an address take
    Get {
        /// The destination address
        address: IpAddr,
        #[command(flatten)]
        scope: Scope,
    },
    /// Add or replace the routes of a file
    #[command(after_help = FILE)]
    Load {
        /// The file
        file: PathBuf,
    },
}

/// Which VRF.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// VRF of the routes [default: the default one]
    #[arg(long, value_name = "NAME")]
    pub(crate) vrf: Option<String>,
}

/// Source and administrative distance of routes.
#[derive(Debug, Args)]
pub(crate) struct Standing {
    /// Source of the routes: static, or the name of a protocol [default: static]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<Source>,
    /// Administrative distance, 0 to 254; to add [default: the usual one of the source], to remove [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) distance: Option<u8>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Neighbor {
    /// Add or replace a static neighbour
    #[command(after_help = "Example:\n  millrace neighbor add left 192.0.2.9 02:00:00:00:00:09")]
    Add {
        /// Interface that it is behind
        interface: String,
        /// Its address
        address: IpAddr,
        /// Its MAC address
        mac: MacAddr,
    },
    /// Remove a neighbour
    Del {
        /// Interface that it is behind
        interface: String,
        /// Its address
        address: IpAddr,
    },
    /// Remove all neighbours, or those of an interface
    Flush {
        /// The interface
        interface: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Flow {
    /// Add or replace a flow
    #[command(
        after_help = "Example:\n  millrace flow add 192.0.2.1 198.51.100.1 tcp --sport 1000 \
                            --dport 80 --port right --destination-mac 02:00:00:00:00:99"
    )]
    Add(FlowWords),
    /// Remove a flow
    Del(KeyWords),
    /// Add or replace the flows of a CSV file
    #[command(after_help = "The first line names the columns: source,destination,protocol,\
source_port,destination_port,egress_port,source_mac,destination_mac,new_source,new_destination,\
new_source_port,new_destination_port. The whole file is read before anything changes; then it is \
sent in parts of 10,000 lines, each taken whole or not at all.")]
    Load {
        /// The file
        file: PathBuf,
    },
    /// Remove every flow
    Clear,
}

/// Which packets.
#[derive(Debug, Args)]
pub(crate) struct KeyWords {
    /// Source address
    pub(crate) source: IpAddr,
    /// Destination address
    pub(crate) destination: IpAddr,
    /// tcp, udp, sctp, icmp, ipv6-icmp, or a number
    #[arg(value_parser = protocol)]
    pub(crate) protocol: u8,
    /// Source port
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub(crate) sport: u16,
    /// Destination port
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub(crate) dport: u16,
}

/// Which packets, and what becomes of them.
#[derive(Debug, Args)]
pub(crate) struct FlowWords {
    #[command(flatten)]
    pub(crate) key: KeyWords,
    /// Egress port
    #[arg(long, value_name = "NAME")]
    pub(crate) port: String,
    /// New source MAC [default: the port's own]
    #[arg(long, value_name = "MAC")]
    pub(crate) source_mac: Option<MacAddr>,
    /// New destination MAC [default: the port's next-hop-mac]
    #[arg(long, value_name = "MAC")]
    pub(crate) destination_mac: Option<MacAddr>,
    /// New source address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) new_source: Option<IpAddr>,
    /// New destination address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) new_destination: Option<IpAddr>,
    /// New source port
    #[arg(long, value_name = "PORT")]
    pub(crate) new_sport: Option<u16>,
    /// New destination port
    #[arg(long, value_name = "PORT")]
    pub(crate) new_dport: Option<u16>,
}

fn protocol(text: &str) -> Result<u8, String> {
    control::config::protocol_number(text)
        .ok_or_else(|| "use tcp, udp, sctp, icmp, ipv6-icmp or 0 to 255".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Port {
    /// Show all ports, or one
    Show {
        /// Its name
        name: Option<String>,
    },
    /// Change a port until a reload changes the same setting, or until the next start
    #[command(
        after_help = "Examples:\n  millrace port set left down\n  millrace port set left mtu \
                            9000\n  millrace port set left promiscuous on"
    )]
    Set {
        /// Its name
        name: String,
        #[command(subcommand)]
        setting: Setting,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Setting {
    /// Forward again
    Up,
    /// Forward nothing
    Down,
    /// Largest IP packet
    Mtu {
        /// Bytes, 68 to 9216
        #[arg(value_parser = clap::value_parser!(u16).range(68..=9_216))]
        bytes: u16,
    },
    /// Take frames for any MAC address
    Promiscuous {
        /// on or off
        state: OnOff,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

const FUNCTION: &str = "Examples:
  millrace function add liblimit.so --argument 200
  millrace function add libsample.so --core 2 --port left

It runs in the daemon and is trusted as the daemon is; docs/build.md says how to write one.";

#[derive(Debug, Subcommand)]
pub(crate) enum Function {
    /// Add a function: it sees received packets before the graph does
    #[command(after_help = FUNCTION)]
    Add {
        /// Name of the shared object in functions.folder
        file: String,
        /// Text that the function gets when it is created
        #[arg(long, default_value = "", value_name = "TEXT")]
        argument: String,
        /// Only on this core's worker [default: on all]
        #[arg(long, value_name = "CORE")]
        core: Option<u16>,
        /// Only packets of this port [default: of all]
        #[arg(long, value_name = "NAME")]
        port: Option<String>,
    },
    /// Remove a function
    Del {
        /// Its number in millrace show functions
        id: u32,
    },
}
