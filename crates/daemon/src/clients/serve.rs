//! A connection, on its user's thread. Its end, or its process's, is the end of the client.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use shm::attach::{
    Channel, ChannelError, Hello, Open, Opened, Refusal, RefusalKind, Reply, Request,
};
use shm::{Growing, Grown, Segment};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::bells::Theirs;
use super::permission::Process;
use super::refusal::no_resources;
use super::stages::Made;
use super::user::{Place, Shared};
use crate::daemon::Daemon;

/// How long a process may take to say hello.
const HELLO: Duration = Duration::from_secs(5);
/// How often it is looked whether the workers are done with a client's memory, each time after a [`BREATH`].
const LOOKS: usize = 50;
/// Between two looks.
const BREATH: Duration = Duration::from_millis(1);

/// A connection: to be waited for, and to be talked on.
struct Connection {
    stream: UnixStream,
    channel: Channel,
}

impl Connection {
    fn of(socket: OwnedFd) -> io::Result<Self> {
        let channel = Channel::of(socket.try_clone()?);
        Ok(Self { stream: UnixStream::from_std(socket.into())?, channel })
    }

    /// The next request. One that brings descriptors ends the connection: they are closed here.
    async fn hear(&self) -> Result<Request, ChannelError> {
        loop {
            self.stream.readable().await?;
            let heard = self.stream.try_io(Interest::READABLE, || match self.channel.receive() {
                Err(ChannelError::System(error)) if error.kind() == ErrorKind::WouldBlock => {
                    Err(error)
                }
                heard => Ok(heard),
            });
            let received = match heard {
                Ok(heard) => heard?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            if !received.files.is_empty() {
                return Err(ChannelError::Malformed("it brings descriptors".to_owned()));
            }
            return Ok(received.message);
        }
    }

    /// The first one.
    async fn hear_first(&self) -> Result<Request, String> {
        match timeout(HELLO, self.hear()).await {
            Ok(heard) => heard.map_err(|error| self.complain(error)),
            Err(_) => Err("it did not say who it is".to_owned()),
        }
    }

    /// Says what was wrong, if somebody is there.
    fn complain(&self, error: ChannelError) -> String {
        if let ChannelError::Closed = error {
            return "it closed its connection".to_owned();
        }
        let refusal = Refusal::new(RefusalKind::Invalid, error.to_string());
        let _ = self.say(&Reply::Refused(refusal), &[]);
        error.to_string()
    }

    fn say(&self, reply: &Reply, files: &[BorrowedFd<'_>]) -> Result<(), ChannelError> {
        self.channel.send(reply, files)
    }
}

/// A connection from its first word to its end.
pub(super) async fn serve(
    socket: OwnedFd,
    process: Process,
    place: Result<Place, Refusal>,
    shared: Arc<Shared>,
) {
    let connection = match Connection::of(socket) {
        Ok(connection) => connection,
        Err(error) => return tracing::warn!("a connection to the attach socket: {error}"),
    };
    let _place = match place {
        Ok(place) => place,
        Err(refusal) => {
            // Who has not asked yet would take the end for the daemon's.
            if connection.hear_first().await.is_ok() {
                let _ = connection.say(&Reply::Refused(refusal), &[]);
            }
            return;
        }
    };
    let pid = process.credentials.pid;
    let mut client = Attached { shared, id: Arc::default(), process, tokens: Vec::new() };
    let why = tokio::select! {
        why = client.talk(&connection) => why,
        () = ended(pid) => "its process ended".to_owned(),
    };
    client.leave(why).await;
}

/// When the process ends; never where that cannot be seen. One that forked would keep the socket open
/// when it dies itself.
async fn ended(process: i32) {
    let process = Pid::from_raw(process).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    // The runtime waits for a process as it does for a pipe.
    match process.map(Receiver::from_owned_fd_unchecked) {
        Some(Ok(process)) => {
            let _ = process.readable().await;
        }
        _ => std::future::pending().await,
    }
}

/// One connection's state.
struct Attached {
    shared: Arc<Shared>,
    /// After its hello; 0 before. The control thread writes it.
    id: Arc<AtomicU32>,
    process: Process,
    /// Its queues' numbers, with what their bells are found by.
    tokens: Vec<(u32, u64)>,
}

/// An answer with what goes along.
struct Answer {
    reply: Reply,
    segment: Option<Arc<Segment>>,
    bells: Theirs,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self { reply, segment: None, bells: Vec::new() }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Reply::Refused(refusal).into()
    }
}

/// While the daemon ends.
fn ending() -> Refusal {
    no_resources("the daemon ends")
}

impl Attached {
    /// Its number. `None`: it has not said hello.
    fn number(&self) -> Option<u32> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Request by request. Gives why it is over.
    async fn talk(&mut self, connection: &Connection) -> String {
        loop {
            let heard = if self.number().is_none() {
                connection.hear_first().await
            } else {
                connection.hear().await.map_err(|error| connection.complain(error))
            };
            let request = match heard {
                Ok(request) => request,
                Err(why) => return why,
            };
            self.shared.pace.wait().await;
            let answer = self.answer(request).await;
            let hopeless = matches!(&answer.reply, Reply::Refused(_)) && self.number().is_none();
            let segment = answer.segment.as_ref().map(|segment| segment.as_fd());
            let files: Vec<BorrowedFd<'_>> =
                segment.into_iter().chain(answer.bells.iter().map(AsFd::as_fd)).collect();
            if let Err(error) = connection.say(&answer.reply, &files) {
                return format!("it does not take answers: {error}");
            }
            if hopeless {
                return "it was refused".to_owned();
            }
        }
    }

    async fn answer(&mut self, request: Request) -> Answer {
        let invalid = |problem: &str| Refusal::new(RefusalKind::Invalid, problem).into();
        match (request, self.number()) {
            (Request::Hello(hello), None) => self.greet(hello).await,
            (Request::Hello(_), Some(_)) => invalid("hello was said already"),
            (_, None) => invalid("say hello first"),
            (Request::Ports, Some(id)) => {
                let ports = self.shared.control.ask(move |daemon| daemon.ports_of_client(id)).await;
                ports.map_or_else(|| ending().into(), |ports| Reply::Ports(ports).into())
            }
            (Request::Open(asked), Some(id)) => match self.open(id, asked).await {
                Ok((opened, segment, bells)) => {
                    Answer { reply: Reply::Opened(opened), segment: Some(segment), bells }
                }
                Err(refusal) => refusal.into(),
            },
            (Request::Start(number), Some(id)) => match self.start(id, number).await {
                Ok(()) => Reply::Started(number).into(),
                Err(refusal) => {
                    self.close(id, number).await;
                    refusal.into()
                }
            },
            (Request::Close(number), Some(id)) => self.close(id, number).await,
        }
    }

    async fn greet(&self, hello: Hello) -> Answer {
        let (process, id) = (self.process.clone(), Arc::clone(&self.id));
        let attach = self.shared.control.ask(move |daemon| {
            let welcome = daemon.attach_client(hello, process)?;
            // Known from now on, even when nobody waits for the answer any more.
            id.store(welcome.client, Ordering::Relaxed);
            Ok::<_, Refusal>(welcome)
        });
        match attach.await {
            Some(Ok(welcome)) => Reply::Welcome(welcome).into(),
            Some(Err(refusal)) => refusal.into(),
            None => ending().into(),
        }
    }

    /// Opens queues: the control thread says how much memory they take, which is made here, and then hands both to the
    /// workers.
    async fn open(
        &mut self,
        id: u32,
        asked: Open,
    ) -> Result<(Opened, Arc<Segment>, Theirs), Refusal> {
        let Shared { control, bells, turns, .. } = &*self.shared;
        let _turn = turns.acquire().await.map_err(no_resources)?;
        let place = match asked.queue.clone() {
            Some(wanted) => {
                let asked = asked.clone();
                let find = move |daemon: &mut Daemon| daemon.find_own_queue(id, &asked, &wanted);
                Some(control.ask(find).await.ok_or_else(ending)??.place().await?)
            }
            None => None,
        };
        let (wanted, at) = (asked.clone(), place.clone());
        let size =
            move |daemon: &mut Daemon| daemon.size_of_client_queues(id, &wanted, at.as_ref());
        let (bytes, workers) = control.ask(size).await.ok_or_else(ending)??;
        let segment = grow(&format!("millrace-client-{id}"), bytes).await?;
        let token = u64::from(id) << 32 | bells.next();
        let made = bells.make(token, asked.channels, workers).map_err(|error| {
            no_resources(format!("a doorbell: {error}; raise the daemon's LimitNOFILE"))
        });
        let opened = match made {
            Ok((made, theirs)) => {
                let made = Made { segment: Arc::clone(&segment), bells: made };
                let made = (made, place);
                let open = control.ask(move |daemon| daemon.open_client_queues(id, asked, made));
                open.await.unwrap_or_else(|| Err(ending())).map(|opened| (opened, theirs))
            }
            Err(refusal) => Err(refusal),
        };
        match opened {
            Ok((opened, theirs)) => {
                self.tokens.push((opened.queues, token));
                Ok((opened, segment, theirs))
            }
            Err(refusal) => {
                bells.close(|other| other == token);
                Err(refusal)
            }
        }
    }

    async fn start(&self, id: u32, number: u32) -> Result<(), Refusal> {
        let start = move |daemon: &mut Daemon| daemon.start_client_queues(id, number);
        self.shared.control.ask(start).await.ok_or_else(ending)??.done().await
    }

    async fn close(&mut self, id: u32, number: u32) -> Answer {
        let shared = Arc::clone(&self.shared);
        let Shared { control, turns, .. } = &*shared;
        let _turn = turns.acquire().await;
        let closed = control.ask(move |daemon| daemon.close_client_queues(id, number)).await;
        match closed {
            // The last to hold the memory is this thread.
            Some(Some(left)) => {
                left.taken().await;
                unmap(&self.shared).await;
            }
            Some(None) => {
                let problem = format!("there are no queues {number}");
                return Refusal::new(RefusalKind::Unknown, problem).into();
            }
            None => return ending().into(),
        }
        self.close_bells(number);
        Reply::Closed(number).into()
    }

    fn close_bells(&mut self, number: u32) {
        let closed = self.tokens.iter().filter(|(queues, _)| *queues == number);
        let tokens: Vec<u64> = closed.map(|(_, token)| *token).collect();
        self.tokens.retain(|(queues, _)| *queues != number);
        self.shared.bells.close(|token| tokens.contains(&token));
    }

    /// Has everything taken back that it had.
    async fn leave(self, why: String) {
        let id = Arc::clone(&self.id);
        // What it asked for before is done before.
        let release = self.shared.control.ask(move |daemon| {
            let id = id.load(Ordering::Relaxed);
            daemon.release_client(id, &why)
        });
        for left in release.await.unwrap_or_default() {
            left.taken().await;
        }
        let client = u64::from(self.id.load(Ordering::Relaxed));
        self.shared.bells.close(|token| token >> 32 == client);
        unmap(&self.shared).await;
    }
}

/// Makes memory, and lets others of the same user have their turns meanwhile.
async fn grow(name: &str, bytes: usize) -> Result<Arc<Segment>, Refusal> {
    let mut growing = Growing::new(name, bytes).map_err(no_resources)?;
    loop {
        match growing.step().map_err(no_resources)? {
            Grown::Partly(rest) => growing = rest,
            Grown::Whole(segment) => return Ok(Arc::new(segment)),
        }
        yield_now().await;
    }
}

/// Waits until the workers have moved a device's buffers out of memory that was a client's, and unmaps it. What a device
/// still holds is looked for once a second.
async fn unmap(shared: &Shared) {
    for _ in 0..LOOKS {
        match shared.control.ask(|daemon| daemon.free_retired()).await {
            Some((_unmapped_here, false)) => {}
            _ => return,
        }
        sleep(BREATH).await;
    }
}
