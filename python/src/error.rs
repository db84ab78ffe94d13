//! Errors as exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    millrace,
    Error,
    PyException,
    "What went wrong, and what to do: the daemon refuses, is of another version, or is not there."
);
create_exception!(
    millrace,
    DaemonGone,
    Error,
    "The daemon has ended: reattach the client when it is back, and open channels anew."
);

/// The exception for an error of the library.
pub(crate) fn exception(error: client::Error) -> PyErr {
    match error {
        client::Error::DaemonGone => DaemonGone::new_err(error.to_string()),
        other => Error::new_err(other.to_string()),
    }
}
