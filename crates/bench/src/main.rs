//! `millrace-bench`: measures beside DPDK's own programs and tables.
//!
//! Each command is a folder that knows its own arguments, and none of the others:
//!
//! | module | job |
//! | --- | --- |
//! | `forward` | the whole forwarder on one core, beside dpdk-testpmd |
//! | `clients` | what a client process costs everybody else |
//! | `capacity` | how much an application may do for each packet |
//! | `placement` | forwarding by the cores of its threads, by pages and memory channels |
//! | `tables` | tables beside rte_fib, rte_lpm and rte_hash |
//! | `transport` | TCP in memory, beside smoltcp |
//! | `dma` | a packet between a device and its driver: a model of PCIe and a soft device |
//! | `queue` | packet queues between two processes, beside memif and vhost-user |
//! | `serve` | NGINX and others on Millrace, beside the kernel |
//! | `session` | finding sessions, control messages, waiting, beside locks and polling |
//! | `compare` | what changed between two sets of results |
//! | `page` | a report of results, with plots (`report`) |
//! | `rfc2544` | throughput, latency, frame loss and bursts of a device between two ports |
//!
//! Beneath them:
//!
//! | module | job |
//! | --- | --- |
//! | `command_line` | what several command lines are made of |
//! | `worker` | the whole forwarder on one core, with ports in memory |
//! | `testpmd` | drives dpdk-testpmd |
//! | `l3fwd` | drives DPDK's example router |
//! | `load` | routes, addresses, packets, random numbers |
//! | `turns` | contestants alternate, in one phase of the machine |
//! | `port` | ports that have one queue each way |
//! | `client_ends` | a client's queues: the worker's end and its own |
//! | `namespace` | network namespaces, and programs in them |
//! | `process` | programs that run, and what they take |
//! | `results` | samples, outcomes, JSON, runs that are kept, tables |
//! | `archive` | results of earlier runs |
//! | `machine` | what is measured on, and its cores |
//! | `interrupt` | Ctrl-C keeps what was measured |
//! | `terminal` | lines, and a bar while one waits |
//! | `failure` | what goes wrong |
#![forbid(unsafe_code)]

mod archive;
mod capacity;
mod client_ends;
mod clients;
mod command_line;
mod compare;
mod dma;
mod failure;
mod forward;
mod interrupt;
mod l3fwd;
mod load;
mod machine;
mod namespace;
mod page;
mod placement;
mod port;
mod process;
mod queue;
mod results;
mod rfc2544;
mod serve;
mod session;
mod tables;
mod terminal;
mod testpmd;
mod transport;
mod turns;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  millrace-bench forward --quick                          a few seconds: does it work here?
  millrace-bench rfc2544 scenarios/first-look.toml --json out/rfc2544.json
  millrace-bench placement --check                        what this machine can run
  millrace-bench report out                               all results of a folder as a page
  millrace-bench compare before/ after/                   what changed, and whether it is noise
  millrace-bench compare                                  the same of the two newest runs of a command

Every run writes JSON: to the file that --json names, or to a folder that keeps the newest 200.
Ctrl-C keeps what was measured. docs/measure.md explains each command and figure.";

/// Measures Millrace beside DPDK's own programs and tables, in one run; and any device between two ports.
#[derive(Debug, Parser)]
#[command(name = "millrace-bench", version, after_help = EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Packets/s and cycles/packet of the whole forwarder on one core, beside dpdk-testpmd.
    Forward(forward::Args),
    /// Cycles/packet of the whole forwarder while a client process reads, does not read, writes garbage, or floods: what
    /// it costs everybody else.
    Clients(clients::Args),
    /// How much work an application can do per packet before packets are lost ('packet on fly'): digests or uncached
    /// reads, in the worker and in a client.
    Capacity(capacity::Args),
    /// Packets/s by the cores of the threads that receive, work and transmit, by pages and amount of memory, and by memory
    /// channels; says which of these this machine cannot run.
    Placement(placement::Args),
    /// The process of a turn of `placement`.
    #[command(hide = true)]
    PlacementStage(placement::Stage),
    /// Look-ups, changes and memory of the tables, beside rte_fib, rte_lpm and rte_hash.
    Tables(tables::Args),
    /// Cycles per TCP segment, request and connection in memory, and memory per connection, beside
    /// smoltcp and lwIP.
    Transport(transport::Args),
    /// Bytes that a packet costs between a device and its driver, over PCIe as a model and as a soft
    /// device, and cycles that it takes between two cores: descriptors written back, beside packets that
    /// describe themselves.
    Dma(dma::Args),
    /// Packets/s and latency of packet queues between two processes, and how fast a sleeper wakes, beside
    /// dpdk-testpmd over memif and over vhost-user.
    Queue(queue::Args),
    /// What it costs to find sessions, to pass control messages and to wait, beside locks and polling, which Millrace
    /// replaces.
    Session(session::Args),
    /// Throughput, latency, frame loss rate and back-to-back frames of a device between two ports by RFC 2544: of
    /// Millrace, of another data plane, or of a physical device.
    Rfc2544(rfc2544::Args),
    /// The device with known faults of `rfc2544`.
    #[command(hide = true)]
    Rfc2544Impaired(rfc2544::Impaired),
    /// NGINX, iperf3 and redis on Millrace, beside the same programs on the kernel: requests/s, latency, CPU time and
    /// memory. Needs root.
    Serve(serve::Args),
    /// What changed from results A to results B, in words, and whether the change is more than noise.
    Compare(compare::Args),
    /// Turn results into a page with tables, plots and published figures, or into tables for a README.
    Report(page::Args),
    /// The process of `serve` that holds connections.
    #[command(hide = true)]
    ServeHold(serve::Hold),
    /// The other process of `queue`: orders come by standard input.
    #[command(hide = true)]
    QueuePeer(queue::Peer),
}

fn main() -> ExitCode {
    let matches = CommandLine::command().get_matches();
    let line = CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match check_json(&matches).and_then(|()| run(line.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::complain(format_args!("{failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Before anything is measured, refuses a file that results cannot be written to. All commands call it `--json`.
fn check_json(matches: &ArgMatches) -> Result<(), Failure> {
    let command = matches.subcommand().map(|(_, own)| own);
    let path = command.and_then(|own| own.try_get_one::<PathBuf>("json").ok().flatten());
    path.map_or(Ok(()), |path| results::check_writable(path))
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Forward(args) => forward::run(&args),
        Command::Clients(args) => clients::run(&args),
        Command::Capacity(args) => capacity::run(&args),
        Command::Placement(args) => placement::run(&args),
        Command::PlacementStage(args) => placement::stage::run(&args),
        Command::Tables(args) => tables::run(&args),
        Command::Transport(args) => transport::run(&args),
        Command::Dma(args) => dma::run(&args),
        Command::Queue(args) => queue::run(&args),
        Command::Session(args) => session::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => page::run(&args),
        Command::Rfc2544(args) => rfc2544::run(&args),
        Command::Rfc2544Impaired(args) => rfc2544::impaired::run(&args),
        Command::ServeHold(args) => serve::hold::run(&args),
        Command::QueuePeer(args) => queue::peer::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_line_contradicts_itself() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_whatever_the_command() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = file.path().join("x.json");
        let check = |line: &str| {
            let words = line.split_whitespace();
            check_json(&CommandLine::command().try_get_matches_from(words).unwrap())
        };
        let mut line = CommandLine::command();
        line.build();
        let own = |command: &&clap::Command| {
            command.get_arguments().any(|argument| argument.get_id() == "json")
        };
        let commands: Vec<&str> =
            line.get_subcommands().filter(own).map(clap::Command::get_name).collect();
        assert!(commands.len() >= 12, "{commands:?}");
        for command in commands {
            let needed = match command {
                "rfc2544" => "x.toml",
                "compare" => "a b",
                _ => "",
            };
            let wrong = format!("millrace-bench {command} {needed} --json {}", below.display());
            let why = check(&wrong).unwrap_err().to_string();
            assert!(why.contains("x.json"), "{command}: {why}");
            check(&format!("millrace-bench {command} {needed}")).unwrap();
        }
        check("millrace-bench report x").unwrap();
    }
}
