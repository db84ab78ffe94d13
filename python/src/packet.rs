//! A packet as Python sees it.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use crate::channel::{Channel, alone};

/// Packets of a channel that were dropped while a thread used it, which gives their slots back.
#[derive(Default)]
pub(crate) struct Dropped(Mutex<Vec<client::Packet>>);

impl Dropped {
    fn put(&self, packet: client::Packet) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(packet);
    }

    pub(crate) fn drain(&self, release: impl FnMut(client::Packet)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(release);
    }
}

/// A packet that was received. It is the caller's until it is sent, given back or released, or until nothing refers to it
/// any more: then it is dropped. Supports the buffer protocol: memoryview(packet), numpy.frombuffer(packet, "u1").
#[pyclass(module = "millrace")]
pub(crate) struct Packet {
    pub(crate) inner: Option<client::Packet>,
    channel: Py<Channel>,
    dropped: Arc<Dropped>,
}

impl Packet {
    pub(crate) fn new(inner: client::Packet, channel: Py<Channel>, dropped: Arc<Dropped>) -> Self {
        Self { inner: Some(inner), channel, dropped }
    }

    /// Whether it is of that channel.
    pub(crate) fn check(&self, channel: &Bound<'_, Channel>) -> PyResult<()> {
        if self.channel.is(channel) {
            return Ok(());
        }
        Err(PyValueError::new_err("the packet is of another channel: send and release it there"))
    }

    fn taken(&self) -> PyResult<&client::Packet> {
        let gone = || PyValueError::new_err("the packet was sent, given back or released before");
        self.inner.as_ref().ok_or_else(gone)
    }
}

#[pymethods]
impl Packet {
    /// Its bytes as a numpy array of uint8, where they lie: what is changed in it is changed in the packet. Valid until
    /// the packet is sent, given back or released. Of a packet longer than a slot it is the first piece.
    #[getter]
    fn data<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let from_buffer = FROM_BUFFER
            .get_or_try_init(py, || py.import("numpy")?.getattr("frombuffer").map(Bound::unbind))?;
        from_buffer.bind(py).call1((slf, "u1"))
    }

    /// Its bytes as a copy, all of them, however many pieces it has.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let packet = self.taken()?;
        let channel = alone(self.channel.bind(py))?;
        PyBytes::new_with(py, packet.length(), |target| {
            channel.inner.copy(packet, target);
            Ok(())
        })
    }

    /// Bytes of the whole packet.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.taken()?.length())
    }

    /// The port where it came in; set it to choose where send() sends it.
    #[getter]
    fn port(&self) -> PyResult<u8> {
        Ok(self.taken()?.port())
    }

    #[setter]
    fn set_port(&mut self, port: u8) -> PyResult<()> {
        self.taken()?;
        if let Some(packet) = &mut self.inner {
            packet.set_port(port);
        }
        Ok(())
    }

    /// Whether it is a copy: the packet itself went on.
    #[getter]
    fn is_copy(&self) -> PyResult<bool> {
        Ok(self.taken()?.is_copy())
    }

    /// Pieces in which it lies: one, unless it is longer than a slot.
    #[getter]
    fn pieces(&self) -> PyResult<u32> {
        Ok(self.taken()?.pieces())
    }

    /// # Safety
    /// Python calls it, with a view to be filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let py = slf.py();
        let (data, length) = {
            let mut packet = slf.try_borrow_mut()?;
            let packet = &mut *packet;
            let mut channel = alone(packet.channel.bind(py))?;
            let taken = packet.inner.as_mut().ok_or_else(|| {
                PyBufferError::new_err("the packet was sent, given back or released before")
            })?;
            let bytes = channel.inner.bytes_mut(taken);
            (bytes.as_mut_ptr(), bytes.len())
        };
        let length = isize::try_from(length).unwrap_or(0);
        // SAFETY: the bytes stay mapped as long as the packet, which the view holds, holds its channel.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data.cast(), length, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        let Some(packet) = self.inner.take() else { return };
        Python::attach(|py| match self.channel.bind(py).try_borrow_mut() {
            Ok(mut channel) => channel.inner.release(packet),
            Err(_) => self.dropped.put(packet),
        });
    }
}
