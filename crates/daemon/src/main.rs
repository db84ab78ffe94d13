//! The data plane: one control thread and one worker thread per configured core.
//!
//! | file | job |
//! | --- | --- |
//! | `args`, `log`, `notify` | the command line, the log, the service manager |
//! | `socket` | the API socket: one daemon holds it |
//! | `run` | from start to stop |
//! | `daemon` | all that the control thread owns |
//! | `pools`, `ports`, `workers` | buffers, ports and worker threads |
//! | `ids`, `topology`, `routes` | from the configuration to what the nodes read |
//! | `slow_path` | packets that workers hand to the control thread, and timers |
//! | `load`, `difference`, `reload` | a configuration, checked; the difference of two, found and applied |
//! | `settings` | from the configuration to limits, times and switches |
//! | `files` | routes and flows from files |
//! | `health`, `port_change` | ports that go away and come back, or are changed on demand |
//! | `neighbors`, `flows`, `counters` | what the API asks for, by name |
//! | `api` | HTTP on the socket, one file per resource |
#![forbid(unsafe_code)]

mod api;
mod args;
mod clients;
mod counters;
mod daemon;
mod difference;
mod files;
mod flows;
mod functions;
mod health;
mod ids;
mod kernel;
mod load;
mod log;
mod neighbors;
mod notify;
mod pools;
mod port_change;
mod ports;
mod reload;
mod routes;
mod run;
mod settings;
mod slow_path;
mod socket;
#[cfg(test)]
mod testing;
mod topology;
mod workers;

use std::process::ExitCode;

use args::{Args, exit};
use clap::Parser;

fn main() -> ExitCode {
    let args = Args::parse();
    let config = match load::load(&args.config) {
        Ok(config) => config,
        Err(errors) => {
            for error in &errors {
                eprintln!("{error}");
            }
            return ExitCode::from(exit::CONFIGURATION);
        }
    };
    if args.check {
        println!("{}: the configuration is valid", args.config.display());
        return ExitCode::SUCCESS;
    }
    log::start(args.log.as_deref().unwrap_or(log::filter(config.daemon.log)));
    match run::run(&args, config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
