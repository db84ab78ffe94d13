//! The attach socket: a task for each connection. Its end, or its process's, is the end of the client.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use shm::Segment;
use shm::attach::{Channel, ChannelError, Refusal, RefusalKind, Reply, Request};
use tokio::io::Interest;
use tokio::net::unix::pipe::Receiver;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::permission::Process;
use crate::daemon::Shared;

/// Connections that have not said hello yet, and those of clients: this many beyond `clients.most`. And as many of
/// processes that may not attach.
const SPARE: usize = 16;
/// How long a process may take to say hello.
const HELLO: Duration = Duration::from_secs(5);
/// How often it is looked whether the workers are done with a client's memory, each time after a [`BREATH`].
const LOOKS: usize = 50;
/// Between two requests of one client at least: what it asks costs the control thread time.
const BREATH: Duration = Duration::from_millis(1);
/// Memory is made and taken down by one client at a time, which then waits this many times as long as that took: all
/// clients together have a quarter of the control thread.
const REST: u32 = 3;

/// Serves clients for ever.
pub(crate) async fn run(listener: UnixListener, daemon: Shared) {
    let most = usize::from(daemon.lock().config.clients.most) + SPARE;
    let places = Arc::new(Semaphore::new(most));
    let strangers = Arc::new(Semaphore::new(SPARE));
    let turns = Arc::new(Semaphore::new(1));
    loop {
        match listener.accept().await.and_then(|(stream, _)| Connection::of(stream)) {
            Ok(connection) => {
                let Some(process) = connection.process() else { continue };
                // Who may not attach is told so, but takes no place from those who may.
                let place = if daemon.lock().may_attach(&process) {
                    Arc::clone(&places).acquire_owned().await
                } else {
                    let Ok(place) = Arc::clone(&strangers).try_acquire_owned() else { continue };
                    Ok(place)
                };
                let Ok(place) = place else { return };
                let (daemon, turns) = (daemon.clone(), Arc::clone(&turns));
                tokio::spawn(async move {
                    serve(connection, process, daemon, turns).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("the attach socket: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// A connection: to be waited for, and to be talked on.
struct Connection {
    stream: UnixStream,
    channel: Channel,
}

impl Connection {
    fn of(stream: UnixStream) -> io::Result<Self> {
        let channel = Channel::of(stream.as_fd().try_clone_to_owned()?);
        Ok(Self { stream, channel })
    }

    /// Who is at the other end. `None`: it is gone.
    fn process(&self) -> Option<Process> {
        let credentials = self.channel.peer().ok()?;
        let groups = self.channel.peer_groups().unwrap_or_default();
        Some(Process { credentials, groups })
    }

    /// The next request.
    async fn hear(&self) -> Result<Request, ChannelError> {
        loop {
            self.stream.readable().await?;
            let heard = self.stream.try_io(Interest::READABLE, || match self.channel.receive() {
                Err(ChannelError::System(error)) if error.kind() == ErrorKind::WouldBlock => {
                    Err(error)
                }
                heard => Ok(heard),
            });
            match heard {
                Ok(heard) => return heard.map(|received| received.message),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A connection from its first word to its end.
async fn serve(connection: Connection, process: Process, daemon: Shared, turns: Arc<Semaphore>) {
    let pid = process.credentials.pid;
    let mut client = Attached { daemon, id: None, process, turns };
    let why = tokio::select! {
        why = client.talk(&connection) => why,
        () = ended(pid) => "its process ended".to_owned(),
    };
    if let Some(id) = client.id {
        client.daemon.lock().release_client(id, &why);
        unmap(&client.daemon).await;
    }
}

/// Waits until the workers have moved a device's buffers out of memory that was a client's, and unmaps it. What a device
/// still holds is looked for once a second.
async fn unmap(daemon: &Shared) {
    for _ in 0..LOOKS {
        if daemon.lock().free_retired() {
            return;
        }
        sleep(BREATH).await;
    }
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
    daemon: Shared,
    /// After its hello.
    id: Option<u32>,
    process: Process,
    /// Who may ask for what takes long.
    turns: Arc<Semaphore>,
}

/// An answer with what goes along.
struct Answer {
    reply: Reply,
    segment: Option<Arc<Segment>>,
    bells: Vec<OwnedFd>,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self { reply, segment: None, bells: Vec::new() }
    }
}

impl Attached {
    /// Request by request. Gives why it is over.
    async fn talk(&mut self, connection: &Connection) -> String {
        loop {
            let heard = if self.id.is_none() {
                match timeout(HELLO, connection.hear()).await {
                    Ok(heard) => heard,
                    Err(_) => return "it did not say who it is".to_owned(),
                }
            } else {
                connection.hear().await
            };
            let request = match heard {
                Ok(request) => request,
                Err(ChannelError::Closed) => return "it closed its connection".to_owned(),
                Err(error) => {
                    let refusal = Refusal::new(RefusalKind::Invalid, error.to_string());
                    let _ = connection.channel.send(&Reply::Refused(refusal), &[]);
                    return error.to_string();
                }
            };
            let long = matches!(request, Request::Open(_) | Request::Close(_));
            let turn = if long { Arc::clone(&self.turns).acquire_owned().await.ok() } else { None };
            let begun = Instant::now();
            let answer = self.answer(request);
            let rest = begun.elapsed() * REST;
            let closed = matches!(&answer.reply, Reply::Closed(_));
            let hopeless = matches!(&answer.reply, Reply::Refused(_)) && self.id.is_none();
            let segment = answer.segment.as_ref().map(|segment| segment.as_fd());
            let files: Vec<BorrowedFd<'_>> =
                segment.into_iter().chain(answer.bells.iter().map(AsFd::as_fd)).collect();
            if let Err(error) = connection.channel.send(&answer.reply, &files) {
                return format!("it does not take answers: {error}");
            }
            if closed {
                unmap(&self.daemon).await;
            }
            if hopeless {
                return "it was refused".to_owned();
            }
            sleep(BREATH.max(rest)).await;
            drop(turn);
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        let refused = |refusal| Answer::from(Reply::Refused(refusal));
        let mut daemon = self.daemon.lock();
        match (request, self.id) {
            (Request::Hello(hello), None) => {
                match daemon.attach_client(hello, self.process.clone()) {
                    Ok(welcome) => {
                        self.id = Some(welcome.client);
                        Reply::Welcome(welcome).into()
                    }
                    Err(refusal) => refused(refusal),
                }
            }
            (Request::Hello(_), Some(_)) => {
                refused(Refusal::new(RefusalKind::Invalid, "hello was said already"))
            }
            (_, None) => refused(Refusal::new(RefusalKind::Invalid, "say hello first")),
            (Request::Ports, Some(id)) => Reply::Ports(daemon.ports_of_client(id)).into(),
            (Request::Open(asked), Some(id)) => match daemon.open_client_queues(id, asked) {
                Ok(given) => Answer {
                    reply: Reply::Opened(given.opened),
                    segment: Some(given.segment),
                    bells: given.bells,
                },
                Err(refusal) => refused(refusal),
            },
            (Request::Start(number), Some(id)) => match daemon.start_client_queues(id, number) {
                Ok(()) => Reply::Started(number).into(),
                Err(refusal) => {
                    daemon.close_client_queues(id, number);
                    refused(refusal)
                }
            },
            (Request::Close(number), Some(id)) => {
                if daemon.close_client_queues(id, number) {
                    Reply::Closed(number).into()
                } else {
                    let problem = format!("there are no queues {number}");
                    refused(Refusal::new(RefusalKind::Unknown, problem))
                }
            }
        }
    }
}
