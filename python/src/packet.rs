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
    inner: Option<client::Packet>,
    /// Views of its bytes that live. They may be looked at and written to until the last is gone, so its memory is not given
    /// back before.
    views: usize,
    /// The caller has sent, given back or released it.
    given: bool,
    channel: Py<Channel>,
    dropped: Arc<Dropped>,
}

impl Packet {
    pub(crate) fn new(inner: client::Packet, channel: Py<Channel>, dropped: Arc<Dropped>) -> Self {
        Self { inner: Some(inner), views: 0, given: false, channel, dropped }
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
        self.inner.as_ref().filter(|_| !self.given).ok_or_else(gone)
    }

    /// The packet, for good, when it is still the caller's and nobody views it.
    pub(crate) fn take(&mut self) -> Option<client::Packet> {
        if self.views > 0 || self.given { None } else { self.inner.take() }
    }

    /// Puts back what [`take`](Self::take) gave.
    pub(crate) fn put_back(&mut self, packet: client::Packet) {
        self.inner = Some(packet);
    }

    /// The packet, when it is still the caller's and somebody views it.
    pub(crate) fn viewed(&self) -> Option<&client::Packet> {
        self.inner.as_ref().filter(|_| self.views > 0 && !self.given)
    }

    /// The caller has done with it; its memory goes back with the last view.
    pub(crate) fn give(&mut self) {
        self.given = true;
    }

    /// Gives its memory back, now or when the channel is not in use any more.
    fn release(&mut self, py: Python<'_>) {
        let Some(packet) = self.inner.take() else { return };
        match self.channel.bind(py).try_borrow_mut() {
            Ok(mut channel) => channel.inner.release(packet),
            Err(_) => self.dropped.put(packet),
        }
    }
}

#[pymethods]
impl Packet {
    /// Its bytes as a numpy array of uint8, where they lie: what is changed in it is changed in the packet. Of a packet
    /// longer than a slot it is the first piece. A view stays valid when the packet is sent, given back or released: then a
    /// copy of the packet goes, and its memory goes back with the last view. Copy what you want to keep for long: without
    /// that memory nothing more can come.
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
        if !view.is_null() {
            // Whoever asked may release the view even where it was refused: then it is none of anybody's.
            // SAFETY: Python's view, to be written.
            unsafe { (&raw mut (*view).obj).write(std::ptr::null_mut()) };
        }
        let (data, length) = {
            let mut packet = slf.try_borrow_mut()?;
            let packet = &mut *packet;
            let mut channel = alone(packet.channel.bind(py))?;
            let taken = packet.inner.as_mut().filter(|_| !packet.given).ok_or_else(|| {
                PyBufferError::new_err("the packet was sent, given back or released before")
            })?;
            let bytes = channel.inner.bytes_mut(taken);
            (bytes.as_mut_ptr(), bytes.len())
        };
        let length = isize::try_from(length).unwrap_or(0);
        // SAFETY: the bytes are this packet's until its memory is given back, which `views` puts off; they are mapped as long
        // as the packet, which the view holds, holds its channel. Python writes the view.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data.cast(), length, 0, flags) };
        if filled != 0 {
            return Err(PyErr::fetch(py));
        }
        slf.borrow_mut().views += 1;
        Ok(())
    }

    /// # Safety
    /// Python calls it, once for each view that was filled.
    unsafe fn __releasebuffer__(&mut self, py: Python<'_>, _view: *mut ffi::Py_buffer) {
        self.views -= 1;
        if self.views == 0 && self.given {
            self.release(py);
        }
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        if self.inner.is_some() {
            Python::attach(|py| self.release(py));
        }
    }
}
