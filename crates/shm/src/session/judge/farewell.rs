//! When the daemon ends, its judge tells everybody whose connection it holds, even while it waits for a descriptor: until it goes on,
//! it closes no connection, and whoever is at the other end would take a daemon that is gone for a slow one.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{Shutdown, shutdown};

use super::Order;
use crate::attach::{Channel, ChannelError};

/// Whom to tell. A thread of its own does, once it [watches](Self::watch).
#[derive(Debug, Clone, Default)]
pub(super) struct Farewell(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// By number. Somebody else has each of them, too: nothing is closed here.
    connections: HashMap<u64, Arc<OwnedFd>>,
    /// The daemon has ended.
    is_over: bool,
}

impl Farewell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection is held.
    pub(super) fn add(&self, number: u64, connection: &Arc<OwnedFd>) {
        let mut state = self.state();
        if state.is_over {
            end(connection);
        }
        state.connections.insert(number, Arc::clone(connection));
    }

    /// It is about to be closed.
    pub(super) fn remove(&self, number: u64) {
        self.state().connections.remove(&number);
    }

    /// Begins to watch the channel by which the daemon sends orders. Without a thread, all hear of its end when the judge ends.
    pub(super) fn watch(&self, orders: OwnedFd) {
        let (all, orders) = (self.clone(), Channel::of(orders));
        let _ = Builder::new().name("farewell".into()).spawn(move || all.wait(&orders));
    }

    fn wait(&self, orders: &Channel) {
        while !has_ended(orders) {}
        let mut state = self.state();
        state.is_over = true;
        state.connections.values().for_each(|connection| end(connection));
        drop(state);
        // The judge has not heard of these yet.
        let mut unheard = Vec::new();
        loop {
            match orders.receive_now::<Order>() {
                Ok(Some(order)) => {
                    order.files.iter().for_each(end);
                    unheard.extend(order.files);
                }
                // Where the daemon has not read an answer, its end (ECONNRESET) is heard before what it has said last. That is
                // no connection then: it has none held before it has read the answer, nor does the judge answer before it has
                // heard of those that came before.
                Ok(None) | Err(ChannelError::Closed | ChannelError::System(_)) => break,
                Err(_) => {}
            }
        }
    }
}

/// Waits until whoever sends orders has ended. `false`: something has interrupted that.
fn has_ended(orders: &Channel) -> bool {
    let mut polled = [PollFd::new(orders, PollFlags::empty())];
    let _ = poll(&mut polled, None);
    let [polled] = polled;
    polled.revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Tells the other side that it is over.
fn end(connection: &OwnedFd) {
    let _ = shutdown(connection, Shutdown::Both);
}
