//! `millrace`: shows and changes what a running `millraced` does, over its API.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | the command line |
//! | `show` | what the daemon knows, as tables |
//! | `change` | routes, neighbours, flows, ports, reload |
//! | `observe` | trace and capture |
//! | `output` | tables, JSON, standard output |
//! | `units` | numbers for people |
//! | `start` | `millrace run` |
//! | `exec` | `millrace exec` |
//! | `doctor` | `millrace doctor` |
//! | `failure` | what goes wrong, and the exit status |
#![forbid(unsafe_code)]

mod args;
mod change;
mod doctor;
mod exec;
mod failure;
mod observe;
mod output;
mod show;
mod start;
mod units;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Args, Command};
use control::client::Client;
use failure::Failure;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

/// Commands that need no daemon, then those that do.
fn run(args: Args) -> Result<ExitCode, Failure> {
    let done = |()| ExitCode::SUCCESS;
    match &args.command {
        Command::Run(run) => return start::exec(run, args.socket.as_deref()).map(done),
        Command::Exec(exec) => return exec::exec(exec, args.socket.as_deref()).map(done),
        Command::Completion { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "millrace", &mut text);
            return output::bytes(&text).map(done);
        }
        Command::Man { folder } => {
            let failed = |error| Failure::file(folder, error);
            std::fs::create_dir_all(folder).map_err(failed)?;
            return clap_mangen::generate_to(Args::command(), folder).map_err(failed).map(done);
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    runtime.block_on(ask(args))
}

async fn ask(args: Args) -> Result<ExitCode, Failure> {
    let timeout = args.timeout();
    let client = Client::new(args.socket()).with_timeout(timeout);
    let json = args.json;
    let done = match args.command {
        Command::Doctor(options) => return doctor::run(&client, json, options).await,
        Command::Show { what } => show::run(&client, json, what).await,
        Command::Route { change } => change::route::run(&client, json, change).await,
        Command::Neighbor { change } => change::neighbor::run(&client, json, change).await,
        Command::Flow { change } => change::flow::run(&client, json, change).await,
        Command::Function { change } => change::function::run(&client, json, change).await,
        Command::Port { change } => change::port::run(&client, json, change).await,
        Command::Reload { config } => change::reload::run(&client, json, config).await,
        Command::Save => change::save::run(&client, json).await,
        Command::Restart => change::restart::run(&client, json, timeout).await,
        Command::Trace(options) => observe::trace::run(&client, json, options).await,
        Command::Capture(options) => observe::capture::run(&client, json, options).await,
        Command::Run(_) | Command::Exec(_) | Command::Completion { .. } | Command::Man { .. } => {
            Ok(())
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}
