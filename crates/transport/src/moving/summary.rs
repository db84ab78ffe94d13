//! What an exported connection is, before anybody imports it.

use super::import::read;
use crate::carried::ImportError;
use crate::carried::Reader;
use crate::ends::Ends;
use crate::fifo::Ring;
use crate::sequence::Seq;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

/// What the bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Its addresses and ports.
    pub ends: Ends,
    /// Its state.
    pub state: State,
    /// It came in, and its handshake is not complete.
    pub is_half_open: bool,
    /// It was not accepted yet.
    pub is_waiting: bool,
    /// Bytes that the peer was allowed to have on the way, with those that were not read yet.
    pub receive: usize,
    /// Bytes to be sent or acknowledged.
    pub transmit: usize,
    /// SND.UNA, SND.NXT and RCV.NXT.
    pub sequences: (Seq, Seq, Seq),
}

impl Summary {
    /// Reads what [`export`](crate::Stack::export) gave, with the data copied.
    ///
    /// # Errors
    /// [`ImportError`]: what [`import`](crate::Stack::import) would say, as far as no stack is needed to know it. The bytes
    /// may come from anybody.
    pub fn of(bytes: &[u8]) -> Result<Self, ImportError> {
        let arrival = read::<Ring>(&mut Reader::new(bytes, 0, 0))?;
        if arrival.in_place {
            return Err(ImportError::Fifos);
        }
        let data = arrival.data.as_ref();
        let queued = data.map(|data| data.queued.len() as u32);
        arrival.connection.check(queued)?;
        let (hot, cold) = (&arrival.connection.hot, &arrival.connection.cold);
        let window = hot.rcv_adv.since(hot.rcv_nxt) as usize;
        Ok(Self {
            ends: cold.ends(),
            state: hot.state,
            is_half_open: hot.state == State::SynReceived && hot.has(flag::PASSIVE),
            is_waiting: hot.has(flag::QUEUED),
            receive: data.map_or(0, |data| data.readable()) + window,
            transmit: queued.unwrap_or(0) as usize,
            sequences: (hot.snd_una, hot.snd_nxt, hot.rcv_nxt),
        })
    }
}
