//! The memory that both processes have. This one hands it out as the daemon does, the other attaches as a client of the
//! daemon does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client::{Client, Options, PROTOCOL, VERSION};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
    sockopt,
};
use shm::attach::{Channel, ChannelPlace, Open, Opened, Reply, Request, RingPlace, Welcome};
use shm::{Consumer, Doorbell, Producer, Segment};

use crate::failure::Failure;

/// Slots of a queue, as many as memif has in a ring, and bytes of each.
const SLOTS: u32 = 1024;
const CAPACITY: u32 = 2048;
/// The number of the only queues that are handed out.
const NUMBER: u32 = 1;

/// What this process has: the ends that a worker of the daemon has.
pub(super) struct Ends {
    /// To the client.
    pub(super) out: Producer,
    /// From the client.
    pub(super) back: Consumer,
    /// Wakes the client.
    pub(super) bell: Doorbell,
    /// The client would ring it: this side never sleeps.
    _own: Doorbell,
    /// The client's session: for it, the daemon lives as long as this.
    _session: Channel,
}

/// A socket at which a client finds this process.
pub(super) struct Offer {
    listener: OwnedFd,
    path: PathBuf,
    patience: Duration,
    _folder: tempfile::TempDir,
}

impl Offer {
    /// `patience`: how long the client may take to come, and for each of its questions.
    pub(super) fn new(patience: Duration) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("attach.sock");
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let listener = socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(system)?;
        bind(&listener, &SocketAddrUnix::new(&path).map_err(system)?).map_err(system)?;
        listen(&listener, 1).map_err(system)?;
        // It holds for accepting, too.
        sockopt::set_socket_timeout(&listener, sockopt::Timeout::Recv, Some(patience))
            .map_err(system)?;
        Ok(Self { listener, path, patience, _folder: folder })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers a client until its queues have started.
    pub(super) fn serve(self) -> Result<Ends, Failure> {
        let socket = accept_with(&self.listener, SocketFlags::CLOEXEC)
            .map_err(|_| Failure::OtherProcess("it does not attach"))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(self.patience))
            .map_err(system)?;
        let session = Channel::of(socket);
        let strange = Failure::OtherProcess("it does not ask for queues as a client does");
        let Request::Hello(_) = hear(&session)? else { return Err(strange) };
        let (protocol, daemon) = (PROTOCOL, VERSION.into());
        let welcome = Welcome { protocol, daemon, client: 1, ports: Vec::new() };
        say(&session, &Reply::Welcome(welcome), &[])?;
        let Request::Open(open) = hear(&session)? else { return Err(strange) };
        let (opened, made) = Made::of(&open)?;
        let [bell, own] = &made.theirs;
        let files = [made.segment.as_fd(), bell.as_fd(), own.as_fd()];
        say(&session, &Reply::Opened(opened), &files)?;
        let Request::Start(NUMBER) = hear(&session)? else { return Err(strange) };
        say(&session, &Reply::Started(NUMBER), &[])?;
        let Made { out, back, bells: [bell, own], .. } = made;
        Ok(Ends { out, back, bell, _own: own, _session: session })
    }
}

fn system(error: rustix::io::Errno) -> Failure {
    io::Error::from(error).into()
}

fn hear(session: &Channel) -> Result<Request, Failure> {
    let heard = session.receive().map_err(|_| Failure::OtherProcess("it says nothing"))?;
    Ok(heard.message)
}

fn say(session: &Channel, reply: &Reply, files: &[BorrowedFd<'_>]) -> Result<(), Failure> {
    session.send(reply, files).map_err(|_| Failure::OtherProcess("it does not listen"))
}

/// Queues for a client, not handed out yet.
struct Made {
    segment: Arc<Segment>,
    out: Producer,
    back: Consumer,
    /// The client's, and this side's.
    bells: [Doorbell; 2],
    /// Their other ends.
    theirs: [OwnedFd; 2],
}

impl Made {
    fn of(open: &Open) -> Result<(Opened, Self), Failure> {
        let place = |offset| RingPlace { offset, slots: open.slots, capacity: open.capacity };
        let layout = place(0).layout()?;
        let step = layout.bytes().next_multiple_of(64);
        let segment = Arc::new(Segment::create("millrace-bench", 2 * step)?);
        let [out, back] = [0, step].map(|offset| segment.region(offset, layout.bytes()));
        let (Some(out), Some(back)) = (out, back) else {
            return Err(Failure::OtherProcess("its memory is too short"));
        };
        let (out, back) = (Producer::new(out, layout)?, Consumer::new(back, layout)?);
        let (bell, theirs) = Doorbell::pair()?;
        let (own, other) = Doorbell::pair()?;
        let rings = vec![[place(0), place(step as u64)]];
        let channels = vec![ChannelPlace { rings }];
        let opened = Opened { queues: NUMBER, workers: 1, channels, buffers: None };
        Ok((opened, Self { segment, out, back, bells: [bell, own], theirs: [theirs, other] }))
    }
}

/// Attaches to the process that made an offer.
pub(super) fn attach(path: &Path) -> Result<client::Channel, Failure> {
    let client = Client::attach(Some(path), "millrace-bench queue")?;
    let options = Options { slots: SLOTS, capacity: CAPACITY, ..Options::default() };
    let mut queues = client.open(&options)?;
    queues.channels.pop().ok_or(Failure::OtherProcess("it opens no channel"))
}

/// Both ends within a process.
#[cfg(test)]
pub(super) fn both() -> (Ends, client::Channel) {
    let offer = Offer::new(Duration::from_secs(60)).unwrap();
    let path = offer.path().to_owned();
    let attaching = std::thread::spawn(move || attach(&path).unwrap());
    (offer.serve().unwrap(), attaching.join().unwrap())
}

#[cfg(test)]
mod tests {
    use shm::Meta;

    use super::*;

    #[test]
    fn what_one_side_sends_the_other_takes() {
        let (mut ours, mut theirs) = both();
        ours.out.push(&[1; 60], Meta::default()).unwrap();
        let mut packets = Vec::new();
        assert_eq!(theirs.receive(&mut packets, 9).unwrap(), 1);
        assert_eq!(theirs.bytes(&packets[0]), [1; 60]);
        assert_eq!(theirs.send_burst(&mut packets).unwrap(), 1);
        let (taken, mut bytes) = (ours.back.next().unwrap(), [0; 60]);
        assert_eq!((ours.back.copy(&taken, &mut bytes), bytes), (60, [1; 60]));
        ours.back.release(taken);
        assert!(theirs.arm());
        ours.bell.ring(ours.out.consumer_sleeps());
        assert!(!theirs.wait(Some(Duration::ZERO)).unwrap(), "no packet came");
        drop(ours);
        assert!(matches!(theirs.wait(None), Err(client::Error::DaemonGone)));
    }

    #[test]
    fn a_client_that_does_not_come_or_says_nonsense_is_not_waited_for() {
        let offer = Offer::new(Duration::from_millis(1)).unwrap();
        assert!(matches!(offer.serve(), Err(Failure::OtherProcess(_))));
        let offer = Offer::new(Duration::from_secs(60)).unwrap();
        let session = Channel::connect(offer.path()).unwrap();
        session.send(&Request::Ports, &[]).unwrap();
        assert!(matches!(offer.serve(), Err(Failure::OtherProcess(_))));
    }
}
