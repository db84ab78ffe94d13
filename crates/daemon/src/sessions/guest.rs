//! A process with stacks, on its user's thread: what it asks for, and who answers.

mod leaving;
mod stacks;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;
use control::config;
use shm::attach::{Refusal, RefusalKind};
use shm::session::{Brought, CarrierId, Hello, Listen, Listening, Reply, Request, Route};
use tokio::sync::mpsc;

use super::dismissal::Dismissal;
use super::listeners::proven;
use super::parking::Starting;
use super::shared::{Lodging, StackWorkers};
use super::{Host, Lent, News};
use crate::processes::{Answer, Control, Guest, Holders, Process, Shared, invalid, no_resources};

pub(super) use leaving::say;

/// What a process may be told without having asked, before it listens.
const NEWS: usize = 256;

/// One connection's state.
pub(super) struct Attached<H> {
    pub(super) control: Control<H>,
    pub(super) shared: Arc<Shared>,
    pub(super) config: Arc<ArcSwap<config::Sessions>>,
    pub(super) starting: Arc<Starting>,
    pub(super) stack_workers: Arc<StackWorkers>,
    pub(super) holders: Arc<Holders>,
    /// Its places on stack workers.
    pub(super) lodgings: Vec<Lodging>,
    /// After its hello; 0 before. The control thread writes it.
    id: Arc<AtomicU32>,
    pub(super) process: Process,
    pub(super) dismissal: Dismissal,
    news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    /// This connection is a carrier, of that name.
    carries: Option<CarrierId>,
    /// The network namespace of the daemon.
    namespace: u64,
    /// Its stacks' numbers, with what their bells are found by.
    tokens: Vec<(u32, u64)>,
}

/// While the daemon ends.
fn ending() -> Refusal {
    no_resources("the daemon ends")
}

impl<H: Host> Guest for Attached<H> {
    const FILES: usize = 1;
    type Request = Request;
    type Reply = Reply;

    fn is_known(&self) -> bool {
        self.number().is_some()
    }

    async fn answer(&mut self, request: Request, brought: Vec<Brought>) -> Answer<Reply> {
        let answer = match (request, self.number()) {
            (Request::Listen(asked), Some(id)) => {
                self.listen(id, asked, brought).await.map(Reply::Listening)
            }
            (Request::Deposit(asked), Some(id)) => self.deposit(id, asked, brought).await,
            (Request::Abandon(asked), Some(id)) => self.abandon(id, asked, brought).await,
            (Request::WaitOut(asked), Some(id)) => self.wait_out(id, asked, brought).await,
            (Request::Hand(asked), Some(id)) => self.hand(id, asked, brought).await,
            // Nothing else comes with a descriptor; it is closed here.
            _ if !brought.is_empty() => {
                let problem = "only a request to listen, or one that moves connections, brings a \
                               descriptor";
                Err(invalid(problem))
            }
            (Request::Hello(hello), None) => self.greet(hello).await,
            (Request::Carrier(stack), None) => {
                let carried = self.carry(stack).await;
                self.carries = carried.as_ref().ok().copied();
                carried.map(Reply::Carried)
            }
            (Request::Hello(_) | Request::Carrier(_), Some(_)) => {
                Err(invalid("hello was said already"))
            }
            (_, None) => Err(invalid("say hello first")),
            (Request::OpenStack(asked), Some(id)) => match self.open(id, asked).await {
                Ok((opened, segment, bells)) => {
                    let reply = Reply::StackOpened(opened);
                    return Answer { reply, segment: Some(segment), bells };
                }
                Err(refusal) => Err(refusal),
            },
            (Request::OpenShared(asked), Some(id)) => match self.open_shared(id, asked).await {
                Ok((opened, segment, bells)) => {
                    let reply = Reply::SharedOpened(opened);
                    return Answer { reply, segment: Some(segment), bells };
                }
                Err(refusal) => Err(refusal),
            },
            (Request::StartStack(number), Some(_)) if self.lodging(number).is_some() => {
                self.begin(number).map(|()| Reply::StackStarted(number))
            }
            (Request::StartStack(number), Some(id)) => match self.start(id, number).await {
                Ok(()) => Ok(Reply::StackStarted(number)),
                Err(refusal) => {
                    // One that has begun already goes on.
                    if refusal.kind == RefusalKind::Resources {
                        let _ = self.close(id, number).await;
                    }
                    Err(refusal)
                }
            },
            (Request::CloseStack(number), Some(id)) => self.close(id, number).await,
            (Request::Unlisten(stack, listener), Some(id)) => {
                let unlisten = move |lent: Lent<'_>| lent.sessions.unlisten(id, stack, listener);
                self.ask(unlisten).await.map(|()| Reply::Unlistened(stack, listener))
            }
            (Request::Lease(asked), Some(id)) => {
                self.ask(move |lent| lent.sessions.lease(id, asked)).await.map(Reply::Leased)
            }
            (Request::Route(asked), Some(_)) => self.route(asked).await,
            (Request::Withdraw(asked), Some(id)) => match self.withdraw(id, asked).await {
                Ok(answer) => return answer,
                Err(refusal) => Err(refusal),
            },
            (Request::Introduce(asked), Some(id)) => match self.introduce(id, asked).await {
                Ok(answer) => return answer,
                Err(refusal) => Err(refusal),
            },
            (Request::Unlink(link), Some(id)) => {
                let unlink = move |lent: Lent<'_>| lent.sessions.unlink(id, link);
                self.ask(unlink).await.map(|()| Reply::Unlinked(link))
            }
            (Request::Decline(carrier), Some(id)) => self.decline(id, carrier).await,
        };
        answer.map_or_else(Answer::no, Answer::from)
    }

    async fn news(&mut self) -> News {
        match self.news.1.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    fn stays_silent(&self) -> bool {
        self.carries.is_some()
    }

    fn keep(self, connection: OwnedFd) {
        if let Some(id) = self.carries {
            self.watch(id, connection);
        }
    }

    fn dismissal(&self) -> impl Future<Output = String> + Send + 'static {
        let dismissal = self.dismissal.clone();
        async move { dismissal.why().await.to_owned() }
    }

    async fn leave(mut self, why: String) {
        for lodging in std::mem::take(&mut self.lodgings) {
            self.move_out(lodging).await;
        }
        // What it asked for before is done before.
        self.hear_out().await;
        let last_words = self.last_words().await;
        let number = Arc::clone(&self.id);
        let begin = self.control.ask(move |host| {
            host.lend().sessions.begin_release(number.load(Ordering::Relaxed));
        });
        begin.await;
        let left = self.release_stacks().await;
        let id = self.id.load(Ordering::Relaxed);
        self.control.ask(move |host| host.lend().sessions.release(id, &why)).await;
        // Answers come to nobody's stack from now on.
        say(&self.control, last_words).await;
        let mut memory = Vec::new();
        for left in left {
            memory.push(left.taken().await);
        }
        self.shared.bells.close(|token| token >> 32 == u64::from(id));
        self.look_at_sockets().await;
        self.unmap(memory).await;
    }
}

impl<H: Host> Attached<H> {
    pub(super) fn new(
        control: Control<H>,
        (shared, config): (Arc<Shared>, Arc<ArcSwap<config::Sessions>>),
        (starting, stack_workers): (Arc<Starting>, Arc<StackWorkers>),
        holders: Arc<Holders>,
        process: Process,
        namespace: u64,
    ) -> Self {
        Self {
            control,
            shared,
            config,
            starting,
            stack_workers,
            holders,
            lodgings: Vec::new(),
            id: Arc::default(),
            process,
            dismissal: Dismissal::default(),
            news: mpsc::channel(NEWS),
            carries: None,
            namespace,
            tokens: Vec::new(),
        }
    }

    /// Its number. `None`: it has not said hello.
    fn number(&self) -> Option<u32> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Has something done on the control thread.
    pub(super) async fn ask<R: Send + 'static>(
        &self,
        act: impl FnOnce(Lent<'_>) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, Refusal> {
        self.control.ask(move |host| act(host.lend())).await.ok_or_else(ending)?
    }

    /// The same where memory is charged to users.
    pub(super) async fn charge<R: Send + 'static>(
        &self,
        act: impl FnOnce(Lent<'_>) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, Refusal> {
        let charged = self.holders.charge(&self.control, move |host| act(host.lend()));
        charged.await.ok_or_else(ending)?
    }

    async fn greet(&self, hello: Hello) -> Result<Reply, Refusal> {
        let (process, id) = (self.process.clone(), Arc::clone(&self.id));
        let (dismissal, news) = (self.dismissal.clone(), self.news.0.clone());
        let attach = move |lent: Lent<'_>| {
            let interfaces = lent.routing.interfaces();
            let welcome = lent.sessions.attach(hello, (process, dismissal, news), &interfaces)?;
            // Known from now on, even when nobody waits for the answer any more.
            id.store(welcome.client, Ordering::Relaxed);
            Ok(welcome)
        };
        self.ask(attach).await.map(Reply::Welcome)
    }

    /// The socket stays the judge's: looking at it and closing it can take for ever.
    async fn listen(
        &self,
        id: u32,
        asked: Listen,
        brought: Vec<Brought>,
    ) -> Result<Listening, Refusal> {
        let [shown] = &brought[..] else {
            return Err(invalid("a request to listen shows one socket: the one that is bound"));
        };
        let proof = proven(shown, self.namespace)?;
        let listen = move |mut lent: Lent<'_>| {
            let listening = lent.sessions.listen(id, asked, proof);
            lent.release_early();
            listening
        };
        self.ask(listen).await
    }

    async fn route(&self, asked: Route) -> Result<Reply, Refusal> {
        let way = self.ask(move |lent| Ok(lent.route(&asked))).await?;
        Ok(Reply::Routed(way.routed()))
    }
}
