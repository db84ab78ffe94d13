//! The packets of one thread.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Error, Unsent};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::exception;
use crate::packet::{Dropped, Packet};

/// How long a wait lasts before it looks for packets that other threads have dropped.
const SLICE: Duration = Duration::from_millis(20);

/// Packets for one thread, and to the daemon: Client.open() gives them. Use a channel and its packets in one thread at a
/// time, or RuntimeError is raised; what another may do is to read views of packets that it was given, and to drop packets.
#[pyclass(module = "millrace")]
pub(crate) struct Channel {
    pub(crate) inner: client::Channel,
    burst: Vec<client::Packet>,
    dropped: Arc<Dropped>,
}

impl Channel {
    pub(crate) fn new(inner: client::Channel) -> Self {
        Self { inner, burst: Vec::new(), dropped: Arc::default() }
    }

    /// Gives back the slots of packets that were dropped while the channel was in use.
    fn release_dropped(&mut self) {
        self.dropped.drain(|packet| self.inner.release(packet));
    }
}

/// The channel, when no other thread uses it.
pub(crate) fn alone<'py>(slf: &Bound<'py, Channel>) -> PyResult<PyRefMut<'py, Channel>> {
    slf.try_borrow_mut()
        .map_err(|_| PyRuntimeError::new_err("another thread uses the channel: one at a time"))
}

fn seconds(number: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(number)
        .map_err(|_| PyValueError::new_err(format!("{number} s is no length of time")))
}

/// What becomes of packets on their way back.
#[derive(Clone, Copy)]
enum Way {
    Port,
    Graph,
}

#[pymethods]
impl Channel {
    /// Takes up to `limit` packets, as a list; never waits. Raises DaemonGone when nothing is left to receive.
    #[pyo3(signature = (limit=64))]
    fn receive(slf: Bound<'_, Self>, limit: usize) -> PyResult<Vec<Packet>> {
        let mut guard = alone(&slf)?;
        guard.release_dropped();
        let Self { inner, burst, dropped } = &mut *guard;
        inner.receive(burst, limit).map_err(exception)?;
        let channel = slf.clone().unbind();
        let py = slf.py();
        let new = |packet| Packet::new(packet, channel.clone_ref(py), Arc::clone(dropped));
        Ok(burst.drain(..).map(new).collect())
    }

    /// Sends packets, each by its `port`: that where it came in, unless it was changed. Gives how many went; the others
    /// found no room and are still the caller's, to send again or release. Raises DaemonGone; ValueError for a packet of
    /// another channel.
    fn send(slf: Bound<'_, Self>, packets: Vec<Bound<'_, Packet>>) -> PyResult<usize> {
        forward(&slf, &packets, Way::Port)
    }

    /// Gives packets back to the daemon's graph, as if each had just come in by its `port`: what a function does not want.
    /// Gives what send() gives.
    fn give_back(slf: Bound<'_, Self>, packets: Vec<Bound<'_, Packet>>) -> PyResult<usize> {
        forward(&slf, &packets, Way::Graph)
    }

    /// Drops packets that are still the caller's. What was sent, given back or released before is left alone. Raises
    /// ValueError for a packet of another channel.
    fn release(slf: Bound<'_, Self>, packets: Vec<Bound<'_, Packet>>) -> PyResult<()> {
        let mut guard = alone(&slf)?;
        for packet in &packets {
            let mut packet = packet.borrow_mut();
            packet.check(&slf)?;
            match packet.take() {
                Some(taken) => guard.inner.release(taken),
                None => packet.give(),
            }
        }
        Ok(())
    }

    /// Sends a packet of one's own making (bytes) by a port, by its number. Gives whether there was room. Raises DaemonGone;
    /// Error for no bytes, or more than the ring can ever take.
    fn send_bytes(&mut self, frame: &[u8], port: u8) -> PyResult<bool> {
        room(self.inner.send_bytes(frame, port))
    }

    /// Gives a packet of one's own making (bytes) to the graph, as if it had come in by a port. Gives whether there was
    /// room. Raises what send_bytes() raises.
    fn give_bytes(&mut self, frame: &[u8], port: u8) -> PyResult<bool> {
        room(self.inner.return_bytes(frame, port))
    }

    /// Waits until a packet comes, at most `timeout` seconds (None: for ever). Gives whether a packet waits; a signal may
    /// end it early. Other threads of Python run meanwhile. Raises DaemonGone.
    #[pyo3(signature = (timeout=None))]
    fn wait(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let longest = timeout.map(seconds).transpose()?;
        let start = Instant::now();
        loop {
            self.release_dropped();
            let left = longest.map(|longest| longest.saturating_sub(start.elapsed()));
            // Without their slots no packet may ever come.
            let shared = Arc::strong_count(&self.dropped) > 1;
            let slice = if shared { Some(left.unwrap_or(SLICE).min(SLICE)) } else { left };
            let waits = py.detach(|| self.inner.wait(slice)).map_err(exception)?;
            if waits || slice == left {
                return Ok(waits);
            }
            py.check_signals()?;
        }
    }

    /// Waits until a packet to be sent finds room again, at most `timeout` seconds (None: for ever). Gives whether there is
    /// room; a signal may end it early. Who waits for packets too has to arm() again. Raises DaemonGone.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_room(&mut self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let longest = timeout.map(seconds).transpose()?;
        py.detach(|| self.inner.wait_for_room(longest)).map_err(exception)
    }

    /// Waits until the daemon has taken all that was sent, at most `timeout` seconds. Gives whether it has.
    /// Raises DaemonGone.
    fn flush(&mut self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let longest = seconds(timeout)?;
        py.detach(|| self.inner.flush(longest)).map_err(exception)
    }

    /// A file descriptor for select, poll or an event loop: readable when packets came after arm(), or when the daemon is
    /// gone.
    fn fileno(&self) -> RawFd {
        self.inner.as_fd().as_raw_fd()
    }

    /// Before waiting for fileno(): tells the daemon to ring. False: a packet is there already, do not wait. receive()
    /// takes it back.
    fn arm(&mut self) -> bool {
        self.inner.arm()
    }

    /// What it has done so far: a dict of `received`, `sent`, `full` and `malformed`.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.inner.counters();
        let dict = PyDict::new(py);
        dict.set_item("received", counters.received)?;
        dict.set_item("sent", counters.sent)?;
        dict.set_item("full", counters.full)?;
        dict.set_item("malformed", counters.malformed)?;
        Ok(dict)
    }
}

fn room(sent: Result<(), Error>) -> PyResult<bool> {
    match sent {
        Ok(()) => Ok(true),
        Err(Error::Full) => Ok(false),
        Err(error) => Err(exception(error)),
    }
}

/// Each packet is sent by itself: beside what Python takes, a look at whether its worker sleeps is nothing.
fn forward(slf: &Bound<'_, Channel>, packets: &[Bound<'_, Packet>], way: Way) -> PyResult<usize> {
    for packet in packets {
        packet.borrow().check(slf)?;
    }
    let mut guard = alone(slf)?;
    let mut sent = 0;
    for packet in packets {
        let mut packet = packet.borrow_mut();
        match forward_one(&mut guard.inner, &mut packet, way) {
            Ok(gone) => sent += usize::from(gone),
            Err(Error::Full) => {}
            Err(error) => return Err(exception(error)),
        }
    }
    Ok(sent)
}

/// Gives whether it went; not one that went before. Of one that is viewed a copy goes.
fn forward_one(
    channel: &mut client::Channel,
    packet: &mut Packet,
    way: Way,
) -> Result<bool, Error> {
    if let Some(viewed) = packet.viewed() {
        match way {
            Way::Port => channel.send_copy(viewed)?,
            Way::Graph => channel.return_copy(viewed)?,
        }
        packet.give();
        return Ok(true);
    }
    let Some(taken) = packet.take() else { return Ok(false) };
    let port = taken.port();
    let done = match way {
        Way::Port => channel.send(taken, port),
        Way::Graph => channel.return_to_graph(taken),
    };
    done.map(|()| true).map_err(|Unsent { packet: unsent, error }| {
        packet.put_back(unsent);
        error
    })
}
