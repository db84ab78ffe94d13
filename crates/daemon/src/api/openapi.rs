//! `GET /openapi.json`: what the API takes and gives.

use axum::Json;
use utoipa::OpenApi;

use super::{
    capture, clients, flows, functions, interfaces, keep, metrics, neighbors, ports, route_sources,
    routes, sessions, summary, trace, vrfs, workers,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Millrace",
        description = "The data plane's API on its Unix socket, for root and the members of `daemon.group`. They may change \
                       what is forwarded and see every packet, but neither read nor write files as root: what they name is \
                       opened below the configuration's folder and `daemon.folders` only."
    ),
    paths(
        summary::version,
        summary::summary,
        summary::config,
        summary::reload,
        keep::save,
        keep::restart,
        ports::list,
        ports::change,
        ports::queues,
        interfaces::list,
        interfaces::bridges,
        routes::list,
        routes::lookup,
        routes::add,
        routes::remove,
        routes::next_hops,
        route_sources::list,
        route_sources::withdraw,
        vrfs::list,
        neighbors::list,
        neighbors::add,
        neighbors::remove,
        flows::list,
        flows::add,
        flows::remove,
        clients::list,
        sessions::stacks,
        sessions::listeners,
        sessions::connections,
        functions::list,
        functions::add,
        functions::remove,
        workers::list,
        workers::nodes,
        workers::drops,
        trace::stream,
        capture::stream,
        metrics::get,
    )
)]
struct Document;

/// The document.
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_path_is_described_and_bodies_have_schemas() {
        let document = serde_json::to_value(Document::openapi()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.len(), 31);
        assert!(paths["/v1/routes"]["post"]["requestBody"].is_object());
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in ["Route", "Port", "ErrorBody", "TraceStep", "Reloaded"] {
            assert!(schemas.contains_key(name), "{name}");
        }
        let mut references = Vec::new();
        gather(&document, &mut references);
        assert!(references.len() > 40, "{}", references.len());
        for reference in &references {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.contains_key(name), "{name} is not described");
        }
    }

    /// Every `$ref` of a document.
    fn gather(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| match value {
                Value::String(name) if key == "$ref" => references.push(name.clone()),
                _ => gather(value, references),
            }),
            Value::Array(list) => list.iter().for_each(|value| gather(value, references)),
            _ => {}
        }
    }
}
