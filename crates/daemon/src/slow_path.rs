//! Packets that workers hand to the control thread, the packets that it sends, and its timers.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use forward::Cause;
use forward::neighbor::Action;
use forward::nodes;
use graph::{Handoff, Reason};
use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep;

use crate::daemon::{Daemon, Shared};

/// Packets taken from each worker's ring in one step: keeps a step below a millisecond.
const STEP: usize = 256;

/// Addresses that a bridge's worker has seen, taken in one step.
const LEARNED: usize = 4096;

/// Longest time between two looks: a bridge's workers do not ring when they have learned something.
const PERIOD: Duration = Duration::from_millis(50);
const PERIOD_WITHOUT_BRIDGES: Duration = Duration::from_secs(1);

/// Shortest Ethernet frame without its check sequence: bytes (IEEE 802.3 3.2.8).
const SHORTEST_FRAME: usize = 60;

/// The slow path, for ever.
///
/// Errors: the runtime cannot wait for the doorbell.
pub(crate) fn run(daemon: Shared) -> io::Result<impl Future<Output = ()>> {
    let doorbell = Arc::clone(&daemon.lock().doorbell);
    // The runtime waits for an eventfd as it does for a pipe.
    let event = Receiver::from_owned_fd_unchecked(doorbell.as_fd().try_clone_to_owned()?)?;
    let changed = daemon.changed();
    Ok(async move {
        loop {
            let turn = daemon.lock().turn();
            if turn.more {
                // Requests have their turn too.
                tokio::task::yield_now().await;
                continue;
            }
            doorbell.announce();
            if daemon.lock().has_punts() {
                doorbell.awake();
                continue;
            }
            tokio::select! {
                _ = event.readable() => {
                    // Until it is empty: only then the runtime waits again.
                    while event.try_read(&mut [0; 8]).is_ok_and(|count| count > 0) {}
                }
                () = sleep(turn.wait) => {}
                () = changed.notified() => {}
            }
            doorbell.awake();
        }
    })
}

/// What follows from a turn.
struct Turn {
    /// There is more to do at once.
    more: bool,
    /// Else: when to look again at the latest.
    wait: Duration,
}

impl Daemon {
    /// Takes in what the workers handed up, and does what is due.
    fn turn(&mut self) -> Turn {
        let now = self.now();
        let mut actions = std::mem::take(&mut self.actions);
        let mut more = false;
        for ring in &mut self.punts {
            for _ in 0..STEP {
                let Ok(packet) = ring.pop() else { break };
                match Cause::try_from(packet.entry) {
                    Ok(cause) => self.slow.input(cause, packet, now, &mut actions),
                    // A node that punts for a reason that nobody takes.
                    Err(_) => actions.push(Action::Drop { packet, reason: Reason::Forgotten }),
                }
            }
            more |= !ring.is_empty();
        }
        let due = self.slow.poll(now, &mut actions);
        self.learn();
        self.perform(actions);
        let longest = if self.config.bridges.is_empty() { PERIOD_WITHOUT_BRIDGES } else { PERIOD };
        let wait = due.map_or(longest, |due| Duration::from_nanos(due.saturating_sub(now)));
        Turn { more, wait: wait.min(longest) }
    }

    fn has_punts(&self) -> bool {
        self.punts.iter().any(|ring| !ring.is_empty())
    }

    /// Does what the slow path asks for.
    pub(crate) fn perform(&mut self, mut actions: Vec<Action<Handoff>>) {
        for action in actions.drain(..) {
            match action {
                Action::Send { interface, frame } => self.send(interface, &frame),
                Action::Release { mut packet } => {
                    let Some(node) = self.workers.entries().node(nodes::RELEASED) else { continue };
                    packet.entry = node.0;
                    self.inject(packet);
                }
                Action::Drop { packet, reason } => {
                    self.count_drop(reason);
                    drop(packet);
                }
                Action::Conflict { interface, address, mac } => {
                    self.report_conflict(interface, address, mac);
                }
            }
        }
        self.workers.notify();
        // The memory is kept for the next turn.
        self.actions = actions;
    }

    /// Sends a frame of our own out of an interface.
    fn send(&mut self, interface: u16, frame: &[u8]) {
        let Some(node) = self.workers.entries().node("interface-output") else { return };
        let length = frame.len().max(SHORTEST_FRAME);
        let buffer = self.pool.alloc().and_then(|mut buffer| {
            let room = buffer.append(length)?;
            let (head, padding) = room.split_at_mut_checked(frame.len())?;
            head.copy_from_slice(frame);
            padding.fill(0);
            Some(buffer)
        });
        let Some(buffer) = buffer else { return self.count_drop(Reason::NoBuffer) };
        let mut packet = Handoff::to_node(buffer, node);
        packet.interface = interface;
        packet.egress = interface;
        self.inject(packet);
    }

    fn inject(&mut self, packet: Handoff) {
        if self.workers.inject(packet).is_err() {
            self.count_drop(Reason::HandoffFull);
        }
    }

    fn report_conflict(&mut self, interface: u16, address: std::net::IpAddr, mac: wire::MacAddr) {
        // A station that claims our address does so with every packet.
        const SILENCE: u64 = 10_000_000_000;
        let now = self.now();
        if now < self.conflict_silence {
            return;
        }
        self.conflict_silence = now + SILENCE;
        let name = self.topology.interfaces.name(interface).unwrap_or("?");
        tracing::warn!("{mac} on interface {name} uses our address {address} too");
    }

    /// Enters what bridges have seen, and forgets what they have not seen for long.
    fn learn(&mut self) {
        let second = second();
        let interfaces = self.state.interfaces.load();
        for ring in &mut self.learned {
            for _ in 0..LEARNED {
                let Ok(news) = ring.pop() else { break };
                let bridge = interfaces.bridges.get(usize::from(news.key.bridge));
                let limit = bridge.map_or(0, |bridge| bridge.mac_limit);
                self.macs.learn(&news, limit, second);
            }
        }
        if second == self.aged {
            return;
        }
        self.aged = second;
        self.macs.forget(second, |entry| {
            let bridge = interfaces.bridges.get(usize::from(entry.key.bridge));
            bridge.is_none_or(|bridge| {
                entry.age > bridge.ageing || usize::from(entry.member) >= bridge.members.len()
            })
        });
    }
}

/// The second by which learned addresses age: of the time-stamp counter, as on the workers.
pub(crate) fn second() -> u32 {
    (dpdk::tsc() / dpdk::tsc_hz().max(1)) as u32
}
