//! The user's thread: from a request to its reply. What was begun is finished, even when the process that asked is gone.

mod orphans;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use control::config;
use graph::StackId;
use rustix::fs::fstat;
use shm::attach::Refusal;
use shm::session::{Brought, CarrierId, Deposit, Hand, Reply, Withdraw, Withdrawn};
use tokio::sync::OwnedSemaphorePermit;
use transport::{ConnectionId, ImportError};

use super::guest::{Attached, say};
use super::moves::{Answered, Cargo, Taking, read, written};
use super::parking::{self, Arrival, Endings, Purpose, Started};
use super::{Host, LastWords, Lent};
use crate::processes::{Answer, Control, Debit, Holders, invalid, no_resources};

/// Connections in one file.
const BATCH: u32 = 4_096;
/// What a socket's own part and a connection's state take in a file, beside the data: bytes.
const STATE: usize = 16 << 10;

fn ending() -> Refusal {
    no_resources("the daemon ends")
}

/// The file that comes with a request.
fn only(brought: &[Brought]) -> Result<&OwnedFd, Refusal> {
    match brought {
        [Brought::Memory(file)] => Ok(file),
        [_] => Err(invalid("connections come in a file (memfd_create), and nothing else")),
        _ => Err(invalid("a request that moves connections brings one file with them")),
    }
}

/// On the control thread.
async fn ask<H: Host, R: Send + 'static>(
    control: &Control<H>,
    act: impl FnOnce(Lent<'_>) -> Result<R, Refusal> + Send + 'static,
) -> Result<R, Refusal> {
    control.ask(move |host| act(host.lend())).await.ok_or_else(ending)?
}

/// Does what was begun to its end, though nobody may wait for it any more. Until then it is the user's turn: whoever has the next
/// one reads as much into memory.
async fn carried_through<R: Send + 'static>(
    turn: OwnedSemaphorePermit,
    act: impl Future<Output = R> + Send + 'static,
) -> Result<R, Refusal> {
    let all = async move {
        let _turn = turn;
        act.await
    };
    tokio::spawn(all).await.map_err(no_resources)
}

/// A file with a connection, and since when it waits there, counts for its user until nobody holds it any more.
fn counted(
    (file, at): (OwnedFd, u64),
    mut debit: Debit,
    holders: &Holders,
) -> Result<(OwnedFd, u64), Refusal> {
    let status = fstat(&file).map_err(no_resources)?;
    debit.add(usize::try_from(status.st_size).unwrap_or(0));
    holders.watch(&file, debit)?;
    Ok((file, at))
}

/// The number of a connection in the own stack, if there is one and it has come.
type Imported = Result<Option<ConnectionId>, ImportError>;

/// Brings a connection to the daemon's own stack.
async fn bring(taking: &mut Taking, cargo: &mut Cargo, at: u64, purpose: Purpose) -> Imported {
    let room = cargo.room();
    let bytes = std::mem::take(&mut cargo.connection);
    let imported = match bytes.is_empty() {
        true => Ok(None),
        false => {
            let ends = cargo.summary.map(|summary| summary.ends);
            let arrival = Arrival { bytes, at, room, ends, purpose };
            taking.parking.import(arrival).await.map(Some)
        }
    };
    taking.expected = None;
    imported
}

/// A connection that nobody has any more, where the daemon has begun to take it.
struct Last {
    taking: Taking,
    /// What belongs to its socket.
    own: Vec<u8>,
    /// The stack that it has left.
    from: StackId,
    imported: Imported,
}

/// Brings a connection that nobody has any more to the own stack. `None`: the daemon does not take it. `words`: with what its peer is to
/// be told when it could not be taken, or does not come.
async fn bring_last<H: Host>(
    control: &Control<H>,
    (process, stack): (u32, u32),
    cargo: Cargo,
    (at, purpose): (u64, Purpose),
    words: &mut Vec<LastWords>,
) -> Option<Last> {
    let begun = ask(control, move |mut lent| {
        let from = lent.sessions.stack(process, stack)?.id;
        Ok((lent.take_last(process, stack, &cargo), cargo, from))
    });
    let (taken, mut cargo, from) = begun.await.ok()?;
    let mut taking = match taken {
        Ok(taking) => taking,
        Err(last) => {
            words.extend(last);
            return None;
        }
    };
    let imported = bring(&mut taking, &mut cargo, at, purpose).await;
    if imported.is_err() {
        words.extend(cargo.last_words());
    }
    Some(Last { taking, own: cargo.own, from, imported })
}

impl<H: Host> Attached<H> {
    /// This connection becomes a carrier.
    pub(super) async fn carry(&self, stack: u32) -> Result<CarrierId, Refusal> {
        let uid = self.process.credentials.uid;
        ask(&self.control, move |lent| lent.sessions.carry(uid, stack)).await
    }

    /// Nobody holds the carrier any more.
    pub(super) fn watch(self, id: CarrierId, socket: OwnedFd) {
        let (shared, control) = (Arc::clone(&self.shared), self.control);
        shared.keep(socket, move || {
            tokio::spawn(async move {
                control.ask(move |host| host.lend().sessions.carrier_closed(id)).await
            });
        });
    }

    /// Has the daemon's own stack started, unless it is there.
    async fn need_parking(&self) -> Result<(), Refusal> {
        let is_there = |lent: Lent<'_>| Ok(lent.sessions.has_parking());
        if ask(&self.control, is_there).await? {
            return Ok(());
        }
        let starting = Arc::clone(&self.starting);
        let _turn = starting.turn().await;
        if ask(&self.control, is_there).await? {
            return Ok(());
        }
        let control = self.control.clone();
        let ended = Box::new(move |Endings { over, free }: Endings| {
            let now = Instant::now();
            control.tell(move |host| {
                let Lent { sessions, .. } = host.lend();
                sessions.connections_over(&over);
                sessions.flows_ended(&free, now);
            });
        });
        let started = parking::start(starting.path(), ended, starting.pulse());
        let Started { parking, client, stack } = started.await?;
        ask(&self.control, move |lent| lent.sessions.set_parking(parking, (client, stack))).await
    }

    /// The own stack is there, and it is the user's turn.
    async fn prepare(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        // Before its turn: the own stack takes one itself when it starts.
        self.need_parking().await?;
        Arc::clone(&self.shared.turns).acquire_owned().await.map_err(no_resources)
    }

    /// Reads what comes along.
    fn cargo(&self, brought: &[Brought], count: u32) -> Result<Vec<Cargo>, Refusal> {
        let file = only(brought)?;
        if count > BATCH {
            return Err(no_resources(format!(
                "{count} connections in one file; at most {BATCH} are allowed"
            )));
        }
        let config::Sessions { parked_memory, .. } = **self.config.load();
        let most = ((parked_memory as usize) << 20) + count as usize * STATE;
        read(file, count, most)
    }

    /// Waits for its turn, reads what comes along, and closes what it came in.
    async fn receive(
        &self,
        brought: Vec<Brought>,
        count: u32,
    ) -> Result<(OwnedSemaphorePermit, Vec<Cargo>), Refusal> {
        let turn = self.prepare().await?;
        Ok((turn, self.cargo(&brought, count)?))
    }

    /// The daemon takes a connection that has a carrier.
    pub(super) async fn deposit(
        &self,
        process: u32,
        asked: Deposit,
        brought: Vec<Brought>,
    ) -> Result<Reply, Refusal> {
        let (turn, mut all) = self.receive(brought, 1).await?;
        let cargo = all.pop().ok_or_else(|| invalid("no connection"))?;
        let Deposit { stack, id, at } = asked;
        let (control, from) = (self.control.clone(), (process, stack));
        let moved = carried_through(turn, async move {
            let (mut taking, mut cargo) = ask(&control, move |mut lent| {
                lent.sessions.begin_deposit(id, from)?;
                match lent.take(process, stack, &cargo) {
                    Ok(taking) => Ok((taking, cargo)),
                    Err(refusal) => {
                        lent.sessions.cancel_deposit(id, from);
                        Err(refusal)
                    }
                }
            })
            .await?;
            let imported = bring(&mut taking, &mut cargo, at, Purpose::Keep).await;
            ask(&control, move |lent| {
                lent.sessions.end_deposit(id, from, (&taking, cargo.own), imported)
            })
            .await
        });
        moved.await??;
        Ok(Reply::Deposited(id))
    }

    /// A process asks for a connection.
    pub(super) async fn withdraw(
        &self,
        process: u32,
        asked: Withdraw,
    ) -> Result<Answer<Reply>, Refusal> {
        let Withdraw { stack, id } = asked;
        let (control, to) = (self.control.clone(), (process, stack));
        let holders = Arc::clone(&self.holders);
        let moved = tokio::spawn(async move {
            let begin = move |host: &mut H| host.lend().sessions.begin_withdraw(id, to);
            let begun = holders.charge(&control, begin).await.ok_or_else(ending)??;
            let Answered::Take(leaving) = begun else { return Ok(None) };
            let charge = leaving.charge();
            let given = match (&leaving.parking, leaving.connection) {
                (Some(parking), Some(connection)) => match parking.export(connection).await {
                    Ok(left) => written(&leaving.own, &left.bytes).map(|file| (file, left.at)),
                    Err(_) => Err(no_resources("the connection has ended")),
                },
                (_, None) => written(&leaving.own, &[]).map(|file| (file, 0)),
                (None, Some(_)) => Err(no_resources("the daemon's own stack has ended")),
            };
            let given = given.and_then(|file| counted(file, leaving.debit, &holders));
            let is_given = given.is_ok();
            ask(&control, move |lent| {
                lent.sessions.end_withdraw(id, to, charge, is_given);
                Ok(())
            })
            .await?;
            given.map(Some)
        });
        Ok(match moved.await.map_err(no_resources)?? {
            Some((file, at)) => {
                let reply = Reply::Withdrawn(Withdrawn { id, at });
                Answer { reply, segment: None, bells: vec![file] }
            }
            None => Answer::from(Reply::Recalling(id)),
        })
    }

    /// The process does not give a connection that it was asked for.
    pub(super) async fn decline(&self, process: u32, id: CarrierId) -> Result<Reply, Refusal> {
        ask(&self.control, move |lent| lent.sessions.decline(id, process)).await?;
        Ok(Reply::Declined(id))
    }

    /// Connections that wait to be accepted are for other members of their listener.
    pub(super) async fn hand(
        &self,
        process: u32,
        asked: Hand,
        brought: Vec<Brought>,
    ) -> Result<Reply, Refusal> {
        let Hand { stack, listener, at, count } = asked;
        let (turn, all) = self.receive(brought, count).await?;
        let control = self.control.clone();
        let moved = carried_through(turn, async move {
            let (mut taken, mut words) = (0, Vec::new());
            for cargo in all.into_iter().filter(|cargo| cargo.waits()) {
                let how = (at, Purpose::Keep);
                let last = bring_last(&control, (process, stack), cargo, how, &mut words).await;
                let Some(Last { taking, own, from, imported }) = last else { continue };
                let handed = ask(&control, move |lent| {
                    lent.sessions.end_hand((from, listener), (&taking, own), imported)
                });
                taken += u32::from(handed.await.is_ok_and(|handed| handed));
            }
            say(&control, words).await;
            taken
        });
        Ok(Reply::Handed(moved.await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use tokio::sync::{Semaphore, oneshot};
    use tokio::time::timeout;

    use crate::processes::{Accounts, MemoryBound};

    #[test]
    fn a_file_that_was_given_back_counts_until_it_is_closed() {
        let (holders, mut accounts) = (Holders::new(), Accounts::default());
        let bound = MemoryBound { section: "test", mebibytes: 1, pieces: 8 };
        let debit = accounts.charge([7; 2], 0, bound).unwrap();
        let file = written(b"its own", b"").unwrap();
        let (file, at) = counted((file, 5), debit, &holders).unwrap();
        assert_eq!(at, 5);
        holders.settle();
        assert!(accounts.check([7; 2], 1 << 20, bound).is_err());
        drop(file);
        // A process that another test starts has all files for a moment.
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            holders.settle();
            accounts.check([7; 2], 1 << 20, bound).is_ok()
        });
        assert!(gone);
    }

    #[tokio::test]
    async fn it_is_the_users_turn_until_all_is_done_though_the_process_has_gone() {
        let turns = Arc::new(Semaphore::new(1));
        let turn = Arc::clone(&turns).acquire_owned().await.unwrap();
        let (go_on, waits) = oneshot::channel::<()>();
        let begun = carried_through(turn, async move { waits.await.is_ok() });
        assert!(timeout(Duration::from_millis(1), begun).await.is_err());
        assert_eq!(turns.available_permits(), 0);
        go_on.send(()).unwrap();
        let next = timeout(Duration::from_secs(20), turns.acquire());
        assert!(next.await.unwrap().is_ok());
    }
}
