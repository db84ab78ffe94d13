//! Memory for the data of connections that are kept: no more than their peers were promised.

use transport::{Buffers, ByteFifo, ConnectionId, Ends, Grant, Opening, Pair, Ring};

/// A FIFO larger than this is not given: bytes.
const LARGEST: usize = 64 << 20;

/// A ring that takes in no more than so many bytes at once, however large it is: nobody reads it here.
#[derive(Debug)]
pub(super) struct Fifo {
    ring: Ring,
    most: usize,
}

impl ByteFifo for Fifo {
    fn len(&self) -> usize {
        self.ring.len()
    }

    fn room(&self) -> usize {
        self.ring.room().min(self.most.saturating_sub(self.ring.len()))
    }

    /// As its process had it, and will have it again.
    fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let room = self.room().saturating_sub(offset).min(bytes.len());
        self.ring.write_at(offset, bytes.get(..room).unwrap_or_default())
    }

    fn peek_beyond(&self, offset: usize, target: &mut [u8]) -> usize {
        self.ring.peek_beyond(offset, target)
    }

    fn commit(&mut self, count: usize) {
        self.ring.commit(count.min(self.room()));
    }

    fn peek(&self, offset: usize, target: &mut [u8]) -> usize {
        self.ring.peek(offset, target)
    }

    fn consume(&mut self, count: usize) {
        self.ring.consume(count);
    }

    /// It stays as it is.
    fn resize(&mut self, _: usize) -> usize {
        self.ring.capacity()
    }
}

/// Gives connections their FIFOs, and hears which ones come to their end.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Bytes that the next connection's FIFOs may hold: receive, transmit.
    pub(super) next: (usize, usize),
    /// Ends of connections of which nothing is left but their TIME-WAIT.
    pub(super) gone: Vec<Ends>,
}

impl Buffers for Store {
    type Fifo = Fifo;

    fn open(&mut self, opening: &Opening) -> Grant<Fifo> {
        if opening.receive.max(opening.transmit) > LARGEST {
            return Grant::Refused;
        }
        let (receive, transmit) = self.next;
        Grant::Given(Pair {
            receive: Fifo { ring: Ring::new(opening.receive), most: receive },
            transmit: Fifo { ring: Ring::new(opening.transmit), most: transmit },
        })
    }

    fn close(&mut self, _: ConnectionId, _: Pair<Fifo>) {}

    fn went(&mut self, ends: &Ends) {
        self.gone.push(*ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_comes_in_than_was_promised() {
        let mut fifo = Fifo { ring: Ring::new(1000), most: 10 };
        assert_eq!((fifo.room(), fifo.capacity(), fifo.resize(5000)), (10, 1000, 1000));
        assert_eq!(fifo.write_at(8, b"beyond"), 2);
        assert_eq!(fifo.write_at(20, b"far"), 0);
        assert_eq!(fifo.append(b"eight by"), 8);
        fifo.commit(100);
        assert_eq!((fifo.len(), fifo.room(), fifo.append(b"more")), (10, 0, 0));
        let mut all = [0; 20];
        assert_eq!(fifo.peek(0, &mut all), 10);
        assert_eq!(&all[..10], b"eight bybe");
        fifo.consume(4);
        assert_eq!(fifo.room(), 4);
    }
}
