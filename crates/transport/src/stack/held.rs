//! Addresses and ports whose connection is away: what comes for them is dropped without a word. SYNs for a listener wait a
//! moment, while everything is held quiet.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::packet::Sink;
use crate::segment::Segment;
use crate::stack::Stack;

/// SYNs that wait at most.
const MOST_SYNS: usize = 64;
/// Ports of which resets are spared at most, at a time.
const MOST_PORTS: usize = 256;
/// How long a SYN waits: ns. Its client repeats it then (RFC 6298 2.1).
const PATIENCE: u64 = 1_000_000_000;

/// A SYN for a listener, without what only some connections ask about.
#[derive(Debug)]
struct Waiting {
    ends: Ends,
    syn: Segment<'static>,
    until: u64,
}

/// Those that are held quiet.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Until then: ns.
    ends: BTreeMap<(SocketAddr, SocketAddr), u64>,
    /// Everything that is for no connection, until then: ns.
    all_until: u64,
    /// Own ports of which nothing is answered by a reset, until then: ns.
    ports: BTreeMap<u16, u64>,
    /// The longest wait first.
    syns: VecDeque<Waiting>,
}

impl Held {
    /// Whether a segment for no connection gets no answer.
    pub(crate) fn is_quiet(&self, ends: &Ends, now: u64) -> bool {
        self.all_until > now || self.has(ends, now)
    }

    /// Whether what comes to an own port is not answered by a reset.
    pub(crate) fn spares_resets(&self, port: u16, now: u64) -> bool {
        self.ports.get(&port).is_some_and(|until| *until > now)
    }

    /// Keeps a SYN for a listener until no longer everything is quiet.
    pub(crate) fn keep_syn(&mut self, ends: &Ends, syn: &Segment<'_>, now: u64) {
        if self.has(ends, now) || self.syns.iter().any(|waiting| waiting.ends == *ends) {
            return;
        }
        if self.syns.len() >= MOST_SYNS {
            self.syns.pop_front();
        }
        let syn = Segment { options: &[], data: &[], ..*syn };
        self.syns.push_back(Waiting { ends: *ends, syn, until: now + PATIENCE });
    }

    /// Whether SYNs have waited long enough.
    #[inline]
    pub(crate) fn has_syns(&self, now: u64) -> bool {
        !self.syns.is_empty() && self.all_until <= now
    }

    /// Whether a connection between these ends is away.
    pub(crate) fn has(&self, ends: &Ends, now: u64) -> bool {
        self.ends.get(&(ends.local, ends.remote)).is_some_and(|until| *until > now)
    }

    pub(crate) fn release(&mut self, ends: &Ends) {
        self.ends.remove(&(ends.local, ends.remote));
    }

    fn hold(&mut self, ends: &Ends, now: u64, until: u64) {
        // Those that were never released go now and then.
        if self.ends.len().is_power_of_two() {
            self.ends.retain(|_, until| *until > now);
        }
        self.ends.insert((ends.local, ends.remote), until);
    }
}

impl<B: Buffers> Stack<B> {
    /// Holds addresses and ports quiet until then (ns) while their connection is away: what comes for them is
    /// dropped and counted (`moving`), without a reset, and they are not used for another. Ends with
    /// [`end_hold`](Self::end_hold), or when the connection is imported here.
    pub fn hold(&mut self, ends: &Ends, until: u64) {
        self.held.hold(ends, self.now, until);
    }

    /// The connection is gone for good, or packets for it no longer come here.
    pub fn end_hold(&mut self, ends: &Ends) {
        self.held.release(ends);
    }

    /// Until then (ns) nothing that is for no connection is answered by a reset, nor opens one: for a stack that
    /// is about to import what packets already come for, and cannot tell which. SYNs for its listeners wait for the end of
    /// that, up to a second.
    pub fn keep_quiet(&mut self, until: u64) {
        self.held.all_until = until;
    }

    /// Until then (ns) nothing that comes to an own port is answered by a reset: for a stack that has closed a listener there,
    /// for which segments may still come that are to be repeated elsewhere.
    pub fn spare_resets(&mut self, port: u16, until: u64) {
        let now = self.now;
        let ports = &mut self.held.ports;
        if ports.len() >= MOST_PORTS {
            ports.retain(|_, until| *until > now);
        }
        if ports.len() < MOST_PORTS || ports.contains_key(&port) {
            ports.insert(port, until);
        }
    }

    /// Takes the SYNs that have waited as if they came now.
    #[cold]
    pub(super) fn take_waiting<S: Sink + ?Sized>(&mut self, sink: &mut S) {
        for Waiting { ends, syn, until } in std::mem::take(&mut self.held.syns) {
            if until <= self.now || self.find(&ends).is_some() {
                continue;
            }
            if let Err(reason) = self.take_unmatched(&ends, &syn, None, sink) {
                self.shared.counters.drop(reason);
            }
        }
    }
}
