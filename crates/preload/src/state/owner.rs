//! Who gets the signals of a session: `F_SETOWN`, `F_SETSIG`.

use std::ffi::{c_int, c_long};

use host::{Errno, Mask};

use super::State;

/// The process or, negative, the group of processes that is signalled, and how.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Owner {
    /// 0: nobody.
    id: c_int,
    /// Instead of `SIGIO`; 0: that.
    signal: c_int,
}

/// Signals have numbers up to this.
const LAST: c_int = 64;
/// Whether a process is there: no signal.
const NONE: c_int = 0;

impl Owner {
    /// Something has happened to the session (`sk_wake_async`, `sk_send_sigurg`).
    pub(super) fn signal(self, flags: c_int, woken: Mask) {
        if self.id == 0 {
            return;
        }
        if woken.has(Mask::URGED) {
            // SAFETY: no memory is involved; handlers wait until this thread does not have the state.
            unsafe { libc::kill(self.id, libc::SIGURG) };
        }
        if flags & libc::O_ASYNC != 0 {
            let signal = if self.signal == 0 { libc::SIGIO } else { self.signal };
            // SAFETY: as above.
            unsafe { libc::kill(self.id, signal) };
        }
    }
}

impl State {
    /// Sets who gets a session's signals.
    ///
    /// # Errors
    /// [`Errno::SRCH`]: there is no such process. [`Errno::INVAL`].
    pub(crate) fn set_owner(&mut self, fd: c_int, id: c_int) -> Result<(), Errno> {
        if id == c_int::MIN {
            return Err(Errno::INVAL);
        }
        if id != 0 {
            // SAFETY: no memory is involved.
            let found = unsafe { libc::kill(id, NONE) };
            if found < 0 && crate::errno::get() == Errno(libc::ESRCH) {
                return Err(Errno(libc::ESRCH));
            }
        }
        self.shared_place(fd).owner.id = id;
        self.is_owned |= id != 0;
        Ok(())
    }

    pub(crate) fn owner(&mut self, fd: c_int) -> c_int {
        self.shared_place(fd).owner.id
    }

    /// `F_SETOWN` and its kin; `None`: another command.
    pub(crate) fn own_by(
        &mut self,
        fd: c_int,
        command: c_int,
        argument: c_long,
    ) -> Option<Result<c_int, Errno>> {
        Some(match command {
            libc::F_SETOWN => self.set_owner(fd, argument as c_int).map(|()| 0),
            libc::F_GETOWN => Ok(self.owner(fd)),
            SET_SIGNAL => match c_int::try_from(argument) {
                Ok(signal @ 0..=LAST) => {
                    self.shared_place(fd).owner.signal = signal;
                    Ok(0)
                }
                _ => Err(Errno::INVAL),
            },
            GET_SIGNAL => Ok(self.shared_place(fd).owner.signal),
            _ => return None,
        })
    }
}

/// `F_SETSIG` and `F_GETSIG` (`asm-generic/fcntl.h`).
const SET_SIGNAL: c_int = 10;
const GET_SIGNAL: c_int = 11;
