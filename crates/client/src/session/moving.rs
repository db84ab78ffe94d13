//! Connections that move between processes: what a process says to the daemon about them.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{AddressFamily, SocketType, sockopt};
use shm::attach::{Channel, ChannelError};
use shm::session::{
    Abandon, CarrierId, Deposit, Hand, Reply, Request, WaitOut, Withdraw, Withdrawn, pack, unpack,
};
use transport::TimeWait;

use crate::Error;

use super::Link;
use super::link::{default_socket, unexpected};

/// Bytes of a file with connections at most.
const LONGEST: u64 = 256 << 20;

/// A connection that has a carrier.
#[derive(Debug)]
pub enum Withdrawal {
    /// It was exported at that time (ns of `CLOCK_MONOTONIC`); its bytes.
    Here(u64, Vec<u8>),
    /// Another process is asked for it: [`Event::Parked`](shm::session::Event) or `Event::Lost` follows.
    Recalled,
}

impl Link {
    /// Gives the daemon a connection that has a carrier, as it was exported at that time: ns of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// [`Error::Refused`]: the connection stays the process's.
    pub fn deposit(&self, stack: u32, id: CarrierId, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let file = parcel(&[bytes])?;
        match self.ask(&Request::Deposit(Deposit { stack, id, at }), &[file.as_fd()])?.message {
            Reply::Deposited(_) => Ok(()),
            _ => Err(unexpected("that a connection is taken")),
        }
    }

    /// Asks for a connection that has a carrier.
    ///
    /// # Errors
    /// [`Error::Refused`] when nobody has it any more, or does not give it.
    pub fn withdraw(&self, stack: u32, id: CarrierId) -> Result<Withdrawal, Error> {
        let answer = self.ask(&Request::Withdraw(Withdraw { stack, id }), &[])?;
        match (answer.message, answer.files.into_iter().next()) {
            (Reply::Withdrawn(Withdrawn { at, .. }), Some(file)) => {
                Ok(Withdrawal::Here(at, one(file)?))
            }
            (Reply::Recalling(_), _) => Ok(Withdrawal::Recalled),
            _ => Err(unexpected("a connection")),
        }
    }

    /// Says that the process does not give a connection that it was asked for.
    ///
    /// # Errors
    /// [`Error::DaemonGone`], [`Error::Silent`].
    pub fn decline(&self, id: CarrierId) -> Result<(), Error> {
        self.ask(&Request::Decline(id), &[]).map(drop)
    }

    /// Leaves connections to the daemon that nobody holds any more. Gives how many it has taken: from the first one on.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn abandon(&self, stack: u32, at: u64, connections: &[&[u8]]) -> Result<u32, Error> {
        let (file, count) = (parcel(connections)?, connections.len() as u32);
        match self.ask(&Request::Abandon(Abandon { stack, at, count }), &[file.as_fd()])?.message {
            Reply::Abandoned(taken) => Ok(taken),
            _ => Err(unexpected("that connections are taken")),
        }
    }

    /// Leaves connections in TIME-WAIT to the daemon, as they were exported at that time: ns of `CLOCK_MONOTONIC`;
    /// [`MOST_WAITS`](shm::session::MOST_WAITS) at most. Gives how many it has taken.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn wait_out(&self, stack: u32, at: u64, waits: &[TimeWait]) -> Result<u32, Error> {
        let file = sealed(&TimeWait::write(waits, at))?;
        match self.ask(&Request::WaitOut(WaitOut { stack, at }), &[file.as_fd()])?.message {
            Reply::WaitingOut(taken) => Ok(taken),
            _ => Err(unexpected("that connections are taken")),
        }
    }

    /// Offers connections that nobody has accepted to the other members of a listener. Gives how many were taken.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn hand(
        &self,
        stack: u32,
        listener: u32,
        at: u64,
        connections: &[&[u8]],
    ) -> Result<u32, Error> {
        let (file, count) = (parcel(connections)?, connections.len() as u32);
        let hand = Request::Hand(Hand { stack, listener, at, count });
        match self.ask(&hand, &[file.as_fd()])?.message {
            Reply::Handed(taken) => Ok(taken),
            _ => Err(unexpected("that connections are taken")),
        }
    }
}

/// A new carrier for a connection of that stack, of the daemon at `path` or where [`Link::open`] looks for it. Whether the
/// daemon agrees is found out by [`carrier_id`].
///
/// # Errors
/// [`Error::NoDaemon`].
pub fn open_carrier(path: Option<&Path>, stack: u32) -> Result<OwnedFd, Error> {
    let path = path.map_or_else(default_socket, Path::to_owned);
    let none = |source| Error::NoDaemon { path: path.clone(), source };
    let said = Channel::connect(&path).and_then(|channel| {
        channel.send(&Request::Carrier(stack), &[])?;
        Ok(channel.into_socket())
    });
    said.map_err(|error| match error {
        ChannelError::System(source) => none(source),
        other => none(std::io::Error::other(other.to_string())),
    })
}

/// What a carrier carries: waits that long at most until the daemon has said it. `None`: it is no carrier, or the daemon has
/// refused.
#[must_use]
pub fn carrier_id(file: BorrowedFd<'_>, patience: Duration) -> Option<CarrierId> {
    // Of an ordinary file this costs one system call.
    let is_sequenced = sockopt::socket_type(file) == Ok(SocketType::SEQPACKET);
    if !is_sequenced || sockopt::socket_domain(file) != Ok(AddressFamily::UNIX) {
        return None;
    }
    let time = Timespec::try_from(patience).ok()?;
    let mut polled = [PollFd::new(&file, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut polled, Some(&time)) {}
    match shm::attach::peek::<Reply>(file) {
        Ok(Some(Reply::Carried(id))) => Some(id),
        _ => None,
    }
}

/// The file could not be made.
fn no_file(source: std::io::Error) -> Error {
    Error::System { what: "a file for connections", source }
}

/// A file with connections.
fn parcel(connections: &[&[u8]]) -> Result<OwnedFd, Error> {
    let bytes = pack(connections.iter().copied());
    sealed(&bytes.ok_or_else(|| no_file(std::io::ErrorKind::FileTooLarge.into()))?)
}

/// A file that nobody changes any more.
fn sealed(bytes: &[u8]) -> Result<OwnedFd, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = memfd_create(c"millrace-connections", flags);
    let mut file = File::from(made.map_err(|error| no_file(error.into()))?);
    file.write_all(bytes).map_err(no_file)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    fcntl_add_seals(&file, seals).map_err(|error| no_file(error.into()))?;
    Ok(file.into())
}

/// The one connection in a file.
fn one(file: OwnedFd) -> Result<Vec<u8>, Error> {
    let none = |source| Error::System { what: "a file with a connection", source };
    let file = File::from(file);
    let length = file.metadata().map_err(none)?.len().min(LONGEST);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).map_err(none)?;
    let only = unpack(&bytes, 1).map_err(|error| Error::Nonsense(error.to_string()))?;
    Ok(only.first().map(|connection| connection.to_vec()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::thread;

    use shm::session::Event;

    const ID: CarrierId = CarrierId([7, 9]);
    const OTHER: CarrierId = CarrierId([8, 9]);

    #[test]
    fn connections_travel_in_files_and_events_come_amid() {
        let (here, there) = Channel::pair().unwrap();
        let link = Link::over(here).unwrap();
        let daemon = thread::spawn(move || {
            let asked = there.receive::<Request>().unwrap();
            let Request::Deposit(Deposit { stack: 3, id: ID, at: 44 }) = asked.message else {
                panic!("{:?}", asked.message)
            };
            let file = File::from(asked.files.into_iter().next().unwrap());
            assert!(file.set_len(0).is_err(), "it is sealed");
            there.send(&Reply::Event(Event::Recall(OTHER)), &[]).unwrap();
            there.send(&Reply::Deposited(ID), &[]).unwrap();
            let Request::Withdraw(_) = there.receive::<Request>().unwrap().message else {
                panic!()
            };
            there.send(&Reply::Withdrawn(Withdrawn { id: ID, at: 44 }), &[file.as_fd()]).unwrap();
            let Request::Withdraw(_) = there.receive::<Request>().unwrap().message else {
                panic!()
            };
            there.send(&Reply::Recalling(ID), &[]).unwrap();
            there.send(&Reply::Event(Event::Lost(ID)), &[]).unwrap();
            let Request::Abandon(abandon) = there.receive::<Request>().unwrap().message else {
                panic!()
            };
            assert_eq!((abandon.stack, abandon.at, abandon.count), (3, 45, 2));
            there.send(&Reply::Abandoned(1), &[]).unwrap();
            let asked = there.receive::<Request>().unwrap();
            assert_eq!(asked.message, Request::WaitOut(WaitOut { stack: 3, at: 46 }));
            let mut bytes = Vec::new();
            let mut file = File::from(asked.files.into_iter().next().unwrap());
            std::io::Seek::rewind(&mut file).unwrap();
            std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
            assert_eq!(bytes, TimeWait::write(&[], 46));
            there.send(&Reply::WaitingOut(0), &[]).unwrap();
            there
        });
        link.deposit(3, ID, 44, b"a connection").unwrap();
        assert_eq!(
            link.next_event().unwrap().map(|heard| heard.message),
            Some(Event::Recall(OTHER))
        );
        assert!(link.next_event().unwrap().is_none());
        let Withdrawal::Here(44, bytes) = link.withdraw(3, ID).unwrap() else { panic!() };
        assert_eq!(bytes, b"a connection");
        assert!(matches!(link.withdraw(3, ID).unwrap(), Withdrawal::Recalled));
        assert_eq!(link.abandon(3, 45, &[b"one", b"two"]).unwrap(), 1);
        assert_eq!(link.wait_out(3, 46, &[]).unwrap(), 0);
        assert_eq!(link.next_event().unwrap().map(|heard| heard.message), Some(Event::Lost(ID)));
        drop(daemon.join().unwrap());
        assert!(matches!(link.next_event(), Err(Error::DaemonGone)));
    }

    #[test]
    fn a_carrier_tells_everybody_who_looks() {
        let (here, there) = Channel::pair().unwrap();
        assert_eq!(carrier_id(there.as_fd(), Duration::ZERO), None);
        here.send(&Reply::Carried(ID), &[]).unwrap();
        for _ in 0..3 {
            assert_eq!(carrier_id(there.as_fd(), Duration::ZERO), Some(ID));
        }
        let (here, there) = Channel::pair().unwrap();
        here.send(&Reply::Unlistened(1, 2), &[]).unwrap();
        assert_eq!(carrier_id(there.as_fd(), Duration::from_secs(1)), None);
        let file = File::open("/dev/null").unwrap();
        assert_eq!(carrier_id(file.as_fd(), Duration::from_secs(1)), None);
    }
}
