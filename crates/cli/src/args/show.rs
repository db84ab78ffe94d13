//! `millrace show`

use clap::{Args, Subcommand};
use control::Prefix;

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
    /// Routes
    Routes {
        /// 4 or 6
        #[arg(long, value_parser = family, value_name = "4|6")]
        family: Option<u8>,
        /// Only routes within this prefix
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<Prefix>,
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
    /// Client processes: who is attached, and what goes to and from them
    Clients(Watch),
    /// Processes with TCP/IP stacks: owner, leased ports, packets to and from them
    Stacks(Watch),
    /// Addresses and ports that are served, and the stacks that serve them
    Listeners,
    /// Packet functions that run in the daemon
    Functions,
    /// Workers: load and cycles per packet
    Workers(Watch),
    /// Nodes: packets and cycles per packet, by worker
    Nodes(Watch),
    /// Dropped packets by reason
    Drops {
        /// Reasons without a packet too
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

/// Refreshing.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Watch {
    /// Refresh every so many seconds, and show what happened in between
    #[arg(long = "watch", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) every: Option<f64>,
    /// End after so many refreshes
    #[arg(long, value_name = "N", requires = "every")]
    pub(crate) rounds: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("use 0.1 to 3600".to_owned()),
    }
}

fn family(text: &str) -> Result<u8, String> {
    match text {
        "4" => Ok(4),
        "6" => Ok(6),
        _ => Err("use 4 or 6".to_owned()),
    }
}
