//! A port's queues, given to workers and taken back while packets flow. Nothing here holds the daemon.

use std::sync::Arc;

use control::config;
use dpdk::{Buffer, TxQueue};
use graph::{
    HandoffReceiver, HandoffSender, Inbound, PortId, RxAssignment, Spread, TransmitPath,
    WorkerError, WorkerState, ring,
};

use super::{Crew, Member, RING};

/// One transmit queue per worker; a worker beyond the device's queues goes through the owner of one.
///
/// Errors: a worker does not answer; the others have their queues.
pub(crate) async fn attach_transmit(
    crew: &Crew,
    port: PortId,
    queues: Vec<TxQueue>,
) -> Result<(), WorkerError> {
    let owners = queues.len().min(crew.len()).max(1);
    let mut answers = Vec::new();
    for (member, queue) in crew.iter().zip(queues) {
        let path = Some(TransmitPath::Queue(queue));
        answers.push(member.ask(move |state| state.set_path(port, path)));
    }
    for (index, member) in crew.iter().enumerate().skip(owners) {
        let Some(owner) = crew.get(index % owners) else { continue };
        let sender = ring_to(owner, move |ring| Inbound::Transmit(port, ring)).await?;
        let path = Some(TransmitPath::Worker(sender));
        answers.push(member.ask(move |state| state.set_path(port, path)));
    }
    for answer in answers {
        drop(answer.get().await?);
    }
    Ok(())
}

/// Gives receive queues to the workers that the configuration says.
///
/// Errors: a worker does not answer; queues that come after its own are closed.
pub(crate) async fn attach_receive(
    crew: &Crew,
    config: &config::Port,
    queues: Vec<RxAssignment>,
) -> Result<(), WorkerError> {
    for mut assignment in queues {
        let queue = assignment.queue.index();
        let core = config.queues.iter().find(|place| place.queue == queue);
        let poller = core.and_then(|place| crew.position(place.core)).unwrap_or(0);
        assignment.spread = spread(crew, config, poller).await?;
        let Some(member) = crew.get(poller) else { continue };
        member.ask(move |state| state.add_receive(assignment)).get().await?;
    }
    Ok(())
}

/// Rings from the polling worker to those that share its port by software RSS.
async fn spread(
    crew: &Crew,
    config: &config::Port,
    poller: usize,
) -> Result<Option<Spread>, WorkerError> {
    let sharing: Vec<usize> =
        config.software_rss.iter().filter_map(|core| crew.position(*core)).collect();
    if sharing.is_empty() || sharing == [poller] {
        return Ok(None);
    }
    let mut senders = Vec::new();
    for at in sharing {
        let Some(other) = crew.get(at).filter(|_| at != poller) else {
            senders.push(None);
            continue;
        };
        senders.push(Some(ring_to(other, Inbound::Received).await?));
    }
    Ok(Some(Spread::new(senders)))
}

/// A ring to a worker, made by it: a worker's memory is of its own NUMA node.
async fn ring_to(
    worker: &Member,
    inbound: impl FnOnce(HandoffReceiver<Buffer>) -> Inbound + Send + 'static,
) -> Result<HandoffSender<Buffer>, WorkerError> {
    let doorbell = Arc::clone(worker.remote.doorbell());
    let make = move |state: &mut WorkerState| {
        let (sender, receiver) = ring(RING, doorbell);
        state.add_inbound(inbound(receiver));
        sender
    };
    worker.ask(make).get().await
}

/// Takes a port's receive queues from the workers, in order.
pub(crate) async fn detach_receive(crew: &Crew, port: PortId) -> Vec<RxAssignment> {
    let taken = crew.ask_all(move |state| take_receive(state, port)).all().await;
    let mut all: Vec<RxAssignment> = taken.into_iter().flatten().collect();
    all.sort_by_key(|assignment| assignment.queue.index());
    all
}

/// Takes all of a port's queues from the workers. Who drops the last of them closes the device, which takes its
/// time.
pub(crate) async fn detach(crew: &Crew, port: PortId) -> (Vec<RxAssignment>, Vec<TransmitPath>) {
    let receive = detach_receive(crew, port).await;
    let transmit = crew.ask_all(move |state| state.set_path(port, None)).all().await;
    (receive, transmit.into_iter().flatten().collect())
}

fn take_receive(state: &mut WorkerState, port: PortId) -> Vec<RxAssignment> {
    let queues = state.receive_mut().iter().filter(|rx| rx.port == port);
    let queues: Vec<u16> = queues.map(|rx| rx.queue.index()).collect();
    queues.into_iter().filter_map(|queue| state.remove_receive(port, queue)).collect()
}
