//! Meeting the daemon.

use std::net::IpAddr;
use std::path::PathBuf;

use client::{Filter, Options, PortQueue, Spread, Take};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::channel::Channel;
use crate::error::exception;

/// A port of the daemon.
#[pyclass(frozen, get_all, module = "millrace")]
pub(crate) struct Port {
    /// Its name.
    name: String,
    /// Its number, as in Packet.port.
    number: u8,
    /// Its MAC address: six bytes.
    mac: Vec<u8>,
    /// Bytes of an IP packet.
    mtu: u16,
}

#[pymethods]
impl Port {
    fn __repr__(&self) -> String {
        format!("<millrace.Port {} '{}'>", self.number, self.name)
    }
}

/// Attaches to the daemon. `name` is shown to people: 1 to 63 bytes. `path` is its attach socket; without one it is what
/// the environment variable MILLRACE_ATTACH says, else /run/millrace/attach.sock. Raises Error, which says what to do.
/// Its channels outlive it.
#[pyclass(module = "millrace")]
pub(crate) struct Client {
    inner: client::Client,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (name, path=None))]
    fn new(py: Python<'_>, name: &str, path: Option<PathBuf>) -> PyResult<Self> {
        let inner = py.detach(|| client::Client::attach(path.as_deref(), name));
        Ok(Self { inner: inner.map_err(exception)? })
    }

    /// Attaches anew by the same socket and name, when a daemon that was gone is back. Open new channels then. Raises Error
    /// when there is none yet.
    fn reattach(&mut self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.reattach()).map_err(exception)
    }

    /// The ports that this client may use: a list of Port. Raises DaemonGone.
    fn ports(&self, py: Python<'_>) -> PyResult<Vec<Port>> {
        let ports = py.detach(|| self.inner.ports()).map_err(exception)?;
        let port = |port: client::Port| Port {
            name: port.name,
            number: port.number,
            mac: port.mac.to_vec(),
            mtu: port.mtu,
        };
        Ok(ports.into_iter().map(port).collect())
    }

    /// Opens channels, one for each thread, and gives them as a list. They are closed when they are not used any more.
    ///
    /// `ports`: names (none: all that this client may use). `take`: "divert" (this client gets the packets, and nobody
    /// else), "copy" (it gets copies), "nothing" (it only sends). `spread` over channels: "flow", "round-robin" or
    /// "port". `channels`: 1 to 64. `slots` of each ring: a power of two from 2 to 1,048,576; `capacity`: bytes of packet
    /// that a slot holds, 60 to 16,383: longer packets take several slots.
    ///
    /// Only packets that match all that is given: `ether_type`; `protocol` ("tcp", "udp", "icmp", "icmp6", "arp" or a
    /// number); `host` (address of either end), `source`, `destination`; `source_port`, `destination_port`.
    ///
    /// `queue=("left", 1)`: a receive queue of a port for this client alone, without copies. The port must keep it for
    /// clients; it comes whole, so that only `slots` and `capacity` go with it.
    ///
    /// Raises Error when the daemon refuses, DaemonGone when it has ended, ValueError for what makes no sense here.
    #[pyo3(signature = (ports=Vec::new(), *, take="divert", spread="flow", channels=1, slots=1024, capacity=2048,
        ether_type=None, protocol=None, host=None, source=None, destination=None, source_port=None,
        destination_port=None, queue=None), text_signature = "($self, ports=(), *, take='divert', spread='flow', \
        channels=1, slots=1024, capacity=2048, ether_type=None, protocol=None, host=None, source=None, \
        destination=None, source_port=None, destination_port=None, queue=None)")]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn open(
        &self,
        py: Python<'_>,
        ports: Vec<String>,
        take: &str,
        spread: &str,
        channels: u16,
        slots: u32,
        capacity: u32,
        ether_type: Option<u16>,
        protocol: Option<String>,
        host: Option<&str>,
        source: Option<&str>,
        destination: Option<&str>,
        source_port: Option<u16>,
        destination_port: Option<u16>,
        queue: Option<(String, u16)>,
    ) -> PyResult<Vec<Channel>> {
        let filter = Filter {
            ether_type,
            protocol,
            host: address(host)?,
            source: address(source)?,
            destination: address(destination)?,
            source_port,
            destination_port,
        };
        let (take, spread) = (take_of(take)?, spread_of(spread)?);
        let queue = queue.map(|(port, queue)| PortQueue { port, queue });
        let options = Options { ports, take, spread, filter, channels, slots, capacity, queue };
        let queues = py.detach(|| self.inner.open(&options)).map_err(exception)?;
        Ok(queues.channels.into_iter().map(Channel::new).collect())
    }

    /// Its number, as in `millrace show clients`.
    #[getter]
    fn number(&self) -> u32 {
        self.inner.number()
    }

    /// The daemon's version.
    #[getter]
    fn daemon_version(&self) -> &str {
        self.inner.daemon_version()
    }

    /// Whether the daemon is gone.
    fn is_gone(&self) -> bool {
        self.inner.is_gone()
    }
}

fn address(text: Option<&str>) -> PyResult<Option<IpAddr>> {
    let parse = |text: &str| {
        text.parse()
            .map_err(|_| PyValueError::new_err(format!("'{text}' is no IPv4 or IPv6 address")))
    };
    text.map(parse).transpose()
}

fn take_of(text: &str) -> PyResult<Take> {
    match text {
        "divert" => Ok(Take::Divert),
        "copy" => Ok(Take::Copy),
        "nothing" => Ok(Take::Nothing),
        other => {
            Err(PyValueError::new_err(format!("take: '{other}' is none of divert, copy, nothing")))
        }
    }
}

fn spread_of(text: &str) -> PyResult<Spread> {
    match text {
        "flow" => Ok(Spread::Flow),
        "round-robin" => Ok(Spread::RoundRobin),
        "port" => Ok(Spread::Port),
        other => Err(PyValueError::new_err(format!(
            "spread: '{other}' is none of flow, round-robin, port"
        ))),
    }
}
