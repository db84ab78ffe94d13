//! Ports and their queues.

use axum::Json;
use axum::extract::{Path, State};
use control::api::{ErrorBody, Port, PortChange, PortState as Shown, Queue};
use graph::PortId;

use super::answer::{Answer, Body, Refusal};
use super::{Api, carried_through};
use crate::daemon::Daemon;
use crate::ports::{Condition, PortState};

/// Lowest and highest MTU: RFC 791's smallest datagram that must pass, and what a jumbo frame holds.
const MTU: std::ops::RangeInclusive<u16> = 68..=9216;

/// `GET /v1/ports`
#[utoipa::path(
    get,
    path = "/v1/ports",
    responses(
        (status = 200, description = "Every port", body = Vec<Port>),
    )
)]
pub(crate) async fn list(State(api): State<Api>) -> Json<Vec<Port>> {
    let daemon = api.daemon.lock();
    Json(daemon.ports.iter().map(|port| show(&daemon, port)).collect())
}

/// `PATCH /v1/ports/{name}`
#[utoipa::path(
    patch,
    path = "/v1/ports/{name}",
    params(("name" = String, Path, description = "Name of the port")),
    request_body = PortChange,
    responses(
        (status = 200, description = "The port after the change", body = Port),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn change(
    State(api): State<Api>,
    Path(name): Path<String>,
    Body(change): Body<PortChange>,
) -> Answer<Port> {
    if let Some(mtu) = change.mtu.filter(|mtu| !MTU.contains(mtu)) {
        return Err(Refusal::invalid(format!("MTU {mtu} is out of bounds"), "use 68 to 9216"));
    }
    carried_through(async move {
        let changing = api.daemon.change().await;
        if changing.lock().ports.get(&name).is_none() {
            let remedy = format!("use one of {}", changing.lock().ports.names());
            return Err(Refusal::not_found(format!("there is no port {name}"), remedy));
        }
        changing.change_port(&name, change).await.map_err(|error| {
            Refusal::failed(error, "see the log, and what the device can do in millrace show ports")
        })?;
        let daemon = changing.lock();
        let port = daemon.ports.get(&name).map(|port| show(&daemon, port));
        port.map(Json).ok_or_else(|| Refusal::not_found("the port is gone", "see show ports"))
    })
    .await
}

/// `GET /v1/queues`
#[utoipa::path(
    get,
    path = "/v1/queues",
    responses(
        (status = 200, description = "Every receive queue", body = Vec<Queue>),
    )
)]
pub(crate) async fn queues(State(api): State<Api>) -> Json<Vec<Queue>> {
    let daemon = api.daemon.lock();
    let daemon = &*daemon;
    let queues = daemon.ports.iter().flat_map(|port| {
        let kept = port.queues.0.saturating_sub(port.config.client_queues.into());
        port.config.queues.iter().map(move |place| Queue {
            port: port.config.name.clone(),
            queue: place.queue,
            core: place.core,
            descriptors: port.config.rx_descriptors,
            software_rss: port.config.software_rss.clone(),
            for_clients: usize::from(place.queue) >= kept && port.open.is_some(),
            client: daemon.clients.of_queue(&port.config.name, place.queue),
        })
    });
    Json(queues.collect())
}

fn show(daemon: &Daemon, port: &PortState) -> Port {
    let (state, reason) = match &port.condition {
        _ if !port.enabled => (Shown::AdminDown, String::new()),
        Condition::Up if !port.answers() => (Shown::Up, "its driver does not answer".to_owned()),
        Condition::Up => (Shown::Up, String::new()),
        Condition::Down(cause) => (Shown::LinkDown, cause.to_string()),
        Condition::Unserved(core) => {
            (Shown::WorkerDown, format!("the worker on core {core} does not answer"))
        }
        Condition::Gone(reason) => (Shown::Gone, reason.clone()),
    };
    let info = port.info();
    Port {
        name: port.config.name.clone(),
        number: port.id().map(PortId::to_bits),
        device: port.config.device.to_string(),
        driver: info.map(|info| info.driver.clone()).unwrap_or_default(),
        state,
        reason,
        mac: port.mac,
        mtu: port.config.mtu,
        promiscuous: port.promiscuous(),
        speed: port.speed().unwrap_or(0),
        numa: info.and_then(|info| info.socket).and_then(|node| u16::try_from(node).ok()),
        rx_queues: u16::try_from(port.queues.0).unwrap_or(u16::MAX),
        tx_queues: u16::try_from(port.queues.1).unwrap_or(u16::MAX),
        counters: daemon.port_counters(port),
    }
}
