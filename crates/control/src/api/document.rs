//! The OpenAPI document: every endpoint with its parameters, body and answer.

use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ArrayBuilder, ComponentsBuilder, ObjectBuilder, Type};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
    ResponseBuilder, Schema,
};
use utoipa::{IntoParams, ToSchema};

use super::{
    Bridge, Capture, Changed, Drop, ErrorBody, FlowPage, FlowQuery, FlowSelector, Interface,
    LookupQuery, Neighbor, NeighborSelector, NextHop, Node, Port, PortChange, Queue, Reload,
    Reloaded, RouteLookup, RoutePage, RouteQuery, Summary, Trace, TraceStep, Version, Worker,
};
use crate::config::{Flow, Route, StaticNeighbor};
use crate::net::Prefix;

type Shape = RefOr<Schema>;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const LINES: &str = "application/x-ndjson";
const PCAPNG: &str = "application/octet-stream";

/// The API of a daemon of that version.
#[must_use]
pub fn document(version: &str) -> OpenApi {
    let mut license = LicenseBuilder::new().name("Apache-2.0").build();
    license.identifier = Some("Apache-2.0".to_owned());
    let info = InfoBuilder::new()
        .title("Millrace")
        .description(Some("What millraced knows and does: HTTP and JSON on a Unix socket."))
        .version(version)
        .license(Some(license));
    let endpoints = shows().into_iter().chain(changes()).chain(streams());
    let paths = endpoints.fold(PathsBuilder::new(), |paths, endpoint| {
        let (path, item) = endpoint.item();
        paths.path(path, item)
    });
    OpenApiBuilder::new().info(info).paths(paths).components(Some(schemas().build())).build()
}

/// One method of one path.
struct Endpoint {
    method: HttpMethod,
    path: &'static str,
    about: &'static str,
    parameters: Vec<Parameter>,
    body: Option<Shape>,
    answer: (&'static str, Shape),
}

impl Endpoint {
    fn item(self) -> (&'static str, PathItem) {
        let (kind, shape) = self.answer;
        let done = ResponseBuilder::new()
            .description("Done")
            .content(kind, ContentBuilder::new().schema(Some(shape)).build());
        let refused = ResponseBuilder::new()
            .description("Refused: what is wrong and what would be right")
            .content(JSON, ContentBuilder::new().schema(Some(one::<ErrorBody>())).build());
        let body = self.body.map(|shape| {
            RequestBodyBuilder::new()
                .content(JSON, ContentBuilder::new().schema(Some(shape)).build())
                .required(Some(Required::True))
                .build()
        });
        let operation = OperationBuilder::new()
            .summary(Some(self.about))
            .parameters(Some(self.parameters))
            .request_body(body)
            .response("200", done)
            .response("default", refused);
        (self.path, PathItem::new(self.method, operation))
    }
}

fn one<T: ToSchema>() -> Shape {
    Ref::from_schema_name(T::name()).into()
}

fn list<T: ToSchema>() -> Shape {
    ArrayBuilder::new().items(one::<T>()).into()
}

fn bytes() -> Shape {
    ObjectBuilder::new().schema_type(Type::String).into()
}

fn query<T: IntoParams>() -> Vec<Parameter> {
    T::into_params(|| Some(ParameterIn::Query))
}

fn show(path: &'static str, about: &'static str, answer: Shape) -> Endpoint {
    let (parameters, answer) = (Vec::new(), (JSON, answer));
    Endpoint { method: HttpMethod::Get, path, about, parameters, body: None, answer }
}

/// What only looks.
fn shows() -> Vec<Endpoint> {
    let object = || ObjectBuilder::new().into();
    let with = |parameters, endpoint| Endpoint { parameters, ..endpoint };
    vec![
        show("/v1/version", "Versions", one::<Version>()),
        show("/v1/summary", "The daemon as a whole", one::<Summary>()),
        show("/v1/config", "The configuration in force, in the shape of its file", object()),
        show("/v1/ports", "Ports and their counters", list::<Port>()),
        show("/v1/queues", "Receive queues and their cores", list::<Queue>()),
        show("/v1/interfaces", "Interfaces", list::<Interface>()),
        show("/v1/bridges", "Bridges and learned addresses", list::<Bridge>()),
        with(query::<RouteQuery>(), show("/v1/routes", "Routes", one::<RoutePage>())),
        with(
            query::<LookupQuery>(),
            show("/v1/routes/lookup", "What becomes of an address", one::<RouteLookup>()),
        ),
        show("/v1/next-hops", "Next hops as the data path uses them", list::<NextHop>()),
        show("/v1/neighbors", "Neighbours", list::<Neighbor>()),
        with(query::<FlowQuery>(), show("/v1/flows", "Exact-match flows", one::<FlowPage>())),
        show("/v1/workers", "Workers and their load", list::<Worker>()),
        show("/v1/nodes", "Nodes by worker", list::<Node>()),
        show("/v1/drops", "Dropped packets by reason", list::<Drop>()),
        Endpoint {
            answer: (TEXT, bytes()),
            ..show("/metrics", "Counters for Prometheus", bytes())
        },
    ]
}

fn change(
    (method, path): (HttpMethod, &'static str),
    about: &'static str,
    body: Shape,
    answer: Shape,
) -> Endpoint {
    let (parameters, answer) = (Vec::new(), (JSON, answer));
    Endpoint { method, path, about, parameters, body: Some(body), answer }
}

/// What changes something. Lists are taken whole or not at all.
fn changes() -> Vec<Endpoint> {
    use HttpMethod::{Delete, Patch, Post};
    let changed = one::<Changed>;
    let name = ParameterBuilder::new()
        .name("name")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(bytes()))
        .build();
    let port = change(
        (Patch, "/v1/ports/{name}"),
        "Change a port until the next reload or start",
        one::<PortChange>(),
        one::<Port>(),
    );
    vec![
        change((Post, "/v1/routes"), "Add or replace routes", list::<Route>(), changed()),
        change((Delete, "/v1/routes"), "Remove routes", list::<Prefix>(), changed()),
        change(
            (Post, "/v1/neighbors"),
            "Add or replace static neighbours",
            list::<StaticNeighbor>(),
            changed(),
        ),
        change(
            (Delete, "/v1/neighbors"),
            "Remove the neighbours that match",
            one::<NeighborSelector>(),
            changed(),
        ),
        change((Post, "/v1/flows"), "Add or replace flows", list::<Flow>(), changed()),
        change((Delete, "/v1/flows"), "Remove flows", one::<FlowSelector>(), changed()),
        Endpoint { parameters: vec![name], ..port },
        change(
            (Post, "/v1/reload"),
            "Apply what has changed in the configuration file",
            one::<Reload>(),
            one::<Reloaded>(),
        ),
    ]
}

/// Answers that come bit by bit.
fn streams() -> Vec<Endpoint> {
    let stream = |path, about, body, kind, answer| Endpoint {
        answer: (kind, answer),
        ..change((HttpMethod::Post, path), about, body, bytes())
    };
    let (trace, capture) = ("Follow single packets, one step per line", "Packets as pcapng");
    vec![
        stream("/v1/trace", trace, one::<Trace>(), LINES, one::<TraceStep>()),
        stream("/v1/capture", capture, one::<Capture>(), PCAPNG, bytes()),
    ]
}

fn schemas() -> ComponentsBuilder {
    let mut all = Vec::new();
    add::<ErrorBody>(&mut all);
    add::<Version>(&mut all);
    add::<Summary>(&mut all);
    add::<Port>(&mut all);
    add::<PortChange>(&mut all);
    add::<Queue>(&mut all);
    add::<Interface>(&mut all);
    add::<Bridge>(&mut all);
    add::<RoutePage>(&mut all);
    add::<RouteLookup>(&mut all);
    add::<Route>(&mut all);
    add::<NextHop>(&mut all);
    add::<Neighbor>(&mut all);
    add::<NeighborSelector>(&mut all);
    add::<StaticNeighbor>(&mut all);
    add::<FlowPage>(&mut all);
    add::<FlowSelector>(&mut all);
    add::<Worker>(&mut all);
    add::<Node>(&mut all);
    add::<Drop>(&mut all);
    add::<Changed>(&mut all);
    add::<Reload>(&mut all);
    add::<Reloaded>(&mut all);
    add::<Trace>(&mut all);
    add::<TraceStep>(&mut all);
    add::<Capture>(&mut all);
    ComponentsBuilder::new().schemas_from_iter(all)
}

/// Adds a type's schema and those that it refers to.
fn add<T: ToSchema>(all: &mut Vec<(String, Shape)>) {
    all.push((T::name().into_owned(), T::schema()));
    T::schemas(all);
}
