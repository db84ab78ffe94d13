//! The descriptors of sessions: what each is like, and the files behind them.

use std::ffi::c_int;

use host::Errno;

use super::{Place, State};
use crate::internal;
use crate::kinds::{self, Kind};

/// Placeholders that are kept for the next session. After no number was left, as many are made before any is kept again: the program
/// may want the number of each for a file of its own.
const SPARES: usize = 128;

impl State {
    /// A descriptor for a new session.
    pub(crate) fn placeholder(&mut self) -> Result<c_int, Errno> {
        let fd = loop {
            let fd = match self.spares.pop() {
                Some(fd) => fd,
                None => self.new_placeholder()?,
            };
            let Some(at) = self.replaced.iter().position(|own| *own == fd) else { break fd };
            // What was put there is closed: an earlier session has its own number again.
            self.replaced.swap_remove(at);
            kinds::set(fd, Kind::Internal);
        };
        if usize::try_from(fd).is_ok() && kinds::set(fd, Kind::Spare) {
            Ok(fd)
        } else {
            internal::close(fd);
            Err(Errno::MFILE)
        }
    }

    fn new_placeholder(&mut self) -> Result<c_int, Errno> {
        let made = crate::errno::of(internal::placeholder(&self.base));
        self.scarce = if made.is_ok() { self.scarce.saturating_sub(1) } else { SPARES };
        made
    }

    /// Gives a descriptor back that no session uses any more.
    pub(crate) fn put_back(&mut self, fd: c_int, reusable: bool) {
        if self.replacing == Some(fd) {
            kinds::set(fd, Kind::Kernel);
        } else if reusable && self.scarce == 0 && self.spares.len() < SPARES {
            kinds::set(fd, Kind::Spare);
            // The kernel gives the lowest number that is free.
            let at = self.spares.partition_point(|spare| *spare > fd);
            self.spares.insert(at, fd);
        } else {
            // The application has closed it, as far as it knows.
            internal::close(fd);
        }
    }

    /// What a session's descriptor is like.
    pub(crate) fn place(&mut self, fd: c_int) -> &mut Place {
        let at = fd.unsigned_abs() as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, Place::default());
        }
        // Just made long enough.
        #[expect(clippy::indexing_slicing, reason = "just made long enough")]
        &mut self.places[at]
    }

    /// What all descriptors of a session share.
    pub(crate) fn shared_place(&mut self, fd: c_int) -> &mut Place {
        let own = self.own(fd);
        self.place(own)
    }

    /// Whether calls about a session never wait.
    pub(crate) fn is_nonblocking(&mut self, fd: c_int) -> bool {
        self.shared_place(fd).flags & libc::O_NONBLOCK != 0
    }
}
