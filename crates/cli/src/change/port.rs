//! `millrace port`

use serde_json::Value;

use control::api::{Port, PortChange};
use control::client::{Client, segment};

use crate::args::{self, OnOff, Setting};
use crate::failure::Failure;
use crate::{output, show};

pub(crate) async fn run(client: &Client, json: bool, change: args::Port) -> Result<(), Failure> {
    match change {
        args::Port::Show { name } => some(client, json, name.as_deref()).await,
        args::Port::Set { name, setting } => {
            let mut change = PortChange::default();
            match setting {
                Setting::Up => change.up = Some(true),
                Setting::Down => change.up = Some(false),
                Setting::Mtu { bytes } => change.mtu = Some(bytes),
                Setting::Promiscuous { state } => change.promiscuous = Some(state == OnOff::On),
            }
            let path = format!("/v1/ports/{}", segment(&name));
            if json {
                return output::json(&client.patch::<_, Value>(&path, &change).await?);
            }
            show::port(&client.patch::<_, Port>(&path, &change).await?)
        }
    }
}

async fn some(client: &Client, json: bool, name: Option<&str>) -> Result<(), Failure> {
    let mut ports: Vec<Port> = client.get("/v1/ports").await?;
    if let Some(name) = name {
        let known: Vec<_> = ports.iter().map(|port| port.name.clone()).collect();
        ports.retain(|port| port.name == name);
        if ports.is_empty() {
            let known = known.join(", ");
            return Err(Failure::Usage(format!("'{name}' is no port; use one of {known}")));
        }
    }
    if json {
        return output::json(&ports);
    }
    for (index, port) in ports.iter().enumerate() {
        if index > 0 {
            output::line("")?;
        }
        show::port(port)?;
    }
    Ok(())
}
