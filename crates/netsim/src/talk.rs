//! Conversations: two applications that send to each other and check every byte that arrives.

use std::net::SocketAddr;

use transport::{ConnectError, ConnectionId, Failure, Options, SocketError};

use crate::buffers::HostStack;
use crate::random::Random;

/// How one end behaves.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Bytes to send, then the end of its direction.
    pub bytes: u64,
    /// Bytes that the other end is going to send.
    pub expected: u64,
    /// Tells the contents of conversations apart; both directions differ by themselves.
    pub seed: u64,
    /// Bytes written at once at most.
    pub write: usize,
    /// Between two writes: ns; 0: as fast as there is room.
    pub write_pause: u64,
    /// Bytes read at once at most.
    pub read: usize,
    /// Between two reads: ns; 0: as fast as data comes.
    pub read_pause: u64,
    /// It resets the connection once it has sent so much.
    pub abort_at: Option<u64>,
    /// It gives the connection up when it has sent all, read or not.
    pub leaves: bool,
    /// Every byte is checked; without, all are alike and arrive faster.
    pub checked: bool,
}

impl Plan {
    /// Both directions at once, as fast as possible.
    #[must_use]
    pub fn bulk(bytes: u64, expected: u64, seed: u64) -> Self {
        let size = 65_536;
        let (write_pause, read_pause, abort_at, leaves, checked) = (0, 0, None, false, true);
        Self {
            bytes,
            expected,
            seed,
            write: size,
            write_pause,
            read: size,
            read_pause,
            abort_at,
            leaves,
            checked,
        }
    }
}

/// How an end comes by its connection.
#[derive(Debug, Clone)]
pub enum Role {
    /// It opens it then: ns.
    Opens {
        /// ns.
        at: u64,
        /// Its own address and port.
        local: SocketAddr,
        /// The other's.
        remote: SocketAddr,
        /// Of the connection.
        options: Options,
    },
    /// It takes the one from this address and port.
    Takes(SocketAddr),
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A byte was not the one that was sent.
    Wrong(u64),
    /// The end came before all that was sent.
    Short(u64),
    /// More arrived than was sent.
    Surplus(u64),
    /// The connection failed, and said why.
    Failed(Failure),
    /// It could not be opened.
    Refused(ConnectError),
    /// A call was refused that had no reason to be.
    Call(SocketError),
}

/// One end of a conversation.
#[derive(Debug)]
pub struct Talk {
    role: Role,
    plan: Plan,
    /// Sends what a taker sends.
    takes: bool,
    id: Option<ConnectionId>,
    /// Its connection in the stack before, until it has moved.
    old: Option<ConnectionId>,
    sent: u64,
    received: u64,
    shut: bool,
    over: bool,
    trouble: Option<Trouble>,
    /// What a write was told; a failure is told once.
    failed: Option<Failure>,
    next_write: u64,
    next_read: u64,
    /// When it let go of its connection: ns.
    ended_at: Option<u64>,
    scratch: Vec<u8>,
    expected: Vec<u8>,
}

/// Fills `target` with what a stream holds from `place` on. Eight bytes together name their place and their
/// stream, so that a shift by any count, or a piece of another stream, is seen.
fn content(seed: u64, place: u64, target: &mut [u8]) {
    let mut filled = 0;
    while filled < target.len() {
        let at = place + filled as u64;
        let word = Random::new((at / 8) ^ seed.rotate_right(16)).next().to_le_bytes();
        let rest = target.get_mut(filled..).unwrap_or_default();
        let word = word.get((at % 8) as usize..).unwrap_or_default();
        let count = word.len().min(rest.len());
        rest.iter_mut().zip(word).for_each(|(byte, value)| *byte = *value);
        filled += count;
    }
}

impl Talk {
    /// An end that has not begun.
    #[must_use]
    pub fn new(role: Role, plan: Plan) -> Self {
        Self {
            takes: matches!(role, Role::Takes(_)),
            role,
            plan,
            id: None,
            old: None,
            sent: 0,
            received: 0,
            shut: false,
            over: false,
            trouble: None,
            failed: None,
            next_write: 0,
            next_read: 0,
            ended_at: None,
            scratch: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// Sends what the end that takes sends, though it opens too: both open at once.
    #[must_use]
    pub fn as_taker(self) -> Self {
        Self { takes: true, ..self }
    }

    /// Whether it opens its connection.
    #[must_use]
    pub fn is_opener(&self) -> bool {
        matches!(self.role, Role::Opens { .. })
    }

    /// Whether it has let go of its connection.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// When it let go of its connection, having begun at its time: ns.
    #[must_use]
    pub fn ended_at(&self) -> Option<u64> {
        self.ended_at
    }

    /// What went wrong, if something did.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Its connection, while it has one.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        self.id.filter(|_| !self.over)
    }

    /// Bytes sent and received.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Seeds of what it sends and of what it gets: opener and taker see them crosswise.
    /// Takes a connection from `remote`, if that is the one it waits for. Gives whether.
    pub(crate) fn take(&mut self, remote: SocketAddr, id: ConnectionId) -> bool {
        let waits = matches!(self.role, Role::Takes(from) if from == remote);
        let takes = waits && self.id.is_none() && !self.over;
        if takes {
            self.id = Some(id);
        }
        takes
    }

    /// Tells the conversation from others: both ends have the same.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Whether it belongs to a connection with `remote`: the one that it has, or the one that it waits for.
    pub(crate) fn is_of(&self, id: ConnectionId, remote: SocketAddr) -> bool {
        let waits = self.id.is_none() && matches!(self.role, Role::Takes(from) if from == remote);
        let has = self.old.is_none() && self.id == Some(id);
        (waits || has) && !self.over
    }

    /// Its connection is on the way to another stack: until it has arrived there is none.
    pub(crate) fn leave(&mut self) {
        self.old = self.connection();
    }

    /// A connection has arrived. Gives whether it is this one's.
    pub(crate) fn arrive(&mut self, old: ConnectionId, new: ConnectionId) -> bool {
        let own = self.old == Some(old);
        if own {
            (self.id, self.old) = (Some(new), None);
        }
        own
    }

    fn seeds(&self) -> (u64, u64) {
        let seed = self.plan.seed * 2;
        if self.takes { (seed + 1, seed) } else { (seed, seed + 1) }
    }

    fn end(&mut self, stack: &mut HostStack, trouble: Option<Trouble>) {
        self.trouble = self.trouble.or(trouble);
        self.over = true;
        if let Some(id) = self.id {
            stack.close(id);
        }
    }

    /// Gives when to go on at the latest.
    pub(crate) fn run(&mut self, now: u64, stack: &mut HostStack) -> u64 {
        if self.over || self.old.is_some() {
            return u64::MAX;
        }
        let next = self.go_on(now, stack);
        if self.over {
            self.ended_at = Some(now);
        }
        next
    }

    fn go_on(&mut self, now: u64, stack: &mut HostStack) -> u64 {
        if let (None, Role::Opens { at, local, remote, options }) = (self.id, &self.role) {
            if *at > now {
                return *at;
            }
            match stack.connect(now, local.ip(), local.port(), *remote, options) {
                Ok(id) => self.id = Some(id),
                Err(error) => {
                    self.end(stack, Some(Trouble::Refused(error)));
                    return u64::MAX;
                }
            }
        }
        let Some(id) = self.id else { return u64::MAX };
        self.read(now, stack, id);
        if !self.over {
            self.write(now, stack, id);
        }
        if self.over {
            return u64::MAX;
        }
        if self.shut && stack.is_finished(id) {
            let short = self.received < self.plan.expected;
            let short = short.then_some(Trouble::Short(self.received));
            self.end(stack, self.failed.map(Trouble::Failed).or(short));
            return u64::MAX;
        }
        [self.next_read, self.next_write]
            .into_iter()
            .filter(|at| *at > now)
            .min()
            .unwrap_or(u64::MAX)
    }

    fn read(&mut self, now: u64, stack: &mut HostStack, id: ConnectionId) {
        let mut buffer = std::mem::take(&mut self.scratch);
        buffer.resize(self.plan.read, 0);
        self.read_into(now, stack, id, &mut buffer);
        self.scratch = buffer;
    }

    fn read_into(&mut self, now: u64, stack: &mut HostStack, id: ConnectionId, buffer: &mut [u8]) {
        while now >= self.next_read {
            let count = match stack.recv(id, buffer) {
                Ok(count) => count,
                Err(SocketError::NotConnected) => return,
                Err(SocketError::Failed(why)) => {
                    return self.end(stack, Some(Trouble::Failed(why)));
                }
                Err(other) => return self.end(stack, Some(Trouble::Call(other))),
            };
            if count == 0 {
                return;
            }
            let seed = self.seeds().1;
            let bytes = buffer.get(..count).unwrap_or_default();
            if self.plan.checked {
                self.expected.resize(count, 0);
                content(seed, self.received, &mut self.expected);
                if bytes != self.expected {
                    return self.end(stack, Some(Trouble::Wrong(self.received)));
                }
            }
            self.received += count as u64;
            if self.received > self.plan.expected {
                return self.end(stack, Some(Trouble::Surplus(self.received)));
            }
            if self.plan.read_pause > 0 {
                self.next_read = now + self.plan.read_pause;
            }
        }
    }

    fn write(&mut self, now: u64, stack: &mut HostStack, id: ConnectionId) {
        let seed = self.seeds().0;
        while now >= self.next_write && self.sent < self.plan.bytes && !self.shut {
            let count = (self.plan.bytes - self.sent).min(self.plan.write as u64);
            self.scratch.resize(count as usize, 0);
            if self.plan.checked {
                content(seed, self.sent, &mut self.scratch);
            }
            let taken = match stack.send(id, &self.scratch) {
                Ok(taken) => taken as u64,
                Err(SocketError::NotConnected) => return,
                // What was received before it failed is still to be read.
                Err(SocketError::Failed(why)) => {
                    (self.failed, self.shut) = (Some(why), true);
                    return;
                }
                Err(other) => return self.end(stack, Some(Trouble::Call(other))),
            };
            self.sent += taken;
            if self.plan.abort_at.is_some_and(|at| self.sent >= at) {
                stack.abort(id);
                self.over = true;
                return;
            }
            if self.plan.write_pause > 0 {
                self.next_write = now + self.plan.write_pause;
            }
            if taken < count {
                return;
            }
        }
        if self.sent == self.plan.bytes && !self.shut {
            self.shut = true;
            if self.plan.leaves {
                return self.end(stack, None);
            }
            // A connection that failed says so when it is read.
            let _ = stack.shutdown(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shift_and_no_other_stream_looks_right() {
        let piece = |seed, place| {
            let mut bytes = [0; 8];
            content(seed, place, &mut bytes);
            bytes
        };
        let own = piece(2, 1000);
        assert!((0..200_000).all(|place| place == 1000 || piece(2, place) != own));
        assert!((0..8).all(|seed| seed == 2 || (0..9000).all(|place| piece(seed, place) != own)));
        let mut whole = [0; 64];
        content(2, 990, &mut whole);
        assert_eq!(whole[10..18], own, "however it is cut");
    }
}
