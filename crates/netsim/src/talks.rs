//! The conversations of a host.

use std::net::SocketAddr;

use transport::{ConnectionId, Event, ListenerId, Options};

use crate::buffers::HostStack;
use crate::network::Application;
use crate::talk::Talk;

/// The conversations of a host.
#[derive(Debug, Default)]
pub struct Talks {
    talks: Vec<Talk>,
    /// Where to listen, with which options; then the listener.
    listening: Vec<(SocketAddr, Options, Option<ListenerId>)>,
}

impl Talks {
    /// Adds one end.
    pub fn add(&mut self, talk: Talk) {
        self.talks.push(talk);
    }

    /// Listens from the beginning.
    pub fn listen(&mut self, address: SocketAddr, options: Options) {
        self.listening.push((address, options, None));
    }

    /// Listens where this one does, and has no conversation yet.
    #[must_use]
    pub fn twin(&self) -> Self {
        let listening = self.listening.iter();
        let listening = listening.map(|(address, options, _)| (*address, options.clone(), None));
        Self { talks: Vec::new(), listening: listening.collect() }
    }

    /// All ends.
    #[must_use]
    pub fn all(&self) -> &[Talk] {
        &self.talks
    }

    fn take(&mut self, stack: &mut HostStack, listener: ListenerId) {
        while let Some(id) = stack.accept(listener) {
            let remote = stack.info(id).map(|info| info.ends.remote);
            let taken = remote
                .is_some_and(|remote| self.talks.iter_mut().any(|talk| talk.take(remote, id)));
            if !taken {
                // Not expected, or a second time.
                stack.abort(id);
            }
        }
    }
}

impl Application for Talks {
    fn restarted(&mut self, stack: &mut HostStack) {
        for (address, options, listener) in &mut self.listening {
            *listener = stack.listen(*address, 64, options).ok();
        }
        self.talks.iter_mut().for_each(Talk::leave);
    }

    fn moved(&mut self, old: ConnectionId, new: ConnectionId) {
        self.talks.iter_mut().any(|talk| talk.arrive(old, new));
    }

    fn hand_over(&mut self, connection: ConnectionId, remote: SocketAddr, other: &mut Self) {
        let place = self.talks.iter().position(|talk| talk.is_of(connection, remote));
        if let Some(mut talk) = place.map(|place| self.talks.remove(place)) {
            talk.leave();
            other.talks.push(talk);
        }
    }

    fn run(&mut self, now: u64, stack: &mut HostStack, _: &[Event]) -> u64 {
        for (address, options, listener) in &mut self.listening {
            if listener.is_none() {
                *listener = stack.listen(*address, 64, options).ok();
            }
        }
        let listeners: Vec<ListenerId> =
            self.listening.iter().filter_map(|entry| entry.2).collect();
        for listener in listeners {
            self.take(stack, listener);
        }
        self.talks.iter_mut().map(|talk| talk.run(now, stack)).min().unwrap_or(u64::MAX)
    }
}
