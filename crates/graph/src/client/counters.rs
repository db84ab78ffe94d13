//! What is counted for a client, on one worker.

use crate::Counter;

/// Counters of a client on one worker.
#[derive(Debug, Default)]
pub struct ClientCounters {
    /// Packets that it was given, and their bytes.
    pub delivered: Counter,
    /// Bytes of them.
    pub delivered_bytes: Counter,
    /// Packets that found its ring full: it reads too slowly, or not at all.
    pub full: Counter,
    /// Packets of its ports of which it might have wanted copies, and that were not looked at: the worker was busy, and copies
    /// had had their part of its time.
    pub skipped: Counter,
    /// Packets that it sent.
    pub sent: Counter,
    /// Bytes of them.
    pub sent_bytes: Counter,
    /// Packets that it must not send: no such port, too short, or longer than the port takes.
    pub refused: Counter,
    /// Packets of it that found no buffer, or fit none.
    pub no_buffer: Counter,
    /// Marks in its rings that made no sense.
    pub malformed: Counter,
}
