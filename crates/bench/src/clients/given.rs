//! What the worker has of a client: a packet function for each request, or stacks.

use std::sync::Arc;
use std::time::Duration;

use ::forward::nodes;
use dpdk::BufferPool;
use graph::{ClientCounters, NodeId, PortId, StackCounters, StackId, WorkerHandle};

use super::conduct::Conduct;
use crate::client_ends::{self as ends, Ends, User};
use crate::failure::Failure;

/// How long the worker may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The first one's number among the worker's functions.
const FUNCTION: u64 = 1;

/// One of them, and what is counted for it.
pub(super) enum Given {
    Function(u64, Arc<ClientCounters>),
    Stack(StackId, Arc<StackCounters>),
}

impl Given {
    /// Makes what a client asks for with the request of this number, and gives it to the worker. The client gets the other ends.
    pub(super) fn give(
        worker: &WorkerHandle,
        (conduct, channels): (Conduct, u16),
        number: u16,
        (user, port, pool): (&mut User, u16, BufferPool),
    ) -> Result<(Self, Ends), Failure> {
        if conduct.has_stacks() {
            let entry = worker.nodes().iter().position(|name| *name == nodes::FROM_STACK);
            let id = StackId::new(number, u32::from(number) + 1);
            let (Some(entry), Some(id)) = (entry, id) else { return Err(Failure::NoStacks) };
            let made = ends::make_stack(NodeId(entry as u16), user, pool)?;
            let setup = made.setup;
            drop(worker.call(PATIENCE, move |state| state.add_stack(id, setup))?);
            return Ok((Self::Stack(id, made.counters), made.ends));
        }
        let ports = [PortId::new(port); 2];
        let made = ends::make(conduct.request(number), channels, user, (ports, pool))?;
        let (queues, number) = (Box::new(made.queues), FUNCTION + u64::from(number));
        worker.call(PATIENCE, move |state| state.add_function(number, queues))?;
        Ok((Self::Function(number, made.counters), made.ends))
    }

    /// What is counted for it.
    pub(super) fn counters(&self) -> &ClientCounters {
        match self {
            Self::Function(_, counters) => counters,
            Self::Stack(_, counters) => &counters.queues,
        }
    }

    /// Takes it from the worker. It is dropped here.
    pub(super) fn take_back(&self, worker: &WorkerHandle) -> Result<(), Failure> {
        match *self {
            Self::Function(number, _) => {
                drop(worker.call(PATIENCE, move |state| state.remove_function(number))?);
            }
            Self::Stack(id, _) => {
                drop(worker.call(PATIENCE, move |state| state.remove_stack(id))?);
            }
        }
        Ok(())
    }
}
