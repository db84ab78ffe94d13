//! Descriptors of strangers, received, looked at and closed by a process that does nothing else.
//!
//! Closing a descriptor may never end: that of a file whose file system (FUSE) does not answer, for instance. Neither may asking a
//! socket for its address, while its owner holds its lock. No signal ends the thread that waits for it, and so nothing ends its
//! process. Dropping the last reference to a descriptor may take as long, and whoever closes a connection drops those that wait
//! there. Therefore a daemon that always has to be able to end
//! - looks at each message before it receives it ([`look`](crate::attach::look())),
//! - leaves those that bring descriptors to its [`Judge`], a child that receives them and says what they are,
//! - gets nothing but memory (`memfd_create`), which no file system is asked about when it is closed, and which holds no other
//!   descriptors,
//! - and has the judge hold the connection as well, and close it later than the daemon does.

mod farewell;

use std::collections::{HashMap, VecDeque};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fcntl_get_seals;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
use serde::{Deserialize, Serialize};

use super::bound::{Bound, examine};
use crate::attach::{Channel, ChannelError, FILES, Received, files_of};
use farewell::Farewell;

/// Version of what a judge is told and answers, its first argument: another version of its program may be installed while the daemon
/// runs. A change of either bumps it.
pub const ORDERS: u32 = 1;
/// With what it ends when it knows another version: `EX_PROTOCOL` of sysexits.h.
pub const OTHER_ORDERS: u8 = 76;
/// How long the judge may take to receive a few descriptors, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a judge is told. Connections have numbers.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Keep the connection that comes along.
    Hold(u64),
    /// Receive the next message there, and hand over what it brings, unless that is more than `most`. The only order that is
    /// answered.
    Take { connection: u64, most: usize },
    /// Close what has come from there.
    Close(u64),
    /// Close the connection, too.
    Release(u64),
}

/// What has come. What is memory goes along.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// How many there were. `None`: there was no message, or no such connection.
    count: Option<usize>,
    /// What they are, unless they were too many.
    seen: Vec<Seen>,
}

impl Answer {
    /// Nothing was taken.
    const NONE: Self = Self { count: None, seen: Vec::new() };
}

/// What a descriptor is.
#[derive(Debug, Serialize, Deserialize)]
enum Seen {
    /// Memory.
    Memory,
    /// A socket that shows a bind.
    Socket(Bound),
    /// Anything else: why it shows none.
    Other(String),
}

/// What comes with a message, as the daemon gets it.
#[derive(Debug)]
pub enum Brought {
    /// Memory.
    Memory(OwnedFd),
    /// A socket that shows a bind: what the kernel says of it.
    Socket(Bound),
    /// Anything else: why it shows no bind.
    Other(String),
}

/// A judge, as the daemon sees it. What it is asked for never takes longer than a few seconds.
#[derive(Debug)]
pub struct Judge {
    orders: Channel,
    /// It has not answered yet.
    is_busy: bool,
    /// What it had no room for.
    untold: VecDeque<Order>,
}

impl Judge {
    /// A judge's two sides: the daemon's, and what the child is to call [`judge`] with.
    ///
    /// # Errors
    /// [`ChannelError::System`]: no descriptors.
    pub fn pair() -> Result<(Self, OwnedFd), ChannelError> {
        let (orders, theirs) = Channel::pair()?;
        ioctl_fionbio(&orders, true)?;
        let judge = Self { orders, is_busy: false, untold: VecDeque::new() };
        Ok((judge, theirs.into_socket()))
    }

    /// Whether it owes an answer.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Has a connection held, under a number that no other one has had.
    ///
    /// # Errors
    /// [`ChannelError::Unjudged`], [`ChannelError::System`]: it is busy. [`ChannelError::Closed`]: it has ended.
    pub fn hold(&mut self, connection: u64, socket: BorrowedFd<'_>) -> Result<(), ChannelError> {
        self.ask(&Order::Hold(connection), &[socket])
    }

    /// Has the next message of a connection received, which brings descriptors. What it says is dropped: the daemon has looked at
    /// it before. What it brings stays the judge's, until it is told to [`close`](Self::close) it.
    ///
    /// # Errors
    /// As for [`hold`](Self::hold); [`ChannelError::Unjudged`]: it does not answer; [`ChannelError::Malformed`]: more than `most`
    /// descriptors.
    pub fn take(&mut self, connection: u64, most: usize) -> Result<Vec<Brought>, ChannelError> {
        self.ask(&Order::Take { connection, most }, &[])?;
        self.is_busy = true;
        let Received { message, files } = self.hear(PATIENCE)?.ok_or(ChannelError::Unjudged)?;
        let count = message.count.ok_or(ChannelError::Unjudged)?;
        if count > most {
            return Err(ChannelError::Malformed(format!("{count} descriptors come with it")));
        }
        let mut files = files.into_iter();
        let brought = message.seen.into_iter().filter_map(|seen| match seen {
            Seen::Memory => files.next().map(Brought::Memory),
            Seen::Socket(bound) => Some(Brought::Socket(bound)),
            Seen::Other(why) => Some(Brought::Other(why)),
        });
        Ok(brought.collect())
    }

    /// Has closed what was taken from a connection. Whoever calls this has closed it before.
    pub fn close(&mut self, connection: u64) {
        self.tell(Order::Close(connection));
    }

    /// Has a connection closed, and what was taken there. Whoever calls this has closed it before.
    pub fn release(&mut self, connection: u64) {
        self.tell(Order::Release(connection));
    }

    /// Tells it something now, or not at all.
    fn ask(&mut self, order: &Order, files: &[BorrowedFd<'_>]) -> Result<(), ChannelError> {
        // An answer that came too late is nobody's.
        drop(self.hear(Duration::ZERO)?);
        self.catch_up();
        if self.is_busy || !self.untold.is_empty() {
            return Err(ChannelError::Unjudged);
        }
        self.orders.send(order, files)
    }

    /// Tells it something now, or when there is room for it.
    fn tell(&mut self, order: Order) {
        self.untold.push_back(order);
        self.catch_up();
    }

    fn catch_up(&mut self) {
        while let Some(order) = self.untold.front() {
            if self.orders.send(order, &[]).is_err() {
                return;
            }
            self.untold.pop_front();
        }
    }

    /// Its answer, if one comes within that time that can be read.
    fn hear(&mut self, patience: Duration) -> Result<Option<Received<Answer>>, ChannelError> {
        let end = Instant::now() + patience;
        loop {
            match self.orders.receive_now() {
                Ok(None) => {}
                Err(error @ (ChannelError::Closed | ChannelError::System(_))) => return Err(error),
                // One that cannot be read, for want of descriptors, was its answer as well.
                answer => {
                    self.is_busy = false;
                    return Ok(answer.ok().flatten());
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // Whatever ends the wait, it is looked again.
            let left = Timespec::try_from(left).ok();
            let _ = poll(&mut [PollFd::new(&self.orders, PollFlags::IN)], left.as_ref());
        }
    }
}

/// What the process does: obeys, until whoever orders has ended, of which it tells all whose connections it holds. Any close may
/// take for ever.
///
/// # Errors
/// [`ChannelError`]: the system's, or orders that make no sense.
pub fn judge(orders: OwnedFd) -> Result<(), ChannelError> {
    let farewell = Farewell::default();
    farewell.watch(orders.try_clone()?);
    let orders = Channel::of(orders);
    let mut all: HashMap<u64, Held> = HashMap::new();
    loop {
        let Received { message, mut files } = match orders.receive::<Order>() {
            Ok(order) => order,
            Err(ChannelError::Closed) => return Ok(()),
            // There was no room for its descriptor. What is held already stays so.
            Err(ChannelError::TooLong(_)) => continue,
            Err(error) => return Err(error),
        };
        match message {
            Order::Hold(number) => {
                if let Some(connection) = files.pop().map(Arc::new) {
                    farewell.add(number, &connection);
                    all.insert(number, Held { connection, brought: Vec::new() });
                }
            }
            Order::Take { connection, most } => {
                let brought = all.get_mut(&connection).and_then(Held::take);
                let count = brought.map(<[OwnedFd]>::len);
                let files = brought.filter(|files| files.len() <= most).unwrap_or_default();
                let seen = files.iter().map(see).collect();
                let memory: Vec<BorrowedFd<'_>> =
                    files.iter().filter(|file| is_memory(file)).map(AsFd::as_fd).collect();
                match orders.send(&Answer { count, seen }, &memory) {
                    // Its user has too many descriptors under way, for instance.
                    Err(ChannelError::System(_)) => orders.send(&Answer::NONE, &[])?,
                    sent => sent?,
                }
            }
            Order::Close(number) => {
                if let Some(held) = all.get_mut(&number) {
                    held.brought.clear();
                }
            }
            Order::Release(number) => {
                farewell.remove(number);
                all.remove(&number);
            }
        }
    }
}

/// A connection that the daemon has, too.
struct Held {
    connection: Arc<OwnedFd>,
    /// What has come from there, and may be the daemon's, too.
    brought: Vec<OwnedFd>,
}

impl Held {
    /// Receives what comes with the next message.
    fn take(&mut self) -> Option<&[OwnedFd]> {
        self.brought = brought(self.connection.as_fd()).ok()?;
        Some(&self.brought)
    }
}

/// What comes with the next message of a connection.
fn brought(connection: BorrowedFd<'_>) -> Result<Vec<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut beginning = [0];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    recvmsg(connection, &mut [IoSliceMut::new(&mut beginning)], &mut ancillary, flags)?;
    Ok(files_of(&mut ancillary))
}

/// Whether it is memory; no file system is asked about that.
fn is_memory(file: &OwnedFd) -> bool {
    fcntl_get_seals(file).is_ok()
}

/// What a descriptor is. Of a socket, its owner may let this wait for ever.
fn see(file: &OwnedFd) -> Seen {
    if is_memory(file) {
        return Seen::Memory;
    }
    match examine(file) {
        Ok(bound) => Seen::Socket(bound),
        Err(error) => Seen::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
