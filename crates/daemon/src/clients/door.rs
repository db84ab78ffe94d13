//! The attach socket: a thread that accepts and hands each connection to its user's thread, and does nothing else.
//!
//! It takes no message, closes no descriptor of others and waits for nobody but the next connection. Places are
//! counted by user, so that nobody can take those of others; root has its own beside them.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use control::config::{self, ClientRule};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use shm::attach::{Channel, Refusal, RefusalKind};
use shm::bell::forbid_descriptors;

use super::asks::Control;
use super::desk::{Coming, Desk, User};
use super::permission::{self, Allowed, Process};

/// Connections that have not said hello yet: this many beyond `clients.most`. As many of processes that may not attach.
const SPARE: usize = 16;
/// Between two lines in the log about processes that may not attach, or connections that were closed unheard.
const SILENCE: Duration = Duration::from_secs(1);
/// Threads that close connections at once. When all of them are kept busy nobody is accepted until one is done.
const CLOSERS: usize = 64;
/// After something that the system has too few of: a descriptor, memory, a thread.
const BREATH: Duration = Duration::from_millis(100);

/// The rules of the configuration in force, for the door.
pub(super) type Rules = Arc<Mutex<Vec<ClientRule>>>;

/// The thread's state.
pub(super) struct Door {
    listener: UnixListener,
    bounds: config::Clients,
    rules: Rules,
    control: Control,
    desks: HashMap<User, Desk>,
    /// Whether no descriptors come, so that closing a connection closes nothing else.
    forbids: bool,
    /// Threads that close connections, at this moment.
    closing: Arc<AtomicUsize>,
    /// Connections of which nothing was said in the log yet: of strangers, and closed unheard.
    unsaid: [u64; 2],
    said: Option<Instant>,
}

impl Door {
    pub(super) fn new(
        listener: UnixListener,
        bounds: config::Clients,
        rules: Rules,
        control: Control,
    ) -> Self {
        let forbids = forbid_descriptors(&listener);
        if !forbids {
            tracing::info!(
                "this kernel can't forbid descriptors on the attach socket (Linux 6.16 can)"
            );
        }
        let desks = HashMap::new();
        let (closing, unsaid) = (Arc::default(), [0; 2]);
        Self { listener, bounds, rules, control, desks, forbids, closing, unsaid, said: None }
    }

    /// Opens it.
    ///
    /// Errors: no thread.
    pub(super) fn open(mut self) -> io::Result<()> {
        thread::Builder::new().name("attach".into()).spawn(move || self.watch()).map(drop)
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
                    tracing::warn!("the attach socket: {error}");
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
        let stranger = {
            let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
            let allowed = Allowed::of(&rules, &process);
            allowed.is_none().then(|| permission::stranger(&rules, &process))
        };
        let (user, refusal) = self.place(credentials.uid, stranger);
        let socket = channel.into_socket();
        let unheard = match self.desk(user) {
            Ok(desk) => {
                let place = refusal.map_or_else(|| Ok(desk.place()), Err);
                desk.send(Coming { socket, process, place }).err().map(|coming| coming.socket)
            }
            Err(error) => {
                tracing::warn!("a thread for user {}: {error}", credentials.uid);
                Some(socket)
            }
        };
        if let Some(socket) = unheard {
            self.unsaid[1] += 1;
            self.shut(socket);
        }
        self.tell(user, credentials.uid);
    }

    /// Closes a connection unheard. Where descriptors may lie in it a thread does that, which may take as long as their
    /// owner likes.
    fn shut(&self, socket: OwnedFd) {
        if self.forbids {
            return;
        }
        while self.closing.load(Ordering::Relaxed) >= CLOSERS {
            thread::sleep(BREATH);
        }
        self.closing.fetch_add(1, Ordering::Relaxed);
        let closing = Arc::clone(&self.closing);
        let closer = thread::Builder::new().spawn(move || {
            drop(socket);
            closing.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = closer {
            self.closing.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!("a thread to close a connection: {error}");
        }
    }

    /// Says in the log what came, not too often: any process of the machine can come here as often as it likes.
    fn tell(&mut self, user: User, uid: u32) {
        self.unsaid[0] += u64::from(user == User::Strangers);
        let [strangers, unheard] = self.unsaid;
        if strangers + unheard == 0 || self.said.is_some_and(|at| at.elapsed() < SILENCE) {
            return;
        }
        self.said = Some(Instant::now());
        self.unsaid = [0; 2];
        tracing::warn!(
            uid,
            strangers,
            unheard,
            "connections of processes that may not attach, or too many"
        );
    }

    /// The user's thread.
    fn desk(&mut self, user: User) -> io::Result<&Desk> {
        if self.desks.get(&user).is_none_or(Desk::is_closed) {
            let desk = Desk::open(user, self.bounds.requests, self.control.clone())?;
            self.desks.insert(user, desk);
        }
        self.desks.get(&user).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whose thread hears a connection, and why there is no place for it if there is none. `stranger`: it may not attach.
    fn place(&self, uid: u32, stranger: Option<Refusal>) -> (User, Option<Refusal>) {
        if stranger.is_some() {
            return (User::Strangers, stranger);
        }
        let user = User::Uid(uid);
        let has = self.desks.get(&user).map_or(0, Desk::taken);
        let most = usize::from(self.bounds.most);
        let own = usize::from(self.bounds.connections);
        let others = || self.desks.iter().filter(|(user, _)| matches!(user, User::Uid(1..)));
        let all: usize = others().map(|(_, desk)| desk.taken()).sum();
        let known = self.desks.get(&user).is_some_and(|desk| !desk.is_closed());
        let problem = match uid {
            0 if has >= most + SPARE => {
                format!("root has {has} connections; clients.most is {most}: raise it")
            }
            0 => return (user, None),
            // Each has a thread, so who has none hears it from that of all who get none.
            _ if !known && others().count() >= most => {
                let problem =
                    format!("{most} users have connections; clients.most is {most}: raise it");
                return (User::Strangers, Some(Refusal::new(RefusalKind::Resources, problem)));
            }
            _ if has >= own => format!(
                "user {uid} has {has} connections, as many as clients.connections allows one user; \
                 close some, or raise it"
            ),
            _ if all >= most + SPARE => {
                format!("all users have {all} connections; clients.most is {most}: raise it")
            }
            _ => return (user, None),
        };
        (user, Some(Refusal::new(RefusalKind::Resources, problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A door at which users have arrived.
    fn door(most: u16, users: &[u32]) -> Door {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("attach")).unwrap();
        let (control, _asked) = crate::clients::asks::channel();
        let bounds = config::Clients {
            socket: None,
            most,
            connections: 2,
            queues: 1,
            channels: 1,
            filters: 1,
            memory: 1,
            requests: 10,
        };
        let mut door = Door::new(listener, bounds, Rules::default(), control);
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
        assert!(refusal.message.contains("clients.most is 2"), "{}", refusal.message);
    }
}
