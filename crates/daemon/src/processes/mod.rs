//! Sockets at which processes of this machine ask the daemon for something. Whatever a user does keeps that user's thread
//! busy, and no other.
//!
//! | module | thread | job |
//! | --- | --- | --- |
//! | `door` | one for each socket | accepts connections, and hands each to its user's thread |
//! | `desk` | one for each socket and user | what a user does keeps that thread busy, and no other |
//! | `visit` | the user's | a connection: requests are received, paced and answered |
//! | `user` | the user's | what its connections share: the pace of requests, turns, places |
//! | `rhythm` | all | how often something comes: in bursts, and then evenly |
//! | `bells` | the user's | the user's doorbells are rung and drained |
//! | `strangers` | that of the socket | who may not come has so many connections that are told why |
//! | `judging` | the user's | what processes hand over is received and closed by a process of its own |
//! | `kept` | the user's | connections on which nothing more is said, until nobody holds the other end |
//! | `memory` | the user's | segments are made |
//! | `holders` | the user's, control | memory counts for its user until nobody holds it |
//! | `sparing` | all | the log says what they do, and what they lack, not too often |
//! | `asks`, `bounds` | control | does what was asked, as much as a user may have |
//!
//! What is asked and answered at a socket is its [`Service`]'s.

mod asks;
mod bells;
mod bounds;
mod desk;
mod door;
mod holders;
mod judging;
mod kept;
mod memory;
mod refusal;
mod rhythm;
mod sparing;
mod strangers;
#[cfg(test)]
mod testing;
mod user;
mod visit;

use std::future::Future;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use shm::attach::{PeerCredentials, Refusal};
use shm::session::Brought;

pub(crate) use asks::{Control, asks};
pub(crate) use bells::{QueueBells, Theirs};
pub(crate) use bounds::{Paces, UserBound};
pub(crate) use door::Door;
pub(crate) use holders::{Accounts, Debit, Holders, MemoryBound};
pub(crate) use judging::{inherit_judges, reap_judges};
pub(crate) use memory::{Made, PAGE, channel, grow};
pub(crate) use refusal::{check_name, invalid, no_resources, printable, unknown};
pub(crate) use sparing::{Sparing, complain};
pub(crate) use user::{Place, Shared};
pub(crate) use visit::Answer;

/// What the kernel says of a process.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) credentials: PeerCredentials,
    /// All of its groups.
    pub(crate) groups: Vec<u32>,
}

/// How much may come to a socket: keys of its section of the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// `most`: processes at once, of root, and of all other users together.
    pub(crate) most: u16,
    /// `connections`: of one user.
    pub(crate) connections: u16,
    /// `requests`: of one user, a second.
    pub(crate) requests: u32,
}

/// What there is at a socket.
pub(crate) trait Service: Send + Sync + 'static {
    /// The socket's name, which the accepting thread bears.
    const SOCKET: &'static str;
    /// What the users' threads are called, before the user's number.
    const THREAD: &'static str;
    /// Its section of the configuration.
    const SECTION: &'static str;
    /// What a process that came is here.
    type Guest: Guest;

    /// The bounds in force.
    fn bounds(&self) -> Bounds;

    /// Whether a process may come.
    ///
    /// Errors: what it is told.
    fn admit(&self, process: &Process) -> Result<(), Refusal>;

    /// A process has come.
    fn receive(&self, process: Process, shared: Arc<Shared>) -> Self::Guest;
}

/// A process at a socket, on its user's thread.
pub(crate) trait Guest: Send + Sync + 'static {
    /// Most descriptors that come with one of its requests.
    const FILES: usize;
    /// What it says.
    type Request: DeserializeOwned + Send;
    /// What it is told.
    type Reply: Serialize + From<Refusal> + Send + Sync;

    /// Whether it has said hello, and was welcomed.
    fn is_known(&self) -> bool;

    /// Answers a request.
    fn answer(
        &mut self,
        request: Self::Request,
        brought: Vec<Brought>,
    ) -> impl Future<Output = Answer<Self::Reply>> + Send;

    /// The next thing that it is told without having asked, once it is known.
    fn news(&mut self) -> impl Future<Output = Answer<Self::Reply>> + Send {
        std::future::pending()
    }

    /// Whether its connection is kept, and nothing is said on it any more.
    fn stays_silent(&self) -> bool {
        false
    }

    /// Keeps the connection of one that stays silent.
    fn keep(self, connection: OwnedFd);

    /// When it may not stay any longer. To be waited for beside what it asks.
    fn dismissal(&self) -> impl Future<Output = String> + Send + 'static {
        std::future::pending()
    }

    /// Has everything taken back that it had.
    fn leave(self, why: String) -> impl Future<Output = ()> + Send;
}
