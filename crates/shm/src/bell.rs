//! Waking across a border of trust, so that a thread which must not be late shares no kernel object with the other side.
//!
//! Whoever writes to an eventfd, or sends to a socket, calls everything that watches it or the other end before it
//! returns, and a process may watch one descriptor some millions of times (`fs.epoll.max_user_watches`). With a million
//! watches one ring took 224 ms, with interrupts off, and a thread that merely polled an eventfd of both sides waited
//! 252 ms for the lock (Linux 6.18, 2-core virtual machine). A descriptor's flags belong to both sides as well: an
//! eventfd that is full and was made blocking stops its writer for ever, and there is no write that says by itself that it
//! does not wait (`RWF_NOWAIT` is refused for eventfds). Messages carry descriptors, and whoever drops the last of
//! one runs its close, which may take as long as its owner likes (`SO_LINGER`).
//!
//! So there are two kinds, each a pair of sockets, and on our side two threads: the one that works and one of the
//! peer's own, which may be slowed by that peer and by nobody else.
//! - **Inwards** ([`inward`]): the peer sends. The working thread waits for a [`Watch`], an epoll instance of its own
//!   that reports each arrival once; it never touches the socket. The other thread takes out what arrived ([`Drain`]).
//! - **Outwards** ([`outward`]): the other thread sends ([`Caller`]), when the working one has told it to. This end is shut
//!   for reading, so that the peer can send nothing to it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::ioctl_fionread;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};

/// Bytes that may wait in an inward bell: each ring, of one byte, is charged less than 1 KiB.
const WAITING: usize = 256 << 10;
/// Rings after which an inward bell should be drained: half of what finds room.
pub const RINGS: u32 = 128;
/// Takes of a drain at most: a peer that goes on sending must not keep it.
const TAKES: usize = 64;
/// `SO_PASSRIGHTS` (Linux 6.16, `include/uapi/asm-generic/socket.h`), which neither `libc` nor `rustix` names yet.
const SO_PASSRIGHTS: i32 = 83;

/// Forbids the peer to send descriptors to this socket, or to the sockets that this one accepts: its `sendmsg` fails with
/// `EPERM`. `false`: the kernel is older than 6.16 and can't.
pub fn forbid_descriptors(socket: impl AsFd) -> bool {
    pass_rights(socket.as_fd(), 0)
}

/// Takes [`forbid_descriptors`] back for one socket.
pub fn allow_descriptors(socket: impl AsFd) -> bool {
    pass_rights(socket.as_fd(), 1)
}

fn pass_rights(socket: BorrowedFd<'_>, allowed: i32) -> bool {
    // SAFETY: the kernel reads the four bytes of `allowed`, which lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const allowed).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    done == 0
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Where the kernel can't, only the thread that drains and closes it meets what comes.
    forbid_descriptors(&ours);
    Ok((ours, theirs))
}

/// A bell that the peer rings: what the working thread waits for, what the other thread drains, and the peer's end.
///
/// # Errors
/// When the process has no file descriptor left.
pub fn inward() -> io::Result<(Watch, Drain, OwnedFd)> {
    let (ours, theirs) = pair()?;
    set_socket_send_buffer_size(&theirs, WAITING)?;
    let arrivals = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&arrivals, &ours, EventData::new_u64(0), EventFlags::IN | EventFlags::ET)?;
    Ok((Watch { arrivals }, Drain { socket: ours }, theirs))
}

/// A bell that rings the peer, and the peer's end.
///
/// # Errors
/// When the process has no file descriptor left.
pub fn outward() -> io::Result<(Caller, OwnedFd)> {
    let (ours, theirs) = pair()?;
    shutdown(&ours, Shutdown::Read)?;
    Ok((Caller { socket: ours }, theirs))
}

/// The working thread's part of an inward bell.
#[derive(Debug)]
pub struct Watch {
    arrivals: OwnedFd,
}

impl Watch {
    /// Takes back what was rung, after [`AsFd`] became readable. Gives whether something was. A peer that has closed its
    /// end is told once.
    pub fn clear(&self) -> bool {
        let mut event = [MaybeUninit::<Event>::uninit()];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.arrivals, &mut event, Some(&now)).is_ok_and(|(rung, _)| !rung.is_empty())
    }
}

impl AsFd for Watch {
    /// Readable when something was rung since the last [`clear`](Self::clear).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

/// The other thread's part of an inward bell. Draining and dropping it may take as long as the peer likes where
/// descriptors can't be forbidden.
#[derive(Debug)]
pub struct Drain {
    socket: OwnedFd,
}

impl Drain {
    /// Takes out what has arrived, but for one byte: a ring that the working thread has not heard of yet would be taken back with
    /// it, because the kernel asks the socket once more before it says that the [`Watch`] is readable.
    pub fn drain(&self) {
        let mut bytes = [0; 4096];
        for _ in 0..TAKES {
            let waiting = ioctl_fionread(&self.socket).unwrap_or(0);
            let Ok(most @ 1..) = usize::try_from(waiting.saturating_sub(1)) else { break };
            let room = bytes.len().min(most);
            let bytes = bytes.get_mut(..room).unwrap_or_default();
            let taken = recv(&self.socket, bytes, RecvFlags::DONTWAIT);
            if !taken.is_ok_and(|(taken, _)| taken > 0) {
                break;
            }
        }
    }
}

/// Rings the peer.
#[derive(Debug)]
pub struct Caller {
    socket: OwnedFd,
}

impl Caller {
    /// Rings. A socket that is full is as good as a rung bell, one without a peer needs none.
    pub fn ring(&self) {
        let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn is_readable(fd: impl AsFd) -> bool {
        is_readable_within(fd, 0)
    }

    fn is_readable_within(fd: impl AsFd, seconds: i64) -> bool {
        let longest = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let mut polled = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
        poll(&mut polled, Some(&longest)).unwrap() > 0
    }

    fn ring(bell: &OwnedFd) -> Result<usize, rustix::io::Errno> {
        send(bell, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }

    #[test]
    fn each_ring_is_told_once_and_drained_later() {
        let (watch, drain, theirs) = inward().unwrap();
        assert!(!is_readable(&watch) && !watch.clear());
        for _ in 0..3 {
            ring(&theirs).unwrap();
            assert!(is_readable(&watch));
            assert!(watch.clear());
            // What was rung lies there still, and is not told again.
            assert!(!is_readable(&watch) && !watch.clear());
        }
        drain.drain();
        assert!(!is_readable(&watch));
        ring(&theirs).unwrap();
        assert!(watch.clear());
    }

    #[test]
    fn a_ring_is_heard_of_that_was_drained_before() {
        let (watch, drain, theirs) = inward().unwrap();
        for _ in 0..3 {
            (0..RINGS).for_each(|_| assert_eq!(ring(&theirs), Ok(1)));
            drain.drain();
            assert!(is_readable(&watch) && watch.clear());
            drain.drain();
            assert!(!is_readable(&watch) && !watch.clear());
        }
    }

    #[test]
    fn as_many_rings_as_promised_find_room_without_a_drain() {
        let (watch, drain, theirs) = inward().unwrap();
        for _ in 0..2 {
            (0..2 * RINGS).for_each(|_| assert_eq!(ring(&theirs), Ok(1)));
            assert!(watch.clear());
            drain.drain();
        }
        while ring(&theirs).is_ok() {}
        drain.drain();
        watch.clear();
        ring(&theirs).unwrap();
        assert!(watch.clear(), "a full bell rings again after it was drained");
    }

    #[test]
    fn a_peer_that_goes_is_told_once() {
        let (watch, drain, theirs) = inward().unwrap();
        drop(theirs);
        // A child of another test's may have it, too, until it ends.
        assert!(is_readable_within(&watch, 20) && watch.clear());
        assert!(!is_readable(&watch), "a closed end would end every sleep at once");
        drop(drain);
        assert!(!is_readable(&watch));
    }

    #[test]
    fn nothing_can_be_sent_to_who_only_rings() {
        let (caller, theirs) = outward().unwrap();
        assert_eq!(ring(&theirs), Err(rustix::io::Errno::PIPE));
        caller.ring();
        assert!(is_readable(&theirs));
        // Nobody listens: it is full, and neither waits nor fails.
        (0..20_000).for_each(|_| caller.ring());
        drop(theirs);
        caller.ring();
    }
}
