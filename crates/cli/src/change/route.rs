//! `millrace route`

use std::path::Path;

use control::api::LookupQuery;
use control::client::Client;
use control::config::{Route, RouteFile, RouteTextError};

use super::{parts, told};
use crate::args;
use crate::failure::Failure;
use crate::show;

const PATH: &str = "/v1/routes";

pub(crate) async fn run(client: &Client, json: bool, change: args::Route) -> Result<(), Failure> {
    let changed = match change {
        args::Route::Add { words } => {
            let wrong = |error: RouteTextError| Failure::Usage(error.to_string());
            let route: Route = words.join(" ").parse().map_err(wrong)?;
            client.post(PATH, &[route]).await?
        }
        args::Route::Del { prefixes } => client.delete(PATH, &prefixes).await?,
        args::Route::Get { address } => {
            return show::lookup(client, json, LookupQuery { address }).await;
        }
        args::Route::Load { file } => {
            parts::check(&file, open(&file)?)?;
            let mut routes = open(&file)?;
            let entries = std::iter::from_fn(|| {
                let route = routes.next()?;
                Some(route.map(|route| (routes.line(), route)))
            });
            parts::send(client, PATH, &file, entries).await?
        }
    };
    told(json, changed, "routes")
}

fn open(file: &Path) -> Result<RouteFile, Failure> {
    RouteFile::open(file).map_err(|error| Failure::Lines(file.to_owned(), vec![error]))
}
