//! When a process is gone: its peers are told, its sockets looked at, its memory unmapped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use graph::WorkerState;
use shm::Segment;
use tokio::time::sleep;

use super::super::sockets::listening;
use super::super::stacks::Left;
use super::super::{Host, LastWords, Lent};
use super::Attached;
use crate::processes::Control;

/// How often it is looked whether nobody else has a stack's memory mapped any more, each time after a [`BREATH`].
const LOOKS: usize = 50;
/// Peers that are told at once, before the next [`BREATH`].
const AT_ONCE: usize = 64;
/// How often a worker takes what all stacks have sent, for what one has sent last.
const ROUNDS: usize = 4;
/// Between two looks.
const BREATH: Duration = Duration::from_millis(1);

/// Tells peers that their connections are over, so many at a time.
pub(in crate::sessions) async fn say<H: Host>(control: &Control<H>, mut words: Vec<LastWords>) {
    while !words.is_empty() {
        let some = words.drain(..words.len().min(AT_ONCE));
        let packets: Vec<Vec<u8>> = some.flat_map(|words| words.packets()).collect();
        let said = control.ask(move |host| host.lend().routing.send(&packets)).await;
        if said.is_none() {
            return;
        }
        if !words.is_empty() {
            sleep(BREATH).await;
        }
    }
}

/// Takes what stacks have sent.
fn hear_stacks(state: &mut WorkerState) {
    for _ in 0..ROUNDS {
        if state.hear_stacks() == 0 {
            break;
        }
    }
}

impl<H: Host> Attached<H> {
    /// Has the workers take what its stacks have sent last, while that is theirs to send: a process may send a datagram and end.
    pub(super) async fn hear_out(&self) {
        // Nobody keeps the workers busy by coming and going.
        if self.tokens.is_empty() {
            return;
        }
        let hear = |host: &mut H| host.lend().workers.crew().ask_all(hear_stacks);
        if let Some(heard) = self.control.ask(hear).await {
            drop(heard.all().await);
        }
    }

    /// What its peers are to be told. The memory is looked at here, whatever its owner has written there.
    pub(super) async fn last_words(&self) -> Vec<LastWords> {
        let Some(id) = self.number() else { return Vec::new() };
        let remains = self.control.ask(move |host| host.lend().remains(id)).await;
        remains.map(|remains| remains.last_words()).unwrap_or_default()
    }

    /// Has its stacks taken back one by one: each may have places in many listeners, which are shared out anew, and a process may
    /// have hundreds.
    pub(super) async fn release_stacks(&self) -> Vec<Left> {
        let (id, mut all) = (self.id.load(Ordering::Relaxed), Vec::new());
        let release = move |host: &mut H| {
            let Lent { sessions, workers, .. } = host.lend();
            sessions.release_stack(id, workers)
        };
        while let Some(Some(left)) = self.control.ask(release).await {
            all.push(left);
        }
        all
    }

    /// Others may have the sockets that this process has served.
    pub(super) async fn look_at_sockets(&self) {
        if self.control.ask(|host| host.lend().sessions.has_vacancies()).await == Some(true) {
            let listening = listening();
            self.control.ask(move |host| host.lend().fill_vacancies(&listening)).await;
        }
    }

    /// Waits until no worker looks at the memory any more, so that it is unmapped by this thread.
    pub(super) async fn unmap(&self, memory: Vec<Arc<Segment>>) {
        for _ in 0..LOOKS {
            if memory.iter().all(|segment| Arc::strong_count(segment) == 1) {
                return;
            }
            let reclaim = self.control.ask(|host| host.lend().sessions.reclaim());
            if reclaim.await.is_none() {
                return;
            }
            sleep(BREATH).await;
        }
    }
}
