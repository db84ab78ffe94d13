//! What a process brings: connections in a file that it has made.

use std::os::fd::{AsFd, OwnedFd};

use forward::steering::Flow;
use host::Parts;
use rustix::fs::{FileType, MemfdFlags, fstat, memfd_create};
use rustix::io::{Errno, pread, write};
use shm::attach::Refusal;
use shm::connections::Sequences;
use shm::session::{MOST_WAITS, pack, unpack};
use transport::{State, Summary, TimeWait};

use super::super::LastWords;
use super::super::parking::flow_of;
use crate::clock;
use crate::processes::{invalid, no_resources};

/// A connection that was read and looked at.
#[derive(Debug)]
pub(in crate::sessions) struct Cargo {
    /// What belongs to the socket.
    pub(in crate::sessions) own: Vec<u8>,
    /// The connection; empty: the socket has none.
    pub(in crate::sessions) connection: Vec<u8>,
    pub(in crate::sessions) summary: Option<Summary>,
}

impl Cargo {
    /// Of bytes that anybody may have written.
    pub(in crate::sessions) fn of(bytes: &[u8]) -> Result<Self, Refusal> {
        let wrong = |error: transport::ImportError| invalid(format!("the connection: {error}"));
        let Parts { own, connection } = Parts::of(bytes).map_err(wrong)?;
        let summary = match connection.is_empty() {
            true => None,
            false => Some(Summary::of(connection).map_err(wrong)?),
        };
        Ok(Self { own: own.to_vec(), connection: connection.to_vec(), summary })
    }

    /// The flow whose packets are for it. `None`: there is none, or it is over.
    pub(in crate::sessions) fn flow(&self) -> Option<Flow> {
        let summary = self.summary.filter(|summary| summary.state != State::Closed)?;
        Some(flow_of(&summary.ends))
    }

    /// Whether nobody has accepted it yet.
    pub(in crate::sessions) fn waits(&self) -> bool {
        self.summary.is_some_and(|summary| summary.is_waiting || summary.is_half_open)
    }

    /// Whether its handshake is under way.
    pub(in crate::sessions) fn is_half_open(&self) -> bool {
        self.summary.is_some_and(|summary| summary.is_half_open)
    }

    /// What its peer is told when it ends at once. `None`: nothing, it has acknowledged the end.
    pub(in crate::sessions) fn last_words(&self) -> Option<LastWords> {
        let Flow { local, remote, .. } = self.flow()?;
        let Summary { state, sequences, .. } = self.summary?;
        if matches!(state, State::FinWait2 | State::TimeWait) {
            return None;
        }
        let (unacknowledged, next, expected) = sequences;
        let (unacknowledged, next, expected) = (unacknowledged.0, next.0, expected.0);
        // No time stamp is needed for a reset (RFC 7323 3.2).
        let sequences = Sequences { unacknowledged, next, expected, timestamps: None };
        LastWords::new(local, remote, sequences)
    }

    /// What its FIFOs are to hold.
    pub(in crate::sessions) fn room(&self) -> (usize, usize) {
        self.summary.map_or((0, 0), |summary| (summary.receive, summary.transmit))
    }

    /// What counts for its user.
    pub(in crate::sessions) fn bytes(&self) -> usize {
        let (receive, transmit) = self.room();
        self.own.len() + receive.saturating_add(transmit)
    }
}

/// Reads a file that holds so many connections. `most`: bytes.
pub(in crate::sessions) fn read(
    file: &OwnedFd,
    count: u32,
    most: usize,
) -> Result<Vec<Cargo>, Refusal> {
    let bytes = contents(file, most)?;
    let connections = unpack(&bytes, count).map_err(|error| invalid(error.to_string()))?;
    connections.into_iter().map(Cargo::of).collect()
}

/// Reads a file that holds connections in TIME-WAIT that left their stack at that time: ns.
pub(in crate::sessions) fn read_waits(file: &OwnedFd, at: u64) -> Result<Vec<TimeWait>, Refusal> {
    let bytes = contents(file, TimeWait::bytes(MOST_WAITS))?;
    let now = clock::now();
    let waits = TimeWait::read(&bytes, now, now.saturating_sub(at));
    waits.map_err(|error| invalid(format!("the connections in TIME-WAIT: {error}")))
}

/// All of a file. It may be anybody's and anything: this can take as long as its owner likes. `most`: bytes.
fn contents(file: &OwnedFd, most: usize) -> Result<Vec<u8>, Refusal> {
    let system = |error: Errno| invalid(format!("the file of connections: {error}"));
    let status = fstat(file).map_err(system)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(invalid("connections come in a file (memfd_create), and nothing else"));
    }
    let length = usize::try_from(status.st_size).unwrap_or(usize::MAX);
    if length > most {
        return Err(no_resources(format!(
            "{length} bytes of connections at once; {most} are allowed"
        )));
    }
    let mut bytes = vec![0; length];
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match pread(file, rest, at as u64) {
            Ok(0) => return Err(invalid("the file of connections has become shorter")),
            Ok(read) => at += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(system(error)),
        }
    }
    Ok(bytes)
}

/// A file with one connection, for a process.
pub(in crate::sessions) fn written(own: &[u8], connection: &[u8]) -> Result<OwnedFd, Refusal> {
    let joined = Parts { own, connection }.joined();
    let bytes = pack([&joined[..]]).ok_or_else(|| no_resources("a connection is too long"))?;
    let failed = |error: Errno| no_resources(format!("a file for a connection: {error}"));
    let file = memfd_create("millrace-connection", MemfdFlags::CLOEXEC).map_err(failed)?;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        match write(file.as_fd(), rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    use transport::{Ends, Seq};

    const MOST: usize = 1 << 20;

    #[test]
    fn who_has_acknowledged_the_end_is_told_nothing() {
        let told = |state, remote: &str| {
            let (local, remote) = ("192.0.2.1:80".parse().unwrap(), remote.parse().unwrap());
            let summary = Summary {
                ends: Ends { local, remote },
                state,
                is_half_open: false,
                is_waiting: false,
                receive: 0,
                transmit: 0,
                sequences: (Seq(1), Seq(2), Seq(3)),
            };
            let cargo = Cargo { own: vec![], connection: vec![], summary: Some(summary) };
            cargo.last_words().is_some()
        };
        let peer = "198.51.100.7:5000";
        for state in [State::Established, State::CloseWait, State::FinWait1, State::LastAck] {
            assert!(told(state, peer), "{state:?}");
        }
        for state in [State::FinWait2, State::TimeWait, State::Closed] {
            assert!(!told(state, peer), "{state:?}");
        }
        assert!(!told(State::Established, "224.0.0.1:5000"), "a group");
        assert!(!told(State::Established, "[2001:db8::2]:5000"), "of another version");
    }

    #[test]
    fn a_socket_without_a_connection_comes_and_goes() {
        let file = written(b"its own", b"").unwrap();
        let cargo = read(&file, 1, MOST).unwrap().pop().unwrap();
        assert_eq!((&cargo.own[..], cargo.flow(), cargo.bytes()), (&b"its own"[..], None, 7));
    }

    #[test]
    fn what_is_no_list_of_time_waits_is_refused() {
        let file = |bytes: &[u8]| {
            let file = memfd_create("waits", MemfdFlags::CLOEXEC).unwrap();
            assert_eq!(write(&file, bytes), Ok(bytes.len()));
            file
        };
        let none = TimeWait::write(&[], 5);
        assert_eq!(read_waits(&file(&none), 5).unwrap().len(), 0);
        let message = |bytes: &[u8]| read_waits(&file(bytes), 5).unwrap_err().message;
        assert!(message(b"").contains("a part is missing"));
        assert!(message(&[&none[..], b"garbage"].concat()).contains("a part is missing"));
        assert!(message(b"garbage").contains("format version"));
        let most = TimeWait::bytes(MOST_WAITS);
        assert!(message(&vec![0; most + 1]).contains(&format!("{most} are allowed")));
    }

    #[test]
    fn what_is_no_file_of_connections_is_refused() {
        let message = |file: &OwnedFd, count, most| read(file, count, most).unwrap_err().message;
        let file = written(b"its own", b"garbage that is no connection").unwrap();
        assert!(message(&file, 1, MOST).contains("no exported connection"));
        assert!(message(&file, 2, MOST).contains("does not hold 2 connections"));
        assert!(message(&file, u32::MAX, MOST).contains("does not hold"));
        assert!(message(&file, 1, 10).contains("10 are allowed"));
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(message(&socket.into(), 1, MOST).contains("memfd_create"));
        let empty = memfd_create("empty", MemfdFlags::CLOEXEC).unwrap();
        assert!(message(&empty, 1, MOST).contains("does not hold"));
        assert!(read(&empty, 0, MOST).unwrap().is_empty());
    }
}
