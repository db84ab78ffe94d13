//! Closing a socket in which descriptors of others may wait.
//!
//! Who closes the last descriptor of a TCP connection with `SO_LINGER` and unsent data sleeps for as long as its owner chose,
//! and a message that nobody received counts. A thread that ends does not: "if the close is due to the process exiting, we
//! never linger" (`net/ipv4/af_inet.c`, `inet_release`; SCTP, vsock and Bluetooth do the same). So the last reference is left
//! to a thread with a table of descriptors of its own, which ends.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

/// Of a thread that calls the kernel twice: bytes.
const STACK: usize = 64 << 10;

/// After something that the system has too few of, and between two looks whether a thread has ended.
const BREATH: Duration = Duration::from_millis(100);
/// After so many looks in vain, that is said.
const LOOKS: u32 = 10;

/// Closes sockets without waiting for what closing them takes.
#[derive(Debug, Default)]
pub struct Abandoned {
    threads: Vec<JoinHandle<()>>,
}

impl Abandoned {
    /// Threads that have not ended. They end at once, where the system lets them.
    pub const MOST: usize = 64;

    /// Closes one in a thread, as soon as there are fewer than [`MOST`](Self::MOST). Each time that none can be had, `complain`
    /// hears why, and once if none of them ends within a second.
    pub fn close(&mut self, mut socket: OwnedFd, complain: impl Fn(io::Error)) {
        let mut looks = 0_u32;
        loop {
            self.threads.retain(|thread| !thread.is_finished());
            if self.threads.len() < Self::MOST {
                match abandon(socket) {
                    Ok(thread) => return self.threads.push(thread),
                    Err((error, back)) => {
                        complain(error);
                        socket = back;
                    }
                }
            } else {
                looks = looks.saturating_add(1);
                if looks == LOOKS {
                    complain(io::Error::other(format!(
                        "{} of them wait for descriptors that are not closed, and nobody is \
                         accepted meanwhile (docs/security.md, known limits)",
                        Self::MOST
                    )));
                }
            }
            sleep(BREATH);
        }
    }
}

/// Gives the thread that closes it; where the system lets a thread have no table of descriptors of its own (`close_range` and
/// `unshare` fail), that one waits.
///
/// Errors: no thread; and the socket again, which is still open.
fn abandon(socket: OwnedFd) -> Result<JoinHandle<()>, (io::Error, OwnedFd)> {
    let (tell, told) = sync_channel(1);
    let (give, given) = sync_channel::<OwnedFd>(1);
    let body = move || {
        let _ = tell.send(has_own_table());
        // Nothing comes when the descriptor here is the last: the end of the thread closes it.
        drop(given.recv());
    };
    let thread = match Builder::new().name("closing".into()).stack_size(STACK).spawn(body) {
        Ok(thread) => thread,
        Err(error) => return Err((error, socket)),
    };
    if told.recv() == Ok(true) {
        drop(socket);
    } else {
        // It takes it, or has panicked.
        let _ = give.send(socket);
    }
    Ok(thread)
}

/// Gives the calling thread a copy of the process's table of descriptors.
fn has_own_table() -> bool {
    let (none, unshare) = (libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE as libc::c_int);
    // SAFETY: no memory is touched, and no descriptor has this number. The thread uses no descriptor from here on: it
    // waits and ends, which closes its copies only.
    let done = unsafe { libc::syscall(libc::SYS_close_range, none, none, unshare) };
    // SAFETY: as above.
    done == 0 || unsafe { libc::unshare(libc::CLONE_FILES) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{IoSlice, Read as _, Write as _};
    use std::mem::MaybeUninit;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::{Duration, Instant};

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};

    /// How long closing takes, and how soon it must be over.
    const LINGER: Duration = Duration::from_secs(60);
    const AT_ONCE: Duration = Duration::from_secs(20);

    /// A connection whose closing takes [`LINGER`], and what must stay open.
    fn lingering() -> (TcpStream, (TcpListener, TcpStream)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (deaf, _) = listener.accept().unwrap();
        sender.set_nonblocking(true).unwrap();
        while sender.write(&[0; 1 << 16]).is_ok() {}
        sockopt::set_socket_linger(&sender, Some(LINGER)).unwrap();
        (sender, (listener, deaf))
    }

    #[test]
    fn it_is_said_once_that_no_thread_ends() {
        let said = Arc::new(AtomicU32::new(0));
        let begun = Instant::now();
        let waits = || {
            let said = Arc::clone(&said);
            let is_over = move || said.load(Relaxed) > 0 || begun.elapsed() > AT_ONCE;
            std::thread::spawn(move || {
                while !is_over() {
                    sleep(BREATH / 10);
                }
            })
        };
        let mut abandoned = Abandoned { threads: (0..Abandoned::MOST).map(|_| waits()).collect() };
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        abandoned.close(ours.into(), |error| {
            assert!(error.to_string().contains("known limits"), "{error}");
            said.fetch_add(1, Relaxed);
        });
        assert_eq!(said.load(Relaxed), 1);
        theirs.set_read_timeout(Some(AT_ONCE)).unwrap();
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0, "it is closed then");
    }

    #[test]
    fn nobody_waits_for_a_descriptor_that_lingers() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        let (lingering, _deaf) = lingering();
        let files = [lingering.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
        sendmsg(&theirs, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).unwrap();
        drop(lingering);
        let thread = abandon(ours.into()).unwrap();
        let begun = Instant::now();
        while !thread.is_finished() {
            assert!(begun.elapsed() < AT_ONCE, "the thread sleeps in a close");
            std::thread::sleep(Duration::from_millis(1));
        }
        theirs.set_read_timeout(Some(AT_ONCE)).unwrap();
        let end = theirs.read(&mut [0]);
        assert!(!matches!(&end, Err(error) if error.kind() == io::ErrorKind::WouldBlock), "open");
    }
}
