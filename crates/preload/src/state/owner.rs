//! Who gets the signals of a session: `F_SETOWN`, `F_SETOWN_EX`, `F_SETSIG`.

use std::ffi::{c_int, c_long};

use host::{Errno, Mask};

use super::{Place, State, status_flags};
use crate::{kinds, memory, real};

/// The process or, negative, the group of processes that is signalled, and how.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Owner {
    /// 0: nobody.
    id: c_int,
    /// It is a process, or a group of them; otherwise, a thread.
    is_process: bool,
    /// Instead of `SIGIO`; 0: that.
    signal: c_int,
}

/// Signals have numbers up to this.
const LAST: c_int = 64;
/// Whether a process is there: no signal.
const NONE: c_int = 0;
/// To `kill(2)`, where the group 1 is meant.
const EVERYBODY: c_int = -1;

/// `struct f_owner_ex`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Extended {
    kind: c_int,
    id: c_int,
}

/// What [`Extended`] names.
const THREAD: c_int = 0;
const PROCESS: c_int = 1;
const GROUP: c_int = 2;

impl Owner {
    /// That of the kernel's socket.
    fn of_kernels(fd: c_int) -> Self {
        let mut owner = Extended { kind: THREAD, id: 0 };
        // SAFETY: room for the answer to the first; the second involves no memory.
        let (done, signal) = unsafe {
            let done = real::fcntl(fd, GET_EXTENDED, (&raw mut owner) as c_long);
            (done, real::fcntl(fd, GET_SIGNAL, 0))
        };
        let id = if owner.kind == GROUP { -owner.id } else { owner.id };
        if done < 0 || id == EVERYBODY {
            return Self::default();
        }
        Self { id, is_process: owner.kind != THREAD, signal: signal.max(0) }
    }

    /// Sends it a signal. Gives whether it is there.
    fn send(self, signal: c_int) -> bool {
        let call = if self.is_process { libc::SYS_kill } else { libc::SYS_tkill };
        // SAFETY: no memory is involved; handlers wait until this thread does not have the state.
        let done = unsafe { real::syscall(call, self.id.into(), signal.into(), 0, 0, 0, 0) };
        done >= 0 || crate::errno::get() != Errno(libc::ESRCH)
    }

    /// Sends it a signal that says what has happened to which descriptor. Gives whether it was sent.
    fn queue(self, signal: c_int, information: &Information) -> bool {
        let (id, place) = (c_long::from(self.id), c_long::from(signal));
        let information = &raw const *information as c_long;
        // SAFETY: as much as the kernel reads; handlers wait until this thread does not have the state.
        let done = unsafe {
            if self.is_process {
                real::syscall(libc::SYS_rt_sigqueueinfo, id, place, information, 0, 0, 0)
            } else {
                let own = libc::getpid().into();
                real::syscall(libc::SYS_rt_tgsigqueueinfo, own, id, place, information, 0, 0)
            }
        };
        done >= 0
    }

    /// Something has happened to the session at `fd` (`sk_wake_async`, `sk_send_sigurg`).
    pub(super) fn signal(self, fd: c_int, flags: c_int, woken: Mask) {
        if self.id == 0 {
            return;
        }
        if woken.has(Mask::URGED) {
            self.send(libc::SIGURG);
        }
        if flags & libc::O_ASYNC == 0 {
            return;
        }
        let (code, band) = reason(woken);
        // The kernel takes its own codes only from a thread that signals itself.
        let tells = |code| self.queue(self.signal, &Information::new(self.signal, code, band, fd));
        if self.signal == 0 || self.id < 0 || !(tells(code) || tells(SI_SIGIO)) {
            self.send(libc::SIGIO);
        }
    }
}

/// `siginfo_t`, as `F_SETSIG` asks for it.
#[repr(C)]
struct Information {
    signal: c_int,
    error: c_int,
    code: c_int,
    padding: c_int,
    band: c_long,
    fd: c_int,
    rest: [c_int; 25],
}

impl Information {
    fn new(signal: c_int, code: c_int, band: c_long, fd: c_int) -> Self {
        Self { signal, error: 0, code, padding: 0, band, fd, rest: [0; 25] }
    }
}

/// A queued `SIGIO` (`asm-generic/siginfo.h`).
const SI_SIGIO: c_int = -5;

/// The code of what has happened (`POLL_IN` and its kin), and its events (`fs/fcntl.c`, `band_table`).
fn reason(woken: Mask) -> (c_int, c_long) {
    let table = [
        (Mask::ERR, 4, libc::POLLERR),
        (Mask::HUP, 6, libc::POLLHUP | libc::POLLERR),
        (Mask::IN, 1, libc::POLLIN | libc::POLLRDNORM),
        (Mask::PRI, 5, libc::POLLPRI | libc::POLLRDBAND),
    ];
    let out = (Mask::OUT, 2, libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND);
    let found = table.into_iter().find(|(mask, ..)| woken.has(*mask));
    let (_, code, band) = found.unwrap_or(out);
    (code, band.into())
}

impl State {
    /// What a socket of the kernel's is like that the stack has, too, or instead, from now on.
    pub(crate) fn place_like_kernels(&mut self, fd: c_int) -> Place {
        let flags = status_flags(fd);
        let owner = match kinds::untouched(fd) {
            // Nobody was named.
            Some(_) => Owner::default(),
            None => Owner::of_kernels(fd),
        };
        self.is_owned |= owner.id != 0;
        Place { flags, owner, ..Place::default() }
    }

    /// The kernel was told who gets the signals of a socket that the stack has, too, or that somebody does.
    pub(crate) fn follow_kernel(&mut self, fd: c_int) {
        let Place { flags, owner, .. } = self.place_like_kernels(fd);
        let place = self.shared_place(fd);
        (place.flags, place.owner) = (flags, owner);
    }

    /// Sets who gets a session's signals.
    ///
    /// # Errors
    /// [`Errno::SRCH`]: there is no such process. [`Errno::INVAL`].
    pub(crate) fn set_owner(&mut self, fd: c_int, id: c_int) -> Result<(), Errno> {
        if id == c_int::MIN {
            return Err(Errno::INVAL);
        }
        self.belong(fd, id, true)
    }

    /// A session's signals are a process's or group's from now on, or a thread's.
    fn belong(&mut self, fd: c_int, id: c_int, is_process: bool) -> Result<(), Errno> {
        let owner = &mut self.shared_place(fd).owner;
        let new = Owner { id, is_process, ..*owner };
        if id == EVERYBODY || id != 0 && !new.send(NONE) {
            return Err(Errno(libc::ESRCH));
        }
        *owner = new;
        self.is_owned |= id != 0;
        Ok(())
    }

    /// `F_SETOWN_EX`
    fn set_extended(&mut self, fd: c_int, owner: Extended) -> Result<(), Errno> {
        match owner.kind {
            THREAD..=GROUP if owner.id < 0 => Err(Errno(libc::ESRCH)),
            THREAD => self.belong(fd, owner.id, false),
            PROCESS => self.belong(fd, owner.id, true),
            GROUP => self.belong(fd, -owner.id, true),
            _ => Err(Errno::INVAL),
        }
    }

    /// `F_GETOWN_EX`
    fn extended(&mut self, fd: c_int) -> Extended {
        let Owner { id, is_process, .. } = self.shared_place(fd).owner;
        let kind = match (is_process, id) {
            (false, _) => THREAD,
            (true, ..0) => GROUP,
            (true, 0..) => PROCESS,
        };
        Extended { kind, id: id.abs() }
    }

    pub(crate) fn owner(&mut self, fd: c_int) -> c_int {
        self.shared_place(fd).owner.id
    }

    /// # Safety
    /// As for `fcntl` with either command.
    unsafe fn own_extended(
        &mut self,
        fd: c_int,
        command: c_int,
        owner: *mut Extended,
    ) -> Result<c_int, Errno> {
        if command == SET_EXTENDED {
            memory::readable(owner, size_of::<Extended>())?;
            // SAFETY: the caller's promise.
            return self.set_extended(fd, unsafe { owner.read() }).map(|()| 0);
        }
        memory::writable(owner, size_of::<Extended>())?;
        // SAFETY: the caller's promise.
        unsafe { owner.write(self.extended(fd)) };
        Ok(0)
    }

    /// `F_SETOWN` and its kin; `None`: another command.
    ///
    /// # Safety
    /// As for `fcntl`.
    pub(crate) unsafe fn own_by(
        &mut self,
        fd: c_int,
        command: c_int,
        argument: c_long,
    ) -> Option<Result<c_int, Errno>> {
        Some(match command {
            libc::F_SETOWN => self.set_owner(fd, argument as c_int).map(|()| 0),
            libc::F_GETOWN => Ok(self.owner(fd)),
            SET_EXTENDED | GET_EXTENDED => {
                let owner = std::ptr::with_exposed_provenance_mut::<Extended>(argument as usize);
                // SAFETY: the caller's promise.
                unsafe { self.own_extended(fd, command, owner) }
            }
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

/// `F_SETSIG`, `F_GETSIG`, `F_SETOWN_EX` and `F_GETOWN_EX` (`asm-generic/fcntl.h`).
const SET_SIGNAL: c_int = 10;
const GET_SIGNAL: c_int = 11;
const SET_EXTENDED: c_int = 15;
const GET_EXTENDED: c_int = 16;

/// Whether a command says who gets the signals of a file, and which.
pub(crate) fn sets_owner(command: c_int) -> bool {
    matches!(command, libc::F_SETOWN | SET_EXTENDED | SET_SIGNAL)
}
