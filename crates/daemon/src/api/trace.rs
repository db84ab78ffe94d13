//! `POST /v1/trace`: single packets followed through the nodes, as lines of JSON.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::{Body as Stream, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use control::api::{ErrorBody, Trace, TraceStep};
use graph::{Fate, Filter, Step, TraceOptions};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::ReceiverStream;

use super::Api;
use super::answer::{Body, Refusal};
use crate::daemon::{Daemon, Shared};

/// Packets to follow when nothing is said, and at most.
const PACKETS: u32 = 10;
const MOST_PACKETS: u32 = 10_000;

/// How long to follow when nothing is said, and at most: seconds.
const TIMEOUT: u32 = 30;
const LONGEST_TIMEOUT: u32 = 24 * 3600;

/// Steps that wait for this thread, per worker.
const RING: usize = 4096;

/// How often the rings are looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// Lines that wait for the client.
const LINES: usize = 256;

/// A trace that runs.
struct Running {
    daemon: Shared,
    rings: Vec<(u16, rtrb::Consumer<Step>)>,
    deadline: Instant,
    count: u32,
    _place: OwnedSemaphorePermit,
}

/// Starts a trace and streams its steps.
#[utoipa::path(
    post,
    path = "/v1/trace",
    request_body = Trace,
    responses(
        (
            status = 200,
            description = "One step per line of JSON",
            body = TraceStep,
            content_type = "application/x-ndjson"
        ),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn stream(
    State(api): State<Api>,
    Body(wish): Body<Trace>,
) -> Result<Response, Refusal> {
    let count = within(wish.count.unwrap_or(PACKETS), MOST_PACKETS, "count")?;
    let timeout = within(wish.timeout.unwrap_or(TIMEOUT), LONGEST_TIMEOUT, "timeout")?;
    let place = api.streams.trace()?;
    let filter = filter(&api.daemon.lock(), wish.port.as_deref(), wish.host, wish.protocol)?;
    let filter = Filter { transport_port: wish.transport_port, ..filter };
    let options = TraceOptions { filter, packets: count, ring: RING };
    let mut running = Running {
        daemon: api.daemon.clone(),
        rings: Vec::new(),
        deadline: Instant::now() + Duration::from_secs(timeout.into()),
        count,
        _place: place,
    };
    running.start(&options).await?;
    let (lines, body) = mpsc::channel(LINES);
    let mut stopping = api.stopping.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = running.follow(lines) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    });
    let body = Stream::from_stream(ReceiverStream::new(body));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

impl Running {
    async fn start(&mut self, options: &TraceOptions) -> Result<(), Refusal> {
        let crew = self.daemon.lock().workers.crew();
        for member in crew.iter() {
            let (tracer, ring) = graph::trace(options.clone());
            self.rings.push((member.core, ring));
            let started = member.ask(move |state| state.set_tracer(Some(tracer))).get().await;
            drop(started.map_err(|error| Refusal::failed(error, "see millrace show workers"))?);
        }
        Ok(())
    }

    /// Hands steps on until all packets are through, the time is over or the client hangs up.
    async fn follow(mut self, lines: mpsc::Sender<Result<Bytes, std::convert::Infallible>>) {
        let mut numbers: HashMap<(u16, u32), u32> = HashMap::new();
        let mut first = None;
        let hz = u128::from(dpdk::tsc_hz().max(1));
        loop {
            let over = Instant::now() >= self.deadline
                || self.rings.iter().all(|(_, ring)| ring.is_abandoned());
            let mut found = false;
            for at in 0..self.rings.len() {
                while let Some((core, step)) = self.next(at) {
                    found = true;
                    let next = numbers.len() as u32;
                    let packet = *numbers.entry((core, step.packet)).or_insert(next);
                    if packet >= self.count {
                        continue;
                    }
                    let start = *first.get_or_insert(step.time);
                    let cycles = u128::from(step.time.saturating_sub(start));
                    let time = u64::try_from(cycles * 1_000_000_000 / hz).unwrap_or(u64::MAX);
                    let fate = words(&self.daemon.lock(), step.fate);
                    let seen = step.seen;
                    let node = step.node.to_owned();
                    let line = TraceStep { packet, core, time, node, seen, fate };
                    let Ok(mut text) = serde_json::to_vec(&line) else { continue };
                    text.push(b'\n');
                    if lines.send(Ok(text.into())).await.is_err() {
                        return;
                    }
                }
            }
            let enough = numbers.len() >= self.count as usize && !found;
            if over || enough || lines.is_closed() {
                return;
            }
            sleep(PERIOD).await;
        }
    }

    fn next(&mut self, at: usize) -> Option<(u16, Step)> {
        let (core, ring) = self.rings.get_mut(at)?;
        ring.pop().ok().map(|step| (*core, step))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for member in self.daemon.lock().workers.crew().iter() {
            member.ask(|state| state.set_tracer(None)).forget();
        }
    }
}

fn words(daemon: &Daemon, fate: Fate) -> String {
    match fate {
        Fate::Next(node) => format!("goes on to {node}"),
        Fate::Transmitted(port) => match daemon.ports.name(port) {
            Some(name) => format!("leaves by port {name}"),
            None => "leaves by a port that is gone".to_owned(),
        },
        Fate::Punted(cause) => match forward::Cause::try_from(cause) {
            Ok(cause) => format!("handed to the control thread: {cause:?}"),
            Err(error) => error.to_string(),
        },
        Fate::Dropped(reason) => format!("dropped: {}: {}", reason.name(), reason.words()),
        Fate::Freed => "freed; its drop is counted already".to_owned(),
        Fate::Taken => "made into another packet".to_owned(),
        Fate::Delivered(stack) => format!("delivered to stack {stack}"),
    }
}

/// What a trace or a capture wants of packets.
pub(super) fn filter(
    daemon: &Daemon,
    port: Option<&str>,
    host: Option<std::net::IpAddr>,
    protocol: Option<String>,
) -> Result<Filter, Refusal> {
    let port = port.map(|name| {
        daemon.ports.id(name).ok_or_else(|| {
            Refusal::not_found(format!("no open port is named {name}"), "see show ports")
        })
    });
    let protocol = protocol.map(|word| {
        word.parse().map_err(|error: graph::MatchError| {
            Refusal::invalid(error, "use tcp, udp, icmp, icmp6, arp or a number")
        })
    });
    Ok(Filter {
        port: port.transpose()?,
        host,
        protocol: protocol.transpose()?,
        ..Filter::default()
    })
}

/// A number from 1 to `most`.
pub(super) fn within(number: u32, most: u32, key: &str) -> Result<u32, Refusal> {
    if (1..=most).contains(&number) {
        return Ok(number);
    }
    Err(Refusal::invalid(format!("{key} is {number}"), format!("use 1 to {most}")))
}
