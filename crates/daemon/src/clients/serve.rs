//! An attached process, on its user's thread.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shm::Segment;
use shm::attach::{Hello, Open, Opened, Refusal, Reply, Request};
use shm::session::Brought;
use tokio::time::sleep;

use super::{Host, Lent, permission};
use crate::processes::{
    Answer, Control, Guest, Holders, Made, Process, Shared, Theirs, grow, invalid, no_resources,
    unknown,
};

/// How often it is looked whether the workers are done with a client's memory, each time after a [`BREATH`].
const LOOKS: usize = 50;
/// Between two looks.
const BREATH: Duration = Duration::from_millis(1);

/// One connection's state.
pub(super) struct Attached<H> {
    pub(super) control: Control<H>,
    pub(super) shared: Arc<Shared>,
    pub(super) holders: Arc<Holders>,
    /// After its hello; 0 before. The control thread writes it.
    pub(super) id: Arc<AtomicU32>,
    pub(super) process: Process,
    /// Its queues' numbers, with what their bells are found by.
    pub(super) tokens: Vec<(u32, u64)>,
}

/// While the daemon ends.
fn ending() -> Refusal {
    no_resources("the daemon ends")
}

/// On the control thread.
async fn ask<H: Host, R: Send + 'static>(
    control: &Control<H>,
    act: impl FnOnce(Lent<'_>) -> R + Send + 'static,
) -> Option<R> {
    control.ask(move |host| act(host.lend_to_clients())).await
}

impl<H: Host> Guest for Attached<H> {
    const FILES: usize = 0;
    type Request = Request;
    type Reply = Reply;

    fn is_known(&self) -> bool {
        self.number().is_some()
    }

    async fn answer(&mut self, request: Request, _: Vec<Brought>) -> Answer<Reply> {
        let answer = match (request, self.number()) {
            (Request::Hello(hello), None) => self.greet(hello).await,
            (Request::Hello(_), Some(_)) => Err(invalid("hello was said already")),
            (_, None) => Err(invalid("say hello first")),
            (Request::Ports, Some(id)) => {
                let ports = self.ask(move |mut lent| lent.ports_of_client(id)).await;
                ports.map(Reply::Ports).ok_or_else(ending)
            }
            (Request::Open(asked), Some(id)) => match self.open(id, asked).await {
                Ok((opened, segment, bells)) => {
                    return Answer { reply: Reply::Opened(opened), segment: Some(segment), bells };
                }
                Err(refusal) => Err(refusal),
            },
            (Request::Start(number), Some(id)) => match self.start(id, number).await {
                Ok(()) => Ok(Reply::Started(number)),
                Err(refusal) => {
                    let _ = self.close(id, number).await;
                    Err(refusal)
                }
            },
            (Request::Close(number), Some(id)) => self.close(id, number).await,
        };
        answer.map_or_else(Answer::no, Answer::from)
    }

    fn keep(self, _: OwnedFd) {}

    async fn leave(self, why: String) {
        let id = Arc::clone(&self.id);
        // What it asked for before is done before.
        let release = self.ask(move |mut lent| {
            let id = id.load(Ordering::Relaxed);
            lent.release_client(id, &why)
        });
        for left in release.await.unwrap_or_default() {
            left.taken().await;
        }
        let client = u64::from(self.id.load(Ordering::Relaxed));
        self.shared.bells.close(|token| token >> 32 == client);
        unmap(&self.control).await;
    }
}

impl<H: Host> Attached<H> {
    /// On the control thread.
    async fn ask<R: Send + 'static>(
        &self,
        act: impl FnOnce(Lent<'_>) -> R + Send + 'static,
    ) -> Option<R> {
        ask(&self.control, act).await
    }

    /// Its number. `None`: it has not said hello.
    fn number(&self) -> Option<u32> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    async fn greet(&self, hello: Hello) -> Result<Reply, Refusal> {
        let (process, id) = (self.process.clone(), Arc::clone(&self.id));
        let member = permission::is_member(&process);
        let attach = self.ask(move |mut lent| {
            let welcome = lent.attach_client(hello, (process, member))?;
            // Known from now on, even when nobody waits for the answer any more.
            id.store(welcome.client, Ordering::Relaxed);
            Ok::<_, Refusal>(welcome)
        });
        attach.await.ok_or_else(ending)?.map(Reply::Welcome)
    }

    /// Opens queues: the control thread says how much memory they take, which is made here, and then hands both to the
    /// workers.
    async fn open(
        &mut self,
        id: u32,
        asked: Open,
    ) -> Result<(Opened, Arc<Segment>, Theirs), Refusal> {
        let (control, Shared { bells, turns, .. }) = (&self.control, &*self.shared);
        let _turn = turns.acquire().await.map_err(no_resources)?;
        let place = match asked.queue.clone() {
            Some(wanted) => {
                let asked = asked.clone();
                let find = move |lent: Lent<'_>| lent.find_own_queue(id, &asked, &wanted);
                Some(ask(control, find).await.ok_or_else(ending)??.place().await?)
            }
            None => None,
        };
        let (wanted, at) = (asked.clone(), place.clone());
        let charge = move |host: &mut H| {
            host.lend_to_clients().charge_client_queues(id, &wanted, at.as_ref())
        };
        let (debit, workers) = self.holders.charge(control, charge).await.ok_or_else(ending)??;
        let segment = grow(&format!("millrace-client-{id}"), debit, &self.holders).await?;
        let place = match (asked.queue.clone(), place) {
            (Some(wanted), Some(place)) => {
                let (asked, at) = (asked.clone(), place.clone());
                let find =
                    move |lent: Lent<'_>| lent.buffers_of_own_queue(id, &asked, (&wanted, &at));
                let buffers = ask(control, find).await.ok_or_else(ending)??;
                Some((place, buffers.reach(&segment).await?))
            }
            _ => None,
        };
        // Where it is refused, it is unmapped here.
        let _memory = place.as_ref().map(|(_, memory)| Arc::clone(memory));
        let token = u64::from(id) << 32 | bells.next();
        let made = bells.make(token, asked.channels, workers).map_err(|error| {
            no_resources(format!("a doorbell: {error}; raise the daemon's LimitNOFILE"))
        });
        let opened = match made {
            Ok((made, theirs)) => {
                let made = Made { segment: Arc::clone(&segment), bells: made };
                let made = (made, place);
                let open = ask(control, move |mut lent| lent.open_client_queues(id, asked, made));
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
        let find = move |lent: Lent<'_>| lent.memory_to_start(id, number);
        let memory = self.ask(find).await.ok_or_else(ending)??;
        // Who could take pages out of the memory could make a worker wait for each that it touches. Where it could not be made
        // immutable, this takes as long as the process has the kernel write into the file, so nobody else waits for it.
        memory.close().map_err(no_resources)?;
        drop(memory);
        let start = move |mut lent: Lent<'_>| lent.start_client_queues(id, number);
        self.ask(start).await.ok_or_else(ending)??.done().await
    }

    async fn close(&mut self, id: u32, number: u32) -> Result<Reply, Refusal> {
        let shared = Arc::clone(&self.shared);
        let _turn = shared.turns.acquire().await;
        let closed = self.ask(move |mut lent| lent.close_client_queues(id, number)).await;
        let left = closed.ok_or_else(ending)?;
        let left = left.ok_or_else(|| unknown(format!("there are no queues {number}")))?;
        // The last to hold the memory is this thread.
        left.taken().await;
        unmap(&self.control).await;
        self.close_bells(number);
        Ok(Reply::Closed(number))
    }

    fn close_bells(&mut self, number: u32) {
        let closed = self.tokens.iter().filter(|(queues, _)| *queues == number);
        let tokens: Vec<u64> = closed.map(|(_, token)| *token).collect();
        self.tokens.retain(|(queues, _)| *queues != number);
        self.shared.bells.close(|token| tokens.contains(&token));
    }
}

/// Waits until the workers have moved a device's buffers out of memory that was a client's, and unmaps it. What a device
/// still holds is looked for once a second.
async fn unmap<H: Host>(control: &Control<H>) {
    for _ in 0..LOOKS {
        match ask(control, |mut lent| lent.free_retired()).await {
            Some((_unmapped_here, false)) => {}
            _ => return,
        }
        sleep(BREATH).await;
    }
}
