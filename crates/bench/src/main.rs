//! `millrace-bench`: measures beside DPDK's own programs and tables.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command line |
//! | `forward` | the whole forwarder on one core, beside dpdk-testpmd |
//! | `clients` | what a client process costs everybody else |
//! | `tables` | tables beside rte_fib, rte_lpm and rte_hash |
//! | `transport` | TCP in memory, beside smoltcp |
//! | `dma` | a packet between a device and its driver: a model of PCIe and a soft device |
//! | `queue` | packet queues between two processes, beside memif and vhost-user |
//! | `serve` | NGINX and others on Millrace, beside the kernel |
//! | `session` | finding sessions, control messages, waiting, beside locks and polling |
//! | `testpmd` | drives dpdk-testpmd |
//! | `prefixes`, `random` | the routes and keys that are measured with |
//! | `statistics`, `report` | samples, results, JSON |
//! | `environment`, `probe` | the machine, and how far apart its cores are |
//! | `progress` | a bar on the terminal |
//! | `output` | lines on standard output |
//! | `failure` | what goes wrong |
#![forbid(unsafe_code)]

mod args;
mod clients;
mod dma;
mod environment;
mod failure;
mod forward;
mod output;
mod prefixes;
mod probe;
mod progress;
mod queue;
mod random;
mod report;
mod serve;
mod session;
mod statistics;
mod tables;
mod testpmd;
mod transport;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Forward(args) => forward::run(&args),
        Command::Clients(args) => clients::run(&args),
        Command::Tables(args) => tables::run(&args),
        Command::Transport(args) => transport::run(&args),
        Command::Dma(args) => dma::run(&args),
        Command::Queue(args) => queue::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::ServeHold { address } => serve::hold::run(address),
        Command::Session(args) => session::run(&args),
        Command::QueuePeer { core, attach } => queue::peer::run(core, &attach),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(format_args!("{failure}"));
            ExitCode::FAILURE
        }
    }
}
