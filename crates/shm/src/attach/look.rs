//! What waits at a connection, before anybody receives it.
//!
//! Descriptors that come with a message become those of the process that receives it with room for them, and closing one may take
//! as long as its owner likes. Without room for them, the kernel only says that there are some.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, recv, recvmsg};
use serde::de::DeserializeOwned;

use super::channel::{ChannelError, MESSAGE, parse};

/// The next message of a connection, which nobody has received yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting<M> {
    /// What is said.
    pub message: M,
    /// Whether descriptors come along.
    pub brings: bool,
}

/// Looks at the next message of a connection, which stays there. `None`: nothing was said yet.
///
/// # Errors
/// [`ChannelError`].
pub fn look<M: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> Result<Option<Waiting<M>>, ChannelError> {
    let mut bytes = vec![0; MESSAGE];
    let mut none = RecvAncillaryBuffer::new(&mut []);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let got = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut none, flags) {
        Ok(got) => got,
        Err(Errno::AGAIN) => return Ok(None),
        Err(Errno::CONNRESET) => return Err(ChannelError::Closed),
        Err(error) => return Err(error.into()),
    };
    let brings = got.flags.contains(ReturnFlags::CTRUNC);
    if got.bytes == 0 && !brings {
        return Err(ChannelError::Closed);
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(ChannelError::TooLong(got.bytes));
    }
    let message = parse(bytes.get(..got.bytes).unwrap_or_default())?;
    Ok(Some(Waiting { message, brings }))
}

/// Takes the next message away, which was looked at.
///
/// # Errors
/// [`ChannelError::System`].
pub fn skip(socket: BorrowedFd<'_>) -> Result<(), ChannelError> {
    let mut beginning = [0];
    recv(socket, &mut beginning, RecvFlags::DONTWAIT)?;
    Ok(())
}

/// Takes the next message away, unless descriptors come along: whoever closes a connection where something waits resets it, and the
/// other side may not hear what was said last.
///
/// # Errors
/// [`ChannelError::System`].
pub fn skip_bare(socket: BorrowedFd<'_>) -> Result<(), ChannelError> {
    let mut none = RecvAncillaryBuffer::new(&mut []);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut none, flags)?;
    if got.flags.contains(ReturnFlags::CTRUNC) { Ok(()) } else { skip(socket) }
}

/// The next message of a connection, which stays there for others to hear. `None`: nothing was said yet.
///
/// # Errors
/// [`ChannelError`].
pub fn peek<M: DeserializeOwned>(socket: BorrowedFd<'_>) -> Result<Option<M>, ChannelError> {
    Ok(look(socket)?.map(|waiting| waiting.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::{Channel, Request};

    use std::os::fd::AsFd as _;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use rustix::net::{SendFlags, send};

    const BREATH: Duration = Duration::from_millis(1);

    #[test]
    fn what_comes_along_is_seen_and_not_received() {
        let (here, there) = Channel::pair().unwrap();
        assert_eq!(look::<Request>(there.as_fd()).unwrap(), None);
        let file = std::fs::File::open("/dev/null").unwrap();
        here.send(&Request::Ports, &[file.as_fd()]).unwrap();
        here.send(&Request::Ports, &[]).unwrap();
        for brings in [true, false] {
            for _ in 0..2 {
                let waiting = Waiting { message: Request::Ports, brings };
                assert_eq!(look::<Request>(there.as_fd()).unwrap(), Some(waiting));
            }
            skip(there.as_fd()).unwrap();
        }
        assert_eq!(look::<Request>(there.as_fd()).unwrap(), None);
        here.send(&Request::Ports, &[file.as_fd()]).unwrap();
        skip_bare(there.as_fd()).unwrap();
        assert!(look::<Request>(there.as_fd()).unwrap().unwrap().brings, "it is there still");
        skip(there.as_fd()).unwrap();
        here.send(&Request::Ports, &[]).unwrap();
        skip_bare(there.as_fd()).unwrap();
        assert_eq!(look::<Request>(there.as_fd()).unwrap(), None);
        send(&here, &[b' '; MESSAGE + 1], SendFlags::empty()).unwrap();
        assert!(matches!(look::<Request>(there.as_fd()), Err(ChannelError::TooLong(_))));
        skip(there.as_fd()).unwrap();
        drop(here);
        // A child of another test's may have its end until it runs its program.
        let begun = Instant::now();
        let end = loop {
            match look::<Request>(there.as_fd()) {
                Ok(None) if begun.elapsed() < Duration::from_secs(20) => sleep(BREATH),
                end => break end,
            }
        };
        assert!(matches!(end, Err(ChannelError::Closed)), "{end:?}");
    }
}
