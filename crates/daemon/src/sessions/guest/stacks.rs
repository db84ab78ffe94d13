//! A process's stacks: opened, started and closed, with their memory and bells.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shm::Segment;
use shm::attach::Refusal;
use shm::session::{OpenStack, Reply, StackOpened};

use super::super::shared::Lodging;
use super::super::{Host, Lent};
use super::Attached;
use crate::processes::{Made, QueueBells, Shared, Theirs, grow, invalid, no_resources};

impl<H: Host> Attached<H> {
    /// Opens a stack: the control thread says how much memory it takes, which is made here, and then hands both to the
    /// workers.
    pub(super) async fn open(
        &mut self,
        id: u32,
        asked: OpenStack,
    ) -> Result<(StackOpened, Arc<Segment>, Theirs), Refusal> {
        self.open_with(id, asked, 0).await
    }

    /// The same, where `more` bytes of memory, which are charged already, will belong to it beside its queues.
    pub(in crate::sessions) async fn open_with(
        &mut self,
        id: u32,
        asked: OpenStack,
        more: usize,
    ) -> Result<(StackOpened, Arc<Segment>, Theirs), Refusal> {
        let shared = Arc::clone(&self.shared);
        let Shared { bells, turns, .. } = &*shared;
        let _turn = turns.acquire().await.map_err(no_resources)?;
        let charge = move |mut lent: Lent<'_>| lent.charge_stack(id, &asked);
        let (debit, workers) = self.charge(charge).await?;
        let segment = grow(&format!("millrace-stack-{id}"), debit, &self.holders).await?;
        let token = u64::from(id) << 32 | bells.next();
        let made = bells.make(token, 1, workers).map_err(|error| {
            no_resources(format!("a doorbell: {error}; raise the daemon's LimitNOFILE"))
        });
        let opened = match made {
            Ok((made, theirs)) => {
                let made = Made { segment: Arc::clone(&segment), bells: made };
                let open = self.ask(move |mut lent| lent.open_stack(id, asked, more, made));
                open.await.map(|opened| (opened, theirs))
            }
            Err(refusal) => Err(refusal),
        };
        match opened {
            Ok((opened, theirs)) => {
                self.tokens.push((opened.stack, token));
                Ok((opened, segment, theirs))
            }
            Err(refusal) => {
                bells.close(|other| other == token);
                Err(refusal)
            }
        }
    }

    /// Bells of a stack that was opened, which end with it.
    pub(in crate::sessions) fn make_bells(
        &mut self,
        stack: u32,
        channels: u16,
        workers: usize,
    ) -> std::io::Result<(QueueBells, Theirs)> {
        let bells = &self.shared.bells;
        let process = u64::from(self.id.load(Ordering::Relaxed));
        let token = process << 32 | bells.next();
        let made = bells.make(token, channels, workers)?;
        self.tokens.push((stack, token));
        Ok(made)
    }

    pub(super) fn lodging(&self, stack: u32) -> Option<&Lodging> {
        self.lodgings.iter().find(|lodging| lodging.stack == stack)
    }

    /// The process has mapped the memory of its sessions: it comes to its stack worker.
    pub(super) fn begin(&self, stack: u32) -> Result<(), Refusal> {
        let lodging = self.lodging(stack).ok_or_else(|| invalid("no such stack"))?;
        lodging.begin().map_err(no_resources)
    }

    pub(in crate::sessions) async fn start(&self, id: u32, number: u32) -> Result<(), Refusal> {
        let memory = self.ask(move |mut lent| lent.memory_to_start(id, number)).await?;
        // Who could take pages out of the memory could make a worker wait for each that it touches. Where it could not be made
        // immutable, this takes as long as the process has the kernel write into the file, so nobody else waits for it.
        memory.close().map_err(no_resources)?;
        drop(memory);
        self.ask(move |mut lent| lent.start_stack(id, number)).await?.done().await
    }

    /// The process leaves a stack worker. What it has closed there goes on with the daemon, before its ports are anybody else's.
    pub(super) async fn move_out(&self, lodging: Lodging) {
        let from = (self.id.load(Ordering::Relaxed), lodging.stack);
        let mut leaving = lodging.leave();
        while let Some(orphans) = leaving.next().await {
            // What the daemon does not take, it resets.
            let _ = self.adopt(from, orphans).await;
        }
    }

    pub(in crate::sessions) async fn close(
        &mut self,
        id: u32,
        number: u32,
    ) -> Result<Reply, Refusal> {
        if let Some(at) = self.lodgings.iter().position(|lodging| lodging.stack == number) {
            let lodging = self.lodgings.swap_remove(at);
            self.move_out(lodging).await;
        }
        let shared = Arc::clone(&self.shared);
        let _turn = shared.turns.acquire().await;
        let left = self.ask(move |mut lent| lent.close_stack(id, number)).await?;
        let memory = left.taken().await;
        let closed = self.tokens.iter().filter(|(stack, _)| *stack == number);
        for (_, token) in closed {
            self.shared.bells.close(|other| other == *token);
        }
        self.tokens.retain(|(stack, _)| *stack != number);
        self.unmap(vec![memory]).await;
        Ok(Reply::StackClosed(number))
    }
}
