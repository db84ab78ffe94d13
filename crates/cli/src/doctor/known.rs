//! What is known: the machine, and what the data plane is to do on it.

use std::path::Path;

use control::api::{Port, Version};
use control::client::{Client, ClientError};
use control::{Config, config};
use doctor::setup::{self, Hugepages};
use doctor::{CoreSet, Machine, Setup};
use serde_json::Value;

use crate::args::Doctor;
use crate::failure::Failure;
use crate::output;

/// Machine and data plane.
pub(super) struct Known {
    pub(super) machine: Machine,
    pub(super) setup: Setup,
}

/// A running daemon.
struct Running {
    config: Config,
    ports: Vec<Port>,
    process: u32,
}

/// Reads the machine. What the data plane does, the configuration that was named says, else the daemon, else its defaults.
pub(super) async fn look(client: &Client, options: &Doctor) -> Result<Known, Failure> {
    let machine = Machine::read(&options.root, None);
    let mut setup = Setup::assumed(&machine);
    if let Some(path) = &options.config {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
        let config = parse(&text, path, &machine).map_err(|e| Failure::Lines(path.clone(), e))?;
        fill(&mut setup, &config, path.display().to_string());
        return Ok(Known { machine, setup });
    }
    if options.root != Path::new("/") {
        return Ok(Known { machine, setup });
    }
    match ask(client, &machine).await {
        Ok(running) => {
            fill(&mut setup, &running.config, "the running daemon".into());
            setup.process = Some(running.process);
            for port in &mut setup.ports {
                let told = running.ports.iter().find(|told| told.name == port.name);
                port.speed = told.map(|told| told.speed).filter(|speed| *speed > 0);
            }
            Ok(Known { machine: Machine::read(&options.root, setup.process), setup })
        }
        Err(Failure::Client(ClientError::NoSocket(_) | ClientError::NobodyListens(_))) => {
            Ok(Known { machine, setup })
        }
        // The daemon is there, and this user may not ask it: what can be seen without it is told all the same.
        Err(Failure::Client(error @ ClientError::Permission(_))) => {
            setup.origin = format!("{}, because there is {error}", setup.origin);
            Ok(Known { machine, setup })
        }
        Err(failure) => Err(failure),
    }
}

async fn ask(client: &Client, machine: &Machine) -> Result<Running, Failure> {
    let config: Value = client.get("/v1/config").await?;
    let text = output::toml(config)?;
    let path = Path::new("the daemon's configuration");
    let config = parse(&text, path, machine).map_err(|e| Failure::Lines(path.to_owned(), e))?;
    let version: Version = client.get("/v1/version").await?;
    Ok(Running { config, ports: client.get("/v1/ports").await?, process: version.pid })
}

/// For all cores of the machine: those of this process may be fewer than the daemon's.
fn parse(text: &str, path: &Path, machine: &Machine) -> Result<Config, Vec<control::ConfigError>> {
    let mut cores: Vec<u16> = machine.topology.online().iter().collect();
    if cores.is_empty() {
        cores.push(0);
    }
    Config::parse_for(text, path, &cores)
}

fn fill(setup: &mut Setup, config: &Config, origin: String) {
    setup.origin = origin;
    setup.workers = config.workers.cores.iter().copied().collect();
    setup.busy = config.workers.poll == config::Poll::Busy;
    setup.buffers = config.memory.buffers.into();
    setup.buffer_size = config.memory.buffer_size.into();
    setup.hugepages = match config.memory.hugepages {
        config::Hugepages::Auto => Hugepages::Auto,
        config::Hugepages::Require => Hugepages::Require,
        config::Hugepages::Never => Hugepages::Never,
    };
    setup.ports = config.ports.iter().map(port).collect();
}

fn port(port: &config::Port) -> setup::Port {
    let polled = port.queues.iter().map(|queue| queue.core);
    let cores: CoreSet = polled.chain(port.software_rss.iter().copied()).collect();
    setup::Port {
        name: port.name.clone(),
        device: port.device.as_str().to_owned(),
        kind: port.device.kind().to_owned(),
        argument: port.device.argument().to_owned(),
        speed: None,
        rx_descriptors: port.rx_descriptors,
        tx_descriptors: port.tx_descriptors,
        cores,
    }
}
