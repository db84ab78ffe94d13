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
        let allowed = {
            let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
            Allowed::of(&rules, &process)
        };
        let user = allowed.map_or(User::Strangers, |_| User::Uid(process.credentials.uid));
        let refusal = self.refuse(user, &process);
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
            if self.desks.len() > usize::from(self.bounds.most) && user != User::Uid(0) {
                return Err(io::Error::other("more users than clients.most"));
            }
            let desk = Desk::open(user, self.bounds.requests, self.control.clone())?;
            self.desks.insert(user, desk);
        }
        self.desks.get(&user).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Why there is no place for another connection of a user. `None`: there is one.
    fn refuse(&self, user: User, process: &Process) -> Option<Refusal> {
        let has = self.desks.get(&user).map_or(0, Desk::taken);
        let most = usize::from(self.bounds.most);
        let own = usize::from(self.bounds.connections);
        let others = self.desks.iter().filter(|(user, _)| **user != User::Uid(0));
        let all: usize = others.map(|(_, desk)| desk.taken()).sum();
        let problem = match user {
            User::Strangers => return Some(permission::stranger(process)),
            User::Uid(0) if has >= most + SPARE => {
                format!("root has {has} connections; clients.most is {most}: raise it")
            }
            User::Uid(uid) if uid != 0 && has >= own => format!(
                "user {uid} has {has} connections, as many as clients.connections allows one user; \
                 close some, or raise it"
            ),
            User::Uid(uid) if uid != 0 && all >= most + SPARE => {
                format!("all users have {all} connections; clients.most is {most}: raise it")
            }
            User::Uid(_) => return None,
        };
        Some(Refusal::new(RefusalKind::Resources, problem))
    }
}
