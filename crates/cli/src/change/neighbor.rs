//! `millrace neighbor`

use control::api::NeighborSelector;
use control::client::Client;
use control::config::StaticNeighbor;

use super::told;
use crate::args::Neighbor;
use crate::failure::Failure;

const PATH: &str = "/v1/neighbors";

pub(crate) async fn run(client: &Client, json: bool, change: Neighbor) -> Result<(), Failure> {
    let changed = match change {
        Neighbor::Add { interface, address, mac } => {
            client.post(PATH, &[StaticNeighbor { interface, address, mac }]).await?
        }
        Neighbor::Del { interface, address } => {
            let selector = NeighborSelector { interface: Some(interface), address: Some(address) };
            client.delete(PATH, &selector).await?
        }
        Neighbor::Flush { interface } => {
            client.delete(PATH, &NeighborSelector { interface, address: None }).await?
        }
    };
    told(json, changed, "neighbours")
}
