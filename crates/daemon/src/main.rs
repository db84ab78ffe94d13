//! The data plane: one control thread and one worker thread per configured core.
//!
//! | module | job |
//! | --- | --- |
//! | `args`, `log` | the command line, the log |
//! | `service` | the daemon among the system's services: sockets, service manager, watchdog |
//! | `run` | from start to stop |
//! | `clock` | the clock that stacks and restarts go by |
//! | `workers` | worker threads: commands, queues, packets to them |
//! | `ports` | ports, and the thread that opens and closes devices |
//! | `routing` | routes, next hops, neighbours, numbers of interfaces |
//! | `flows`, `bridges` | exact-match flows; what bridges have learned |
//! | `functions`, `kernel_sides` | packet functions; the kernel's sides of ports |
//! | `processes` | the attach and sessions sockets: the accepting thread, a thread for each user |
//! | `clients` | client processes |
//! | `sessions` | processes with TCP/IP stacks, and the daemon's own stack |
//! | `daemon` | these parts put together |
//! | `keep` | what a restart must not lose |
//! | `restart` | the program run anew, in place or by a process that takes over |
//! | `reload` | another configuration in place of the one in force |
//! | `origin` | where the configuration came from, and from where another may come |
//! | `api` | HTTP on the socket, one file per resource |
//! | `settings` | from the configuration to limits, times and switches |
#![forbid(unsafe_code)]

mod api;
mod args;
mod bridges;
mod clients;
mod clock;
mod daemon;
mod flows;
mod functions;
mod keep;
mod kernel_sides;
mod log;
mod origin;
mod ports;
mod processes;
mod reload;
mod restart;
mod routing;
mod run;
mod service;
mod sessions;
mod settings;
#[cfg(test)]
mod testing;
mod workers;

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use args::{Args, exit};
use clap::Parser;
use control::config::Reach;

fn main() -> ExitCode {
    let args = Args::parse();
    let config = match reload::load(&args.config, Reach::Anywhere) {
        Ok(config) => config,
        Err(errors) => {
            for error in &errors {
                // A reader may have seen enough of them.
                let _ = writeln!(stderr(), "{error}");
            }
            return ExitCode::from(exit::CONFIGURATION);
        }
    };
    if args.check {
        let _ = writeln!(stdout(), "{}: the configuration is valid", args.config.display());
        return ExitCode::SUCCESS;
    }
    log::start(args.log.as_deref().unwrap_or(log::filter(config.daemon.log)));
    match run::run(&args, config) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(again)) => {
            let error = again.run();
            tracing::error!("the program cannot be run anew: {error}");
            ExitCode::from(exit::FAILURE)
        }
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
