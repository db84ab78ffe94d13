//! The socket: messages of bounded size with a bounded number of descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, recvmsg, sendmsg, socket_with, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message: bytes.
pub const MESSAGE: usize = 64 * 1024;
/// Descriptors with one message at most: the kernel's limit is 253 (SCM_MAX_FD).
pub const FILES: usize = 160;

/// Groups that a process may be in: the kernel's limit (NGROUPS_MAX).
const MOST_GROUPS: usize = 65_536;

/// `SO_PEERPIDFD` (Linux 6.5).
const PEERPIDFD: libc::c_int = 77;

/// Why nothing was said or understood.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other side is gone.
    #[error("the other side has closed the connection")]
    Closed,
    /// The system refused.
    #[error("the attach socket: {0}")]
    System(#[from] io::Error),
    /// What came is no message.
    #[error("a message that makes no sense: {0}")]
    Malformed(String),
    /// A message that does not fit.
    #[error("a message of {0} bytes, with limits of 65,536 bytes and 160 descriptors")]
    TooLong(usize),
    /// Nobody receives the descriptors that come with a message.
    #[error(
        "the process that receives this user's descriptors does not answer: it may still be \
         closing an earlier one (end the program that lets it wait: a socket that lingers, a file \
         system that does not answer), or could not be started (the log of millraced says why); \
         try again then"
    )]
    Unjudged,
}

impl From<rustix::io::Errno> for ChannelError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// Who is at the other end, says the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Process; 0 when it is in a namespace that this one cannot see.
    pub pid: i32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The process at the other end, whichever has its number by now.
#[derive(Debug)]
pub enum PeerProcess {
    /// It was there a moment ago: readable when it has ended.
    There(OwnedFd),
    /// It has ended.
    Ended,
    /// The kernel does not say.
    Unknown,
}

/// A message with its descriptors.
#[derive(Debug)]
pub struct Received<M> {
    /// What was said.
    pub message: M,
    /// What came with it.
    pub files: Vec<OwnedFd>,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// A connection to who listens at `path`.
    ///
    /// # Errors
    /// [`ChannelError::System`]: nobody listens there, or it is not allowed.
    pub fn connect(path: &Path) -> Result<Self, ChannelError> {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket })
    }

    /// Two ends of a connection, for a process and its children.
    ///
    /// # Errors
    /// [`ChannelError::System`]: no descriptors.
    pub fn pair() -> Result<(Self, Self), ChannelError> {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self { socket: a }, Self { socket: b }))
    }

    /// An accepted connection.
    #[must_use]
    pub fn of(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// The connection itself.
    #[must_use]
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// [`ChannelError::System`].
    pub fn peer(&self) -> Result<PeerCredentials, ChannelError> {
        let credentials = sockopt::socket_peercred(&self.socket)?;
        Ok(PeerCredentials {
            pid: credentials.pid.as_raw_pid(),
            uid: credentials.uid.as_raw(),
            gid: credentials.gid.as_raw(),
        })
    }

    /// The process that has connected, or has made both ends.
    #[must_use]
    pub fn peer_process(&self) -> PeerProcess {
        let mut file: libc::c_int = -1;
        let mut length = size_of_val(&file) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which the number has.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                PEERPIDFD,
                (&raw mut file).cast(),
                &raw mut length,
            )
        };
        if done == 0 && file >= 0 {
            // SAFETY: the call has made it, and nobody else knows it.
            return PeerProcess::There(unsafe { OwnedFd::from_raw_fd(file) });
        }
        match io::Error::last_os_error().raw_os_error() {
            // Before Linux 6.16, one that was waited for has no descriptor any more.
            Some(libc::ESRCH | libc::EINVAL) => PeerProcess::Ended,
            _ => PeerProcess::Unknown,
        }
    }

    /// The groups of who is at the other end, the first one included.
    ///
    /// # Errors
    /// [`ChannelError::System`].
    pub fn peer_groups(&self) -> Result<Vec<u32>, ChannelError> {
        let mut groups = vec![0_u32; MOST_GROUPS];
        let mut length = size_of_val(&groups[..]) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which the vector has, and says how many.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error().into());
        }
        groups.truncate(length as usize / size_of::<u32>());
        groups.push(self.peer()?.gid);
        Ok(groups)
    }

    /// Says something. A socket that does not block and is full fails with `WouldBlock`.
    ///
    /// # Errors
    /// [`ChannelError`].
    pub fn send<M: Serialize>(
        &self,
        message: &M,
        files: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        let bytes = serde_json::to_vec(message)
            .map_err(|error| ChannelError::Malformed(error.to_string()))?;
        if bytes.len() > MESSAGE || files.len() > FILES {
            return Err(ChannelError::TooLong(bytes.len()));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(ChannelError::TooLong(bytes.len()));
        }
        match sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                Err(ChannelError::Closed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Hears something; waits for it unless the socket does not block.
    ///
    /// # Errors
    /// [`ChannelError::Closed`]; [`ChannelError::Malformed`] for what is no message or too long; descriptors
    /// that came with it are closed.
    pub fn receive<M: DeserializeOwned>(&self) -> Result<Received<M>, ChannelError> {
        self.receive_as(RecvFlags::CMSG_CLOEXEC)
    }

    /// Hears what was said already. `None`: nothing.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    pub fn receive_now<M: DeserializeOwned>(&self) -> Result<Option<Received<M>>, ChannelError> {
        match self.receive_as(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT) {
            Ok(received) => Ok(Some(received)),
            Err(ChannelError::System(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn receive_as<M: DeserializeOwned>(
        &self,
        flags: RecvFlags,
    ) -> Result<Received<M>, ChannelError> {
        let mut bytes = vec![0; MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut receive =
            || recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags);
        // A connection that was reset says so once, and then what was said before.
        let got = match receive() {
            Err(rustix::io::Errno::CONNRESET) => receive(),
            got => got,
        };
        let got = match got {
            Err(rustix::io::Errno::CONNRESET) => return Err(ChannelError::Closed),
            got => got?,
        };
        let files = files_of(&mut ancillary);
        if got.bytes == 0 {
            return Err(ChannelError::Closed);
        }
        if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(ChannelError::TooLong(got.bytes));
        }
        let message = parse(bytes.get(..got.bytes).unwrap_or_default())?;
        Ok(Received { message, files })
    }

    /// Whether the other side is gone, without waiting and without taking anything.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polled = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let found = poll(&mut polled, Some(&none)).unwrap_or(0);
        let [polled] = polled;
        found > 0 && polled.revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }
}

/// What came along.
pub(crate) fn files_of(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let files = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    files.collect()
}

/// A message of its bytes, which any process may have sent.
///
/// # Errors
/// [`ChannelError::Malformed`].
pub fn parse<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, ChannelError> {
    serde_json::from_slice(bytes).map_err(|error| ChannelError::Malformed(error.to_string()))
}

impl AsFd for Channel {
    /// To wait for: readable when something was said, or the other side is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::{Hello, Request, peek};

    fn hello() -> Request {
        Request::Hello(Hello { protocol: 1, library: "0".into(), name: "test".into() })
    }

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (here, there) = Channel::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        here.send(&hello(), &[file.as_fd(), file.as_fd()]).unwrap();
        here.send(&Request::Ports, &[]).unwrap();
        let first = there.receive::<Request>().unwrap();
        assert_eq!((first.message, first.files.len()), (hello(), 2));
        let second = there.receive::<Request>().unwrap();
        assert_eq!((second.message, second.files.len()), (Request::Ports, 0));
        assert_eq!(there.peer().unwrap().pid, std::process::id() as i32);
        // Nobody can say before Linux 6.5.
        assert!(!matches!(there.peer_process(), PeerProcess::Ended));
        assert!(there.peer_groups().unwrap().contains(&there.peer().unwrap().gid));
        assert!(!there.is_closed());
        assert!(there.receive_now::<Request>().unwrap().is_none());
        assert!(peek::<Request>(there.as_fd()).unwrap().is_none());
        here.send(&Request::Ports, &[]).unwrap();
        for _ in 0..2 {
            assert_eq!(peek::<Request>(there.as_fd()).unwrap(), Some(Request::Ports));
        }
        assert_eq!(there.receive_now::<Request>().unwrap().unwrap().message, Request::Ports);
        drop(here);
        // A child of another test's may have this end, too, until it ends: that is waited for here.
        assert!(matches!(there.receive::<Request>(), Err(ChannelError::Closed)));
        assert!(there.is_closed());
        assert!(matches!(there.send(&Request::Ports, &[]), Err(ChannelError::Closed)));
    }

    #[test]
    fn what_was_said_last_is_heard_of_a_connection_that_was_reset() {
        let (here, there) = Channel::pair().unwrap();
        there.send(&Request::Ports, &[]).unwrap();
        here.send(&Request::Ports, &[]).unwrap();
        drop(there);
        assert_eq!(here.receive::<Request>().unwrap().message, Request::Ports);
        assert!(matches!(here.receive::<Request>(), Err(ChannelError::Closed)));
    }

    #[test]
    fn nonsense_is_refused() {
        let (here, there) = Channel::pair().unwrap();
        for bytes in
            [&b"{"[..], b"\"ports\"x", b"{\"open\":{}}", b"{\"hello\":{\"x\":1}}", &[0xff; 9]]
        {
            rustix::net::send(&here.socket, bytes, SendFlags::empty()).unwrap();
            assert!(matches!(there.receive::<Request>(), Err(ChannelError::Malformed(_))));
        }
        rustix::net::send(&here.socket, &[b' '; MESSAGE + 1], SendFlags::empty()).unwrap();
        assert!(matches!(there.receive::<Request>(), Err(ChannelError::TooLong(_))));
    }
}
