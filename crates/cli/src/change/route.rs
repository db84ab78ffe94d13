//! `millrace route`

use std::path::Path;

use control::api::{LookupQuery, RouteScope, SourceScope};
use control::client::{Client, segment, with_query};
use control::config::{Route, RouteFile, RouteTextError};

use super::{parts, told};
use crate::args;
use crate::failure::Failure;
use crate::show;

const PATH: &str = "/v1/routes";

pub(crate) async fn run(client: &Client, json: bool, change: args::Route) -> Result<(), Failure> {
    let changed = match change {
        args::Route::Add { words, scope, standing, metric } => {
            let wrong = |error: RouteTextError| Failure::Usage(error.to_string());
            let mut route: Route = words.join(" ").parse().map_err(wrong)?;
            if scope.vrf.is_some() {
                route.vrf = scope.vrf;
            }
            if let Some(source) = standing.source {
                // A distance that the words say stays.
                if route.distance == route.source.distance() {
                    route.distance = source.distance();
                }
                route.source = source;
            }
            route.distance = standing.distance.unwrap_or(route.distance);
            route.metric = metric.unwrap_or(route.metric);
            client.post(PATH, &[route]).await?
        }
        args::Route::Del { prefixes, scope: args::Scope { vrf }, standing } => {
            let args::Standing { source, distance } = standing;
            let scope = RouteScope { vrf, source, distance };
            client.delete(&with_query(PATH, &scope), &prefixes).await?
        }
        args::Route::Withdraw { source, vrf } => {
            let path = format!("/v1/route-sources/{}", segment(source.name()));
            client.delete(&with_query(&path, &SourceScope { vrf }), &()).await?
        }
        args::Route::Get { address, scope: args::Scope { vrf } } => {
            return show::lookup(client, json, LookupQuery { vrf, address }).await;
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
