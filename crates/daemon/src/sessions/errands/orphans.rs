//! Connections that no process has any more: the daemon's own stack ends them. A process brings those of a stack of its own; those
//! of a stack worker's come from there when the process is gone.

use host::Orphans;
use shm::attach::Refusal;
use shm::session::{Abandon, Brought, Reply, WaitOut};
use transport::TimeWait;

use super::super::Host;
use super::super::guest::{Attached, say};
use super::super::moves::{Cargo, read_waits};
use super::super::parking::Purpose;
use super::{Last, ask, bring_last, carried_through, only};
use crate::processes::Control;

/// Connections in TIME-WAIT that the control thread looks at without a pause.
const AT_ONCE: usize = 256;

/// Has the own stack end connections that left a stack of a process at that time: ns. Gives how many it has taken; the others are reset.
async fn finish<H: Host>(control: &Control<H>, from: (u32, u32), at: u64, all: Vec<Cargo>) -> u32 {
    let (mut taken, mut words) = (0, Vec::new());
    for cargo in all.into_iter().filter(|cargo| !cargo.is_half_open()) {
        let last = bring_last(control, from, cargo, (at, Purpose::Finish), &mut words).await;
        let Some(Last { taking, imported, .. }) = last else { continue };
        let ended = ask(control, move |lent| lent.sessions.end_abandon(&taking, imported));
        taken += u32::from(ended.await.is_ok());
    }
    say(control, words).await;
    taken
}

/// Has the own stack wait out connections in TIME-WAIT of a stack of a process. Gives how many it has taken.
async fn sit_out<H: Host>(
    control: &Control<H>,
    (process, stack): (u32, u32),
    waits: &[TimeWait],
) -> Result<u32, Refusal> {
    let mut taken = 0;
    for batch in waits.chunks(AT_ONCE) {
        let batch = batch.to_vec();
        taken += ask(control, move |mut lent| lent.take_waits(process, stack, batch)).await?;
    }
    Ok(taken)
}

impl<H: Host> Attached<H> {
    /// The daemon ends connections that nobody holds any more.
    pub(in crate::sessions) async fn abandon(
        &self,
        process: u32,
        asked: Abandon,
        brought: Vec<Brought>,
    ) -> Result<Reply, Refusal> {
        let Abandon { stack, at, count } = asked;
        let (turn, all) = self.receive(brought, count).await?;
        let control = self.control.clone();
        let moved =
            carried_through(turn, async move { finish(&control, (process, stack), at, all).await });
        Ok(Reply::Abandoned(moved.await?))
    }

    /// The daemon waits out connections in TIME-WAIT.
    pub(in crate::sessions) async fn wait_out(
        &self,
        process: u32,
        asked: WaitOut,
        brought: Vec<Brought>,
    ) -> Result<Reply, Refusal> {
        let WaitOut { stack, at } = asked;
        let turn = self.prepare().await?;
        let waits = read_waits(only(&brought)?, at)?;
        drop(brought);
        let control = self.control.clone();
        let moved =
            carried_through(turn, async move { sit_out(&control, (process, stack), &waits).await });
        Ok(Reply::WaitingOut(moved.await??))
    }

    /// The daemon takes what a process leaves on its stack worker, as far as it may leave that. The others are reset.
    pub(in crate::sessions) async fn adopt(
        &self,
        from: (u32, u32),
        orphans: Orphans,
    ) -> Result<(), Refusal> {
        let Orphans { at, closed, waits } = orphans;
        // Most processes leave nothing: no stack starts for that.
        if closed.is_empty() && waits.is_empty() {
            return Ok(());
        }
        let turn = self.prepare().await?;
        let control = self.control.clone();
        let moved = carried_through(turn, async move {
            let all = closed.into_iter().filter_map(|parcel| Cargo::of(&parcel.bytes).ok());
            finish(&control, from, at, all.collect()).await;
            sit_out(&control, from, &waits).await
        });
        moved.await?.map(drop)
    }
}
