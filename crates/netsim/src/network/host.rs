//! A host: its stack, and what runs on it.

use std::net::SocketAddr;

use transport::{Config, ConnectionId, Event, Stack};

use super::Side;
use crate::buffers::{CountedRings, HostStack};
use crate::departed::Departed;
use crate::segment::Port;

/// What runs on a host.
pub trait Application {
    /// Something may have happened: packets, a timer, or the time that was asked for. Gives when to be
    /// asked again at the latest: ns; `u64::MAX`: only when something happens.
    fn run(&mut self, now: u64, stack: &mut HostStack, events: &[Event]) -> u64;

    /// The host has another stack from now on, without sockets; connections follow by [`moved`](Self::moved).
    fn restarted(&mut self, _stack: &mut HostStack) {}

    /// A connection came from the old stack into the new one.
    fn moved(&mut self, _old: ConnectionId, _new: ConnectionId) {}

    /// A connection with `remote` leaves for the host's other stack, where [`moved`](Self::moved) tells of its arrival:
    /// what belongs to it goes there now.
    fn hand_over(&mut self, _connection: ConnectionId, _remote: SocketAddr, _other: &mut Self)
    where
        Self: Sized,
    {
    }
}

pub(super) struct Host<A> {
    pub(super) stack: HostStack,
    pub(super) buffers: CountedRings,
    pub(super) application: A,
    pub(super) side: Side,
    /// Its own way to the path, added in both directions: ns.
    pub(super) delay: u64,
    pub(super) port: Port,
    pub(super) wakes_at: u64,
    pub(super) config: Config,
    /// What its stack's clock is ahead of simulated time: ns.
    pub(super) ahead: u64,
    /// Its connections while they are on the way from one stack to the next.
    pub(super) away: Option<Departed>,
    /// Connections on the way from its twin.
    pub(super) arriving: Vec<Departed>,
}

impl<A: Application> Host<A> {
    /// When it has something to do by itself: ns of simulated time.
    pub(super) fn deadline(&self) -> Option<u64> {
        match &self.away {
            Some(departed) => Some(departed.back_at()),
            None => {
                let timer = self.stack.next_deadline().map(|at| at.saturating_sub(self.ahead));
                let arrivals = self.arriving.iter().map(Departed::back_at);
                arrivals.chain(timer).min()
            }
        }
    }

    /// Takes in what has arrived from its twin.
    pub(super) fn take_in(&mut self, now: u64) {
        let arriving = std::mem::take(&mut self.arriving).into_iter();
        let (due, rest): (Vec<_>, Vec<_>) =
            arriving.partition(|departed| departed.back_at() <= now);
        self.arriving = rest;
        for departed in due {
            if departed.left_at() < now {
                self.wakes_at = now;
            }
            let failed = departed.arrive(&mut self.stack, now, |old, new| {
                self.application.moved(old, new);
            });
            self.arriving.extend(failed);
        }
    }

    /// Whether it can do anything: its connections may be on the way, and arrive now.
    pub(super) fn is_back(&mut self, now: u64) -> bool {
        let Some(departed) = self.away.take_if(|departed| departed.back_at() <= now) else {
            return self.away.is_none();
        };
        let Ok(stack) = Stack::new(self.config.clone(), self.buffers.clone()) else { return false };
        self.stack = stack;
        self.ahead = departed.ahead();
        let departed_at = departed.left_at();
        self.application.restarted(&mut self.stack);
        self.away = departed.arrive(&mut self.stack, now, |old, new| {
            self.application.moved(old, new);
        });
        if departed_at < now {
            self.wakes_at = now;
        }
        self.away.is_none()
    }
}
