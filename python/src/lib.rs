//! The Python module `millrace`: the client library for Python, packets as numpy views.
//!
//! A packet's memory stays mapped, and is not given back, as long as a view of it lives: the view holds its packet, the
//! packet its channel. Of a packet that is sent while it is viewed a copy goes.

mod channel;
mod client;
mod error;
mod packet;

use pyo3::prelude::*;

/// The client library of Millrace.
#[pymodule]
mod _millrace {
    #[pymodule_export]
    use super::channel::Channel;
    #[pymodule_export]
    use super::client::{Client, Port};
    #[pymodule_export]
    use super::error::{DaemonGone, Error};
    #[pymodule_export]
    use super::packet::Packet;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = ::client::VERSION;
}
