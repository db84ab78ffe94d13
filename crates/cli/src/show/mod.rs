//! `millrace show`

mod bridge;
mod clients;
mod connections;
mod counters;
mod functions;
mod interfaces;
mod ports;
mod routes;
mod sessions;
mod summary;
mod watch;
mod workers;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use control::client::{Client, with_query};

use crate::args::Show;
use crate::failure::Failure;
use crate::output;

pub(crate) use ports::one as port;
pub(crate) use routes::lookup;

pub(crate) async fn run(client: &Client, json: bool, what: Show) -> Result<(), Failure> {
    match what {
        Show::Summary => table(client, json, "/v1/summary", summary::summary).await,
        Show::Ports(watch) => watch::run(client, json, watch, &ports::Ports).await,
        Show::Queues => table(client, json, "/v1/queues", ports::queues).await,
        Show::Cores => table(client, json, "/v1/queues", ports::cores).await,
        Show::Interfaces => table(client, json, "/v1/interfaces", interfaces::interfaces).await,
        Show::Vrfs => table(client, json, "/v1/vrfs", interfaces::vrfs).await,
        Show::Sources => table(client, json, "/v1/route-sources", routes::sources).await,
        Show::Routes { vrf, family, prefix, source, limit } => {
            let query = routes::Wanted { vrf, family, prefix, source, limit };
            routes::routes(client, json, &query).await
        }
        Show::NextHops => table(client, json, "/v1/next-hops", routes::next_hops).await,
        Show::Neighbors => table(client, json, "/v1/neighbors", interfaces::neighbors).await,
        Show::Flows { limit } => routes::flows(client, json, limit).await,
        Show::Clients(watch) => watch::run(client, json, watch, &clients::Clients).await,
        Show::Stacks(watch) => watch::run(client, json, watch, &sessions::Stacks).await,
        Show::Listeners => table(client, json, "/v1/sessions/listeners", sessions::listeners).await,
        Show::Sessions(wanted) => connections::run(client, json, wanted).await,
        Show::Functions => table(client, json, "/v1/functions", functions::functions).await,
        Show::Workers(watch) => watch::run(client, json, watch, &workers::Workers).await,
        Show::Nodes(watch) => watch::run(client, json, watch, &counters::Nodes).await,
        Show::Drops { all, watch } => {
            watch::run(client, json, watch, &counters::Drops { all }).await
        }
        Show::Bridge => table(client, json, "/v1/bridges", bridge::bridges).await,
        Show::Config => table(client, json, "/v1/config", config).await,
        Show::Version => table(client, json, "/v1/version", summary::version).await,
    }
}

/// Asks, and prints the answer's JSON or its table.
pub(crate) async fn table<T: DeserializeOwned>(
    client: &Client,
    json: bool,
    path: &str,
    print: impl FnOnce(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if json {
        output::json(&client.get::<Value>(path).await?)
    } else {
        print(client.get(path).await?)
    }
}

/// As `table`, with parameters.
async fn table_of<T: DeserializeOwned>(
    client: &Client,
    json: bool,
    (path, query): (&str, &impl Serialize),
    print: impl FnOnce(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    table(client, json, &with_query(path, query), print).await
}

/// The configuration as the TOML that it is read from.
fn config(value: Value) -> Result<(), Failure> {
    output::line(output::toml(value)?)
}
