//! Calls as records: fixed binary forms, as crate `transport` has them for connections that travel.

use transport::moving::{Carried, Reader, Writer};
use transport::{Ends, carried_as};

use crate::errno::Errno;
use crate::message::Outgoing;
use crate::options::Setting;
use crate::session::{How, Id, Kind};

/// What a command asks for. The session's number follows, of a question its own number, then what the call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// Data was written, or read. No answer.
    Look,
    /// `close` without an answer.
    Close,
    /// An option that is on or off and cannot be refused. No answer.
    Switch,
    /// How long packets to an address may be at first. No answer.
    FirstLink,
    /// Connections take no paths beside the network. No answer.
    AvoidPaths,
    /// A stream like others. No answer.
    OpenLike,
    /// A connection sends no more, which it cannot refuse. No answer.
    Finish,
    /// `connect` has said that a connection is established. No answer.
    Conclude,
    /// Until when nothing is answered with a reset. No answer.
    KeepQuiet,
    /// The same of a port. No answer.
    SpareResets,
    Open,
    Bind,
    Listen,
    Accept,
    Connect,
    Disconnect,
    Receive,
    Send,
    Shutdown,
    Linger,
    IsLingering,
    Name,
    Peer,
    Unsent,
    SetOption,
    Option,
    AddPorts,
    RemovePorts,
    Hold,
    /// Nothing is answered with a reset from the answer on.
    FallQuiet,
    IsDrained,
    HasHandshakes,
    ExportUnaccepted,
    ExportWaiting,
    /// A piece of what a later call takes.
    Put,
    /// A piece of what an earlier call gave.
    Get,
    ImportUnheld,
    OpenWith,
    OpenDatagrams,
    /// What the error queue has.
    Report,
    Export,
    Import,
}

carried_as!(Verb {
    Self::Look => 1 => Self::Look,
    Self::Close => 2 => Self::Close,
    Self::Open => 3 => Self::Open,
    Self::Bind => 4 => Self::Bind,
    Self::Listen => 5 => Self::Listen,
    Self::Accept => 6 => Self::Accept,
    Self::Connect => 7 => Self::Connect,
    Self::Disconnect => 8 => Self::Disconnect,
    Self::Receive => 9 => Self::Receive,
    Self::Send => 10 => Self::Send,
    Self::Shutdown => 11 => Self::Shutdown,
    Self::Linger => 12 => Self::Linger,
    Self::IsLingering => 13 => Self::IsLingering,
    Self::Name => 14 => Self::Name,
    Self::Peer => 15 => Self::Peer,
    Self::Unsent => 16 => Self::Unsent,
    Self::SetOption => 17 => Self::SetOption,
    Self::Option => 18 => Self::Option,
    Self::AddPorts => 19 => Self::AddPorts,
    Self::RemovePorts => 20 => Self::RemovePorts,
    Self::KeepQuiet => 21 => Self::KeepQuiet,
    Self::Hold => 22 => Self::Hold,
    Self::IsDrained => 23 => Self::IsDrained,
    Self::HasHandshakes => 24 => Self::HasHandshakes,
    Self::ExportUnaccepted => 26 => Self::ExportUnaccepted,
    Self::Put => 27 => Self::Put,
    Self::Get => 28 => Self::Get,
    Self::ImportUnheld => 29 => Self::ImportUnheld,
    Self::OpenWith => 31 => Self::OpenWith,
    Self::OpenLike => 32 => Self::OpenLike,
    Self::Switch => 33 => Self::Switch,
    Self::FirstLink => 34 => Self::FirstLink,
    Self::Report => 35 => Self::Report,
    Self::Export => 36 => Self::Export,
    Self::Import => 37 => Self::Import,
    Self::AvoidPaths => 38 => Self::AvoidPaths,
    Self::SpareResets => 39 => Self::SpareResets,
    Self::OpenDatagrams => 40 => Self::OpenDatagrams,
    Self::FallQuiet => 41 => Self::FallQuiet,
    Self::Finish => 42 => Self::Finish,
    Self::Conclude => 43 => Self::Conclude,
    Self::ExportWaiting => 44 => Self::ExportWaiting,
});

carried_as!(Kind {
    Self::Stream => 1 => Self::Stream,
    Self::Datagram => 2 => Self::Datagram,
});

carried_as!(How {
    Self::Read => 0 => Self::Read,
    Self::Write => 1 => Self::Write,
    Self::Both => 2 => Self::Both,
});

/// A command: the verb, the session, and what `fill` adds.
pub(super) fn command(verb: Verb, id: Id, fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut to = Writer::new(0);
    verb.put(&mut to);
    id.0.put(&mut to);
    fill(&mut to);
    to.bytes
}

/// An answer: 0 or why not, and what the call gives.
pub(super) fn answer<T>(result: Result<T, Errno>, fill: impl FnOnce(T, &mut Writer)) -> Vec<u8> {
    let mut to = Writer::new(0);
    match result {
        Ok(value) => {
            0_i32.put(&mut to);
            fill(value, &mut to);
        }
        Err(error) => error.0.put(&mut to),
    }
    to.bytes
}

/// An answer as it goes to the process: ahead of it, the number of its question.
pub(super) fn numbered(question: u64, answer: &[u8]) -> Vec<u8> {
    let mut to = Writer::new(0);
    question.put(&mut to);
    to.bytes.extend_from_slice(answer);
    to.bytes
}

/// The answer of a call that gives something simple.
pub(super) fn plain<T: Carried>(result: Result<T, Errno>) -> Vec<u8> {
    answer(result, |value, to| value.put(to))
}

/// The answer of a call that gives nothing.
pub(super) fn bare(result: Result<(), Errno>) -> Vec<u8> {
    answer(result, |(), _| {})
}

/// Nothing can be read where something should be: it comes from somebody who speaks otherwise.
pub(super) fn malformed<E>(_: E) -> Errno {
    Errno::INVAL
}

/// Options, one behind the other.
pub(super) fn put_options(options: &[Setting], to: &mut Writer) {
    for Setting { level, name, value } in options {
        (*level, *name).put(to);
        to.block(value);
    }
}

/// How something is sent, and where to.
pub(super) fn put_outgoing(outgoing: &Outgoing, to: &mut Writer) {
    let Outgoing { to: remote, source, more, end_of_record, urgent, fast_open, .. } = outgoing;
    remote.put(to);
    source.put(to);
    ((*more, *end_of_record), (*urgent, *fast_open)).put(to);
    (outgoing.segment_size, (outgoing.service, outgoing.ttl)).put(to);
}

pub(super) fn take_outgoing(from: &mut Reader<'_>) -> Result<Outgoing, Errno> {
    let remote = Carried::take(from).map_err(malformed)?;
    let source = Carried::take(from).map_err(malformed)?;
    let flags: ((bool, bool), (bool, bool)) = Carried::take(from).map_err(malformed)?;
    let ((more, end_of_record), (urgent, fast_open)) = flags;
    let (segment_size, (service, ttl)) = Carried::take(from).map_err(malformed)?;
    Ok(Outgoing {
        to: remote,
        source,
        more,
        end_of_record,
        urgent,
        fast_open,
        segment_size,
        service,
        ttl,
    })
}

/// Both ends of a connection.
pub(super) fn put_ends(ends: Option<&Ends>, to: &mut Writer) {
    ends.map(|ends| (ends.local, ends.remote)).put(to);
}

pub(super) fn take_ends(from: &mut Reader<'_>) -> Result<Option<Ends>, Errno> {
    let ends: Option<_> = Carried::take(from).map_err(malformed)?;
    Ok(ends.map(|(local, remote)| Ends { local, remote }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_back() {
        let bytes = command(Verb::Shutdown, Id(7), |to| How::Both.put(to));
        let mut from = Reader::new(&bytes, 0, 0);
        assert_eq!(Verb::take(&mut from), Ok(Verb::Shutdown));
        assert_eq!((u32::take(&mut from), How::take(&mut from)), (Ok(7), Ok(How::Both)));
        let outgoing = Outgoing {
            to: Some("192.0.2.1:80".parse().unwrap()),
            more: true,
            fast_open: true,
            segment_size: 1000,
            service: Some(8),
            ..Outgoing::default()
        };
        let mut to = Writer::new(0);
        put_outgoing(&outgoing, &mut to);
        assert_eq!(take_outgoing(&mut Reader::new(&to.bytes, 0, 0)), Ok(outgoing));
        assert!(take_outgoing(&mut Reader::new(&to.bytes[1..], 0, 0)).is_err());
        assert_eq!(bare(Err(Errno::PIPE)), 32_i32.to_le_bytes());
    }
}
