//! Where a connection's data lies: byte FIFOs that are given from outside.

use wire::checksum::Sum;

use crate::ends::Ends;
use crate::handle::{ConnectionId, ListenerId};

pub use pieces::{PIECE, PieceMemory, Pieces};
pub use ring::{Ring, Rings};

mod pieces;
mod ring;

/// A FIFO of bytes with one writer and one reader.
///
/// The stack writes received data: [`write_at`](Self::write_at) beyond the readable end, out of order
/// too, then [`commit`](Self::commit). It sends from the other FIFO: [`peek`](Self::peek) at any
/// offset, again for a retransmission, [`consume`](Self::consume) when acknowledged. The other side
/// of either may be another process, so lengths may grow (transmit) or shrink (receive) at any time
/// by its doing; an implementation answers with what it checked itself, never with what that side
/// claims unchecked. The stack in turn believes no answer twice: a length that shrinks or jumps between
/// two calls changes what the peer gets to read, nothing else. It never sees the memory, only copies of it.
pub trait ByteFifo {
    /// Bytes that can be read.
    fn len(&self) -> usize;

    /// Whether nothing can be read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that may be written beyond the readable end.
    fn room(&self) -> usize;

    /// Bytes that it may hold in all.
    fn capacity(&self) -> usize;

    /// Copies `bytes` to `offset` bytes beyond the readable end, without making them readable.
    /// Returns bytes copied: less than given where room ends.
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize;

    /// Copies into `target` what was written `offset` bytes beyond the readable end, as when the connection
    /// moves to another stack. Returns bytes copied.
    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize;

    /// Makes `count` bytes more readable; they were written before. At most [`room`](Self::room) are.
    fn commit(&mut self, count: usize);

    /// Copies what is readable from `offset` on into `target`. Returns bytes copied.
    fn peek(&self, offset: usize, target: &mut [u8]) -> usize;

    /// The same, with the sum of what was copied. An implementation whose memory nobody else writes does both
    /// in one pass ([`Sum::copy`]); where another process may write, only the copy may be summed, as it is here.
    fn peek_summed(&self, offset: usize, target: &mut [u8]) -> (usize, Sum) {
        let copied = self.peek(offset, target);
        (copied, target.get(..copied).map_or(Sum::new(), |copy| Sum::new().bytes(copy)))
    }

    /// Takes `count` bytes off the front, at most what is readable.
    fn consume(&mut self, count: usize);

    /// Asks for a capacity of `capacity` bytes. Returns the capacity from now on, which may be
    /// the old one. Data stays as it is, bytes beyond the readable end included.
    fn resize(&mut self, capacity: usize) -> usize;

    /// Asks the cache for the memory near both of its ends, ahead of its use; reads nothing.
    fn prefetch(&self) {}

    /// Writes and commits. Returns bytes taken.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let written = self.write_at(0, bytes);
        self.commit(written);
        written
    }
}

/// The two FIFOs of a connection.
#[derive(Debug)]
pub struct Pair<F> {
    /// What the peer sent.
    pub receive: F,
    /// What goes to the peer.
    pub transmit: F,
}

/// A connection that needs its FIFOs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The connection.
    pub connection: ConnectionId,
    /// Its addresses and ports.
    pub ends: Ends,
    /// Where it came in; `None`: it was opened from here.
    pub listener: Option<ListenerId>,
    /// Bytes of receive FIFO wished for.
    pub receive: usize,
    /// Bytes of transmit FIFO wished for.
    pub transmit: usize,
}

/// The answer to an [`Opening`].
#[derive(Debug)]
pub enum Grant<F> {
    /// Here they are.
    Given(Pair<F>),
    /// Not now, as when the application's accept queue is full: the acknowledgment that completes the
    /// handshake, or the data in a SYN, is dropped. Neither side gives up; the client's next segment, or
    /// its answer to the repeated SYN-ACK, asks again. A `connect` is refused.
    Later,
    /// Never: the connection is reset.
    Refused,
}

/// Gives FIFOs to connections, when they are established or opened, and takes them back.
pub trait Buffers {
    /// The kind of FIFO.
    type Fifo: ByteFifo;

    /// Whether a SYN for `listener` may be answered. `false` drops it, and the client sends it again:
    /// right when the application could not take the connection anyway.
    fn admits(&mut self, _listener: ListenerId, _ends: &Ends) -> bool {
        true
    }

    /// FIFOs for a connection.
    fn open(&mut self, opening: &Opening) -> Grant<Self::Fifo>;

    /// Takes them back: the stack is done with the connection.
    fn close(&mut self, connection: ConnectionId, pair: Pair<Self::Fifo>);

    /// A connection that came in through a listener entered the stack's table: packets between these ends are
    /// the stack's from now on.
    fn came(&mut self, _ends: &Ends) {}

    /// Nothing is left of a connection but its TIME-WAIT; again when that is over. Comes for those that were opened
    /// from here too.
    fn went(&mut self, _ends: &Ends) {}
}
