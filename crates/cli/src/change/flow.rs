//! `millrace flow`

use std::path::Path;

use control::api::FlowSelector;
use control::client::Client;
use control::config::{Flow, FlowFile, FlowKey};

use super::{parts, told};
use crate::args;
use crate::failure::Failure;

const PATH: &str = "/v1/flows";

pub(crate) async fn run(client: &Client, json: bool, change: args::Flow) -> Result<(), Failure> {
    let changed = match change {
        args::Flow::Add(words) => client.post(PATH, &[flow(words)]).await?,
        args::Flow::Del(words) => {
            let key = FlowKey {
                source: words.source,
                destination: words.destination,
                protocol: words.protocol,
                source_port: words.sport,
                destination_port: words.dport,
            };
            client.delete(PATH, &FlowSelector { flows: vec![key], all: false }).await?
        }
        args::Flow::Clear => {
            client.delete(PATH, &FlowSelector { flows: Vec::new(), all: true }).await?
        }
        args::Flow::Load { file } => {
            parts::check(&file, open(&file)?)?;
            let mut flows = open(&file)?;
            let entries = std::iter::from_fn(|| {
                let flow = flows.next()?;
                Some(flow.map(|flow| (flows.line(), flow)))
            });
            parts::send(client, PATH, &file, entries).await?
        }
    };
    told(json, changed, "flows")
}

fn flow(words: args::FlowWords) -> Flow {
    Flow {
        source: words.key.source,
        destination: words.key.destination,
        protocol: words.key.protocol,
        source_port: words.key.sport,
        destination_port: words.key.dport,
        egress_port: words.port,
        source_mac: words.source_mac,
        destination_mac: words.destination_mac,
        new_source: words.new_source,
        new_destination: words.new_destination,
        new_source_port: words.new_sport,
        new_destination_port: words.new_dport,
    }
}

fn open(file: &Path) -> Result<FlowFile, Failure> {
    FlowFile::open(file).map_err(|error| Failure::Lines(file.to_owned(), vec![error]))
}
