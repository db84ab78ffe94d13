//! `POST /v1/capture`: packets as a stream of pcapng.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::{Body as Stream, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use control::api::{Capture, Direction as Wanted, ErrorBody};
use graph::{CaptureOptions, Direction, Filter, Frame, Frames, Taps};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::ReceiverStream;

use super::Api;
use super::answer::{Body, Refusal};
use super::trace::{filter, within};
use crate::daemon::Shared;

/// Bytes kept of a packet at least and at most.
const SHORTEST_SNAP: u32 = 64;
const LONGEST_SNAP: u32 = 65_535;

/// Packets that wait for this thread, per worker.
const RING: usize = 1024;

/// How often the rings are looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// Pieces that wait for the client.
const PIECES: usize = 64;

/// Packets in one piece at most.
const PIECE: usize = 256;

type Piece = Result<Bytes, std::convert::Infallible>;

/// A capture that runs.
struct Running {
    daemon: Shared,
    frames: Vec<Frames>,
    ports: Vec<graph::PortId>,
    snap: u32,
    left: u64,
    deadline: Option<Instant>,
    _place: OwnedSemaphorePermit,
}

/// Starts a capture and streams it.
#[utoipa::path(
    post,
    path = "/v1/capture",
    request_body = Capture,
    responses(
        (status = 200, description = "pcapng", content_type = "application/x-pcapng"),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub(crate) async fn stream(
    State(api): State<Api>,
    Body(wish): Body<Capture>,
) -> Result<Response, Refusal> {
    let snap = wish.snaplen.unwrap_or(LONGEST_SNAP);
    if !(SHORTEST_SNAP..=LONGEST_SNAP).contains(&snap) {
        return Err(Refusal::invalid(format!("snaplen is {snap}"), "use 64 to 65535"));
    }
    let timeout = wish.timeout.map(|seconds| within(seconds, u32::MAX, "timeout")).transpose()?;
    let place = api.streams.capture()?;
    let filter = filter(&api.daemon.lock(), wish.port.as_deref(), wish.host, wish.protocol)?;
    let filter = Filter { transport_port: wish.transport_port, ..filter };
    let any = wish.direction == Wanted::Any;
    let taps = Taps {
        receive: any || wish.direction == Wanted::Rx,
        transmit: any || wish.direction == Wanted::Tx,
        drop: any || wish.direction == Wanted::Drop,
    };
    let mut running = Running {
        daemon: api.daemon.clone(),
        frames: Vec::new(),
        ports: Vec::new(),
        snap,
        left: wish.count.unwrap_or(u64::MAX),
        deadline: timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds.into())),
        _place: place,
    };
    let options = CaptureOptions { filter, taps, snap: snap as usize, ring: RING };
    running.start(&options).await?;
    let (pieces, body) = mpsc::channel(PIECES);
    let mut stopping = api.stopping.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = running.write(pieces) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    });
    let body = Stream::from_stream(ReceiverStream::new(body));
    Ok(([(CONTENT_TYPE, "application/x-pcapng")], body).into_response())
}

impl Running {
    async fn start(&mut self, options: &CaptureOptions) -> Result<(), Refusal> {
        let crew = self.daemon.lock().workers.crew();
        for member in crew.iter() {
            let (tap, frames) = graph::capture(options.clone());
            self.frames.push(frames);
            let started = member.ask(move |state| state.set_tap(Some(tap))).get().await;
            drop(started.map_err(|error| Refusal::failed(error, "see millrace show workers"))?);
        }
        Ok(())
    }

    /// Writes packets until there are enough, the time is over or the client hangs up.
    async fn write(mut self, pieces: mpsc::Sender<Piece>) {
        let Ok(mut writer) = PcapNgWriter::new(Vec::new()) else { return };
        loop {
            let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let count = self.drain(&mut writer);
            let piece = std::mem::take(writer.get_mut());
            if !piece.is_empty() && pieces.send(Ok(piece.into())).await.is_err() {
                return;
            }
            if over || self.left == 0 || pieces.is_closed() {
                return;
            }
            if count < PIECE {
                sleep(PERIOD).await;
            }
        }
    }

    /// Writes what waits, in the order of time; returns how many packets that were.
    fn drain(&mut self, writer: &mut PcapNgWriter<Vec<u8>>) -> usize {
        let mut piece = Vec::new();
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE);
        for frames in &mut self.frames {
            while piece.len() < most {
                let Some(frame) = frames.pop() else { break };
                piece.push(frame);
            }
        }
        piece.sort_by_key(|frame| frame.time);
        for frame in &piece {
            self.put(writer, frame);
        }
        self.left -= piece.len() as u64;
        piece.len()
    }

    fn put(&mut self, writer: &mut PcapNgWriter<Vec<u8>>, frame: &Frame) {
        let interface = self.ports.iter().position(|port| *port == frame.port);
        let interface = interface.unwrap_or_else(|| {
            let name = self.daemon.lock().ports.name(frame.port).map(str::to_owned);
            let name = name.unwrap_or_else(|| format!("port {}", frame.port));
            let _ = writer.write_pcapng_block(InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: self.snap,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                    // Times are in units of 10^-9 s.
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            });
            self.ports.push(frame.port);
            self.ports.len() - 1
        });
        // Writing to memory does not fail.
        let _ = writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: u32::try_from(interface).unwrap_or(0),
            timestamp: Duration::from_nanos(frame.time),
            original_len: u32::try_from(frame.length).unwrap_or(u32::MAX),
            data: Cow::Borrowed(&frame.data),
            options: options(frame.direction),
        });
    }
}

/// Inbound or outbound in the lowest bits of the flags (pcapng 4.3.1), or why it was dropped.
fn options(direction: Direction) -> Vec<EnhancedPacketOption<'static>> {
    match direction {
        Direction::Receive => vec![EnhancedPacketOption::Flags(1)],
        Direction::Transmit => vec![EnhancedPacketOption::Flags(2)],
        Direction::Drop(reason) => {
            let comment = format!("dropped: {}: {}", reason.name(), reason.words());
            vec![EnhancedPacketOption::Comment(Cow::Owned(comment))]
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for member in self.daemon.lock().workers.crew().iter() {
            member.ask(|state| state.set_tap(None)).forget();
        }
    }
}
