//! A socket: a thread that accepts and hands each connection to its user's thread, and does nothing else.
//!
//! It takes no message, closes no descriptor of others and waits for nobody but the next connection. Places are
//! counted by user, so that nobody can take those of others; root has its own beside them.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen};
use shm::Abandoned;
use shm::attach::{Channel, Refusal, RefusalKind};
use shm::bell::forbid_descriptors;

use super::desk::{Desk, User};
use super::sparing::complain;
use super::strangers::Strangers;
use super::user::Coming;
use super::{Process, Service};

/// Connections that have not said hello yet: this many beyond `most`.
const SPARE: usize = 16;
/// Connections that wait to be accepted. Whoever comes then waits for one of these to be taken, in turn; with the system's usual
/// 4,096, root waited behind those of whoever stormed the socket: 115 ms and more, as long as this thread takes for so many.
const WAITING: i32 = 64;
/// Between two lines in the log about processes that may not come, or connections that were closed unheard.
const SILENCE: Duration = Duration::from_secs(1);
/// After something that the system has too few of: a descriptor, memory, a thread.
const BREATH: Duration = Duration::from_millis(100);

/// The thread's state.
pub(crate) struct Door<S> {
    listener: UnixListener,
    service: Arc<S>,
    desks: HashMap<User, Desk>,
    strangers: Strangers,
    /// Whether no descriptors come, so that closing a connection closes nothing else.
    forbids: bool,
    /// Connections that are closed unheard.
    abandoned: Abandoned,
    /// Connections of which nothing was said in the log yet.
    unsaid: Unsaid,
    said: Option<Instant>,
}

/// Connections that the log is to tell of.
#[derive(Default)]
struct Unsaid {
    /// Of processes that may not come, or too many.
    strangers: u64,
    /// Closed unheard.
    unheard: u64,
    /// Whose the last of them was.
    uid: u32,
}

impl<S: Service> Door<S> {
    pub(crate) fn new(listener: UnixListener, service: S) -> Self {
        let forbids = forbid_descriptors(&listener);
        if let Err(error) = listen(&listener, WAITING) {
            tracing::warn!("the {} socket keeps its long queue: {error}", S::SOCKET);
        }
        if !forbids {
            tracing::info!(
                "this kernel can't forbid descriptors on the {} socket (Linux 6.16 can)",
                S::SOCKET
            );
        }
        let (service, desks) = (Arc::new(service), HashMap::new());
        let (abandoned, unsaid) = (Abandoned::default(), Unsaid::default());
        let strangers = Strangers::default();
        Self { listener, service, desks, strangers, forbids, abandoned, unsaid, said: None }
    }

    /// Opens it.
    ///
    /// Errors: no thread.
    pub(crate) fn open(mut self) -> io::Result<()> {
        thread::Builder::new().name(S::SOCKET.into()).spawn(move || self.watch()).map(drop)
    }

    /// For ever.
    fn watch(&mut self) {
        loop {
            let _ = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], None);
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.receive(socket),
                // Whoever came is gone again.
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => {
                    tracing::warn!("the {} socket: {error}", S::SOCKET);
                    thread::sleep(BREATH);
                }
            }
            self.desks.retain(|_, desk| !desk.is_closed());
        }
    }

    fn receive(&mut self, socket: OwnedFd) {
        let channel = Channel::of(socket);
        // Who can't be told who it is is gone.
        let Ok(credentials) = channel.peer() else { return };
        let groups = channel.peer_groups().unwrap_or_default();
        let process = Process { credentials, groups };
        let (user, refusal) = self.place(credentials.uid, self.service.admit(&process).err());
        if user == User::Strangers {
            self.unsaid.strangers += 1;
            self.unsaid.uid = credentials.uid;
        }
        if let Some(socket) = self.hand(user, (channel.into_socket(), process), refusal) {
            self.unsaid.unheard += 1;
            self.unsaid.uid = credentials.uid;
            self.shut(socket);
        }
        self.tell();
    }

    /// Hands a connection to the thread that hears it. Gives it back where it is not to be heard.
    fn hand(
        &mut self,
        user: User,
        (socket, process): (OwnedFd, Process),
        refusal: Option<Refusal>,
    ) -> Option<OwnedFd> {
        let uid = process.credentials.uid;
        let among = match user {
            User::Uid(_) => None,
            User::Strangers => match self.strangers.place(uid, Instant::now()) {
                None => return Some(socket),
                among => among,
            },
        };
        match self.desk(user) {
            Ok(desk) => {
                let place = refusal.map_or_else(|| Ok(desk.place()), Err);
                let coming = Coming { socket, process, place, among };
                desk.send(coming).err().map(|coming| coming.socket)
            }
            Err(error) => {
                complain(|| tracing::warn!("a thread for user {uid}: {error}"));
                Some(socket)
            }
        }
    }

    /// Closes a connection unheard. Descriptors may lie in it, whose closing takes as long as their owner likes.
    fn shut(&mut self, socket: OwnedFd) {
        if !self.forbids {
            let complain = |error| tracing::warn!("a thread to close a connection: {error}");
            self.abandoned.close(socket, complain);
        }
    }

    /// Says in the log what came, not too often: any process of the machine can come here as often as it likes.
    fn tell(&mut self) {
        let Unsaid { strangers, unheard, uid } = self.unsaid;
        if strangers + unheard == 0 || self.said.is_some_and(|at| at.elapsed() < SILENCE) {
            return;
        }
        self.said = Some(Instant::now());
        self.unsaid = Unsaid::default();
        tracing::warn!(
            uid,
            strangers,
            unheard,
            "connections to the {} socket of processes that may not come, or too many",
            S::SOCKET
        );
    }

    /// The user's thread.
    fn desk(&mut self, user: User) -> io::Result<&Desk> {
        if self.desks.get(&user).is_none_or(Desk::is_closed) {
            let desk = Desk::open(user, Arc::clone(&self.service))?;
            self.desks.insert(user, desk);
        }
        self.desks.get(&user).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whose thread hears a connection, and why there is no place for it if there is none. `stranger`: it may not come.
    fn place(&self, uid: u32, stranger: Option<Refusal>) -> (User, Option<Refusal>) {
        if stranger.is_some() {
            return (User::Strangers, stranger);
        }
        let user = User::Uid(uid);
        let has = self.desks.get(&user).map_or(0, Desk::taken);
        let (bounds, section) = (self.service.bounds(), S::SECTION);
        let (most, own) = (usize::from(bounds.most), usize::from(bounds.connections));
        let others = || self.desks.iter().filter(|(user, _)| matches!(user, User::Uid(1..)));
        let all: usize = others().map(|(_, desk)| desk.taken()).sum();
        let known = self.desks.get(&user).is_some_and(|desk| !desk.is_closed());
        let problem = match uid {
            0 if has >= most + SPARE => {
                format!("root has {has} connections; {section}.most is {most}: raise it")
            }
            0 => return (user, None),
            // Each has a thread, so who has none hears it from that of all who get none.
            _ if !known && others().count() >= most => {
                let problem =
                    format!("{most} users have connections; {section}.most is {most}: raise it");
                return (User::Strangers, Some(Refusal::new(RefusalKind::Resources, problem)));
            }
            _ if has >= own => format!(
                "user {uid} has {has} connections, as many as {section}.connections allows one user; \
                 close some, or raise it"
            ),
            _ if all >= most + SPARE => {
                format!("all users have {all} connections; {section}.most is {most}: raise it")
            }
            _ => return (user, None),
        };
        (user, Some(Refusal::new(RefusalKind::Resources, problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::testing::{Closed, send_lingering};

    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    use shm::attach::{PeerCredentials, Reply, Request};

    /// A door at which users have arrived.
    fn door(most: u16, users: &[u32]) -> Door<Closed> {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let mut door = Door::new(listener, Closed { most });
        for user in users {
            door.desk(User::Uid(*user)).unwrap();
        }
        door
    }

    #[test]
    fn a_user_too_many_hears_why_and_root_is_no_other_user() {
        let door = door(2, &[0, 5, 6]);
        let of = |uid| door.place(uid, None);
        assert_eq!(of(0), (User::Uid(0), None));
        assert_eq!(of(5), (User::Uid(5), None), "it has its thread already");
        let (heard_by, refusal) = of(7);
        assert_eq!(heard_by, User::Strangers);
        let refusal = refusal.unwrap();
        assert_eq!(refusal.kind, RefusalKind::Resources);
        assert!(refusal.message.contains("test.most is 2"), "{}", refusal.message);
    }

    /// A connection of a user, and the other end.
    fn connection(uid: u32) -> ((OwnedFd, Process), Channel) {
        let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET);
        let pair = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair.unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let patience = Some(Duration::from_secs(20));
        let side = rustix::net::sockopt::Timeout::Recv;
        rustix::net::sockopt::set_socket_timeout(&theirs, side, patience).unwrap();
        let process =
            Process { credentials: PeerCredentials { pid: 1, uid, gid: uid }, groups: Vec::new() };
        ((ours, process), Channel::of(theirs))
    }

    #[test]
    fn a_stranger_who_says_nothing_keeps_no_other_from_hearing_why_it_is_refused() {
        let mut door = door(2, &[]);
        let mut comes = |uid| {
            let (ours, theirs) = connection(uid);
            let refusal = Refusal::new(RefusalKind::Permission, "no");
            (door.hand(User::Strangers, ours, Some(refusal)).is_none(), theirs)
        };
        // More than are told at the same time, of all.
        let silent: Vec<(bool, Channel)> = (0..100).map(|_| comes(5)).collect();
        assert_eq!(silent.iter().filter(|(heard, _)| *heard).count(), 8);
        let (heard, other) = comes(6);
        assert!(heard);
        other.send(&Request::Ports, &[]).unwrap();
        let told = other.receive::<Reply>().unwrap().message;
        assert!(matches!(told, Reply::Refused(_)), "{told:?}");
    }

    #[test]
    fn a_user_that_has_all_its_connections_keeps_those_of_others() {
        let mut door = door(3, &[0, 5, 6]);
        let places = [(); 2].map(|()| door.desk(User::Uid(5)).unwrap().place());
        let (heard_by, refusal) = door.place(5, None);
        assert_eq!(heard_by, User::Uid(5), "its own thread tells it");
        let refusal = refusal.unwrap();
        assert!(refusal.message.contains("as many as test.connections"), "{}", refusal.message);
        assert_eq!(door.place(6, None), (User::Uid(6), None));
        assert_eq!(door.place(0, None), (User::Uid(0), None));
        drop(places);
        assert_eq!(door.place(5, None), (User::Uid(5), None));
    }

    /// As on a kernel that can't forbid descriptors: these sockets were not told to.
    #[test]
    fn few_connections_of_a_user_wait_for_its_thread_and_others_are_heard() {
        let mut door = door(9, &[]);
        let mut comes = |uid, ours| {
            let refusal = Refusal::new(RefusalKind::Permission, "no");
            door.hand(User::Uid(uid), ours, Some(refusal)).is_none()
        };
        let (ours, first) = connection(5);
        let _deaf = send_lingering(&first);
        assert!(comes(5, ours));
        let mut others = Vec::new();
        // Its thread sleeps in a close soon, and takes few of them before.
        let waiting = (0..250).filter(|_| {
            let (ours, theirs) = connection(5);
            others.push(theirs);
            comes(5, ours)
        });
        assert!((32..250).contains(&waiting.count()));
        let (ours, other) = connection(6);
        assert!(comes(6, ours));
        other.send(&Request::Ports, &[]).unwrap();
        let told = other.receive::<Reply>().unwrap().message;
        assert!(matches!(told, Reply::Refused(_)), "{told:?}");
    }

    #[test]
    fn few_connections_wait_to_be_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _door = Door::new(UnixListener::bind(&path).unwrap(), Closed { most: 2 });
        let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let connected: Vec<OwnedFd> = (0..1000)
            .map_while(|_| {
                let (family, kind) =
                    (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
                let socket = rustix::net::socket_with(family, kind, flags, None).unwrap();
                rustix::net::connect(&socket, &address).ok().map(|()| socket)
            })
            .collect();
        let most = WAITING as usize;
        assert!((most..=most + 1).contains(&connected.len()), "{}", connected.len());
    }

    /// As on a kernel that can't forbid descriptors.
    #[test]
    fn strangers_keep_no_thread_that_closes_connections() {
        let mut door = door(2, &[]);
        door.forbids = false;
        let (done, over) = channel();
        thread::spawn(move || {
            let mut deaf = Vec::new();
            for _ in 0..=Abandoned::MOST {
                let (ours, theirs) = UnixStream::pair().unwrap();
                deaf.push(send_lingering(&theirs));
                door.shut(ours.into());
            }
            let _ = done.send(deaf);
        });
        assert!(over.recv_timeout(Duration::from_secs(20)).is_ok(), "all of them sleep in a close");
    }
}
