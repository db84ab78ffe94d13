//! What a stack worker knows of a session's data.

use shm::fifo::{Reader, Writer};
use transport::ConnectionId;

use crate::session::{How, Id};

/// A session's FIFOs, as the worker knows them.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) inward: Writer,
    pub(super) outward: Reader,
    /// It is a connection whose data goes through them.
    pub(super) flows: bool,
    /// It is for datagrams, which go through them in frames.
    pub(super) frames: bool,
    /// In the list of those that have chunks.
    pub(super) listed: bool,
    /// In the list of those that wait for chunks, or for memory.
    pub(super) starved: bool,
    /// What the process has ended, when all is sent that it has written before.
    pub(super) ending: Option<How>,
}

impl Flow {
    /// Its session has ended. The next one at its number stands in the same lists still.
    pub(super) fn take(&mut self) -> Self {
        let next = Self { listed: self.listed, starved: self.starved, ..Self::default() };
        std::mem::replace(self, next)
    }

    /// Whether something goes through its FIFOs.
    pub(super) fn moves(&self) -> bool {
        self.flows || self.frames
    }
}

/// A session that ends, with what the stack has not taken yet.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) id: Id,
    pub(super) rest: Vec<u8>,
    pub(super) sent: usize,
}

/// Connections that leave the stack, or come to it.
#[derive(Debug, Default)]
pub(super) struct Travelling {
    /// Pieces of one that comes, until a call takes it in.
    pub(super) coming: Vec<u8>,
    /// Those that left by the last such call, to be fetched.
    pub(super) leaving: Vec<u8>,
}

impl Travelling {
    /// Bytes.
    pub(super) fn held(&self) -> usize {
        self.coming.capacity() + self.leaving.capacity()
    }
}

/// How far a process that is gone has left its worker, in rounds of that.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// How many there were in which it was done what the process had asked for.
    pub(super) rounds: usize,
    /// Those that are still to leave. `None`: they are not known yet.
    pub(super) closed: Option<Vec<ConnectionId>>,
}
