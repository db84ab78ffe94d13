//! The thread that runs the daemon's own stack.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use client::session::{Link, Queues};
use graph::Doorbell;
use host::Journal;
use tables::OutOfMemory;
use transport::{Config, ConnectionId, Contents, Ends, ImportError, Stack};

use super::fifo::Store;
use super::{Arrival, Departure, Ended, EndedFlow, Endings, Job, Purpose, flow_of};
use crate::clock;
use crate::service::Pulse;

/// Connections of each version of IP.
const CONNECTIONS: usize = 1 << 16;
/// For how long flows stay here after their connection has ended, so that its last acknowledgment leaves, and is repeated
/// when it was lost: ns. The next connection between the same ends does not wait for that.
const LINGER: u64 = 1_000_000_000;
/// The longest sleep. Nothing depends on it.
const LONGEST: Duration = Duration::from_secs(60);
/// For how long packets wait for a connection that is on its way here.
const EXPECTATION: Duration = Duration::from_millis(5);
/// And how often at most, one after the other: whoever sends connections without end keeps nobody else's waiting.
const EXPECTATIONS: u32 = 8;

/// The thread's state.
pub(super) struct Keeper {
    stack: Stack<Store>,
    queues: Queues,
    /// The stack ends with it.
    link: Link,
    jobs: Receiver<Job>,
    bell: Arc<Doorbell>,
    expected: Arc<AtomicUsize>,
    waited: u32,
    ended: Ended,
    /// Connections that have ended since that was told last.
    over: Vec<Ends>,
    /// Connections that have ended, and when their flows are free: ns.
    leaving: VecDeque<(u64, Ends)>,
    /// Shows the connections.
    journal: Option<Journal>,
}

impl Keeper {
    pub(super) fn new(
        link: Link,
        mut queues: Queues,
        (jobs, bell, expected): (Receiver<Job>, Arc<Doorbell>, Arc<AtomicUsize>),
        ended: Ended,
    ) -> Result<Self, OutOfMemory> {
        let config = Config {
            connections_v4: CONNECTIONS,
            connections_v6: CONNECTIONS,
            orphans: 2 * CONNECTIONS,
            seed: queues.seed,
            custody: true,
            ..Config::default()
        };
        let mut stack = Stack::new(config, Store::default())?;
        // What comes for a connection that is not here is early or late: its peer sends it again.
        stack.keep_quiet(u64::MAX);
        let shown = queues.take_connections();
        let journal = shown.map(|table| Journal::new(table, clock::now(), &stack));
        let (waited, over, leaving) = (0, Vec::new(), VecDeque::new());
        Ok(Self {
            stack,
            queues,
            link,
            jobs,
            bell,
            expected,
            waited,
            ended,
            over,
            leaving,
            journal,
        })
    }

    /// Until the daemon ends, or takes the stack away.
    pub(super) fn run(mut self, pulse: &Pulse) {
        loop {
            pulse.works();
            let now = clock::now();
            self.round(now);
            self.tell_ended(now);
            // Nobody can tell it anything any more, or its stack was taken away.
            let Ok(slept) = self.sleep(now, pulse) else { return };
            if slept && self.link.is_gone() {
                tracing::info!("millraced's own stack has ended");
                return;
            }
        }
    }

    /// Does what it was told. Gives whether there was something; an error when nobody can tell it anything any more.
    fn work(&mut self) -> Result<bool, ()> {
        let mut worked = false;
        loop {
            let job = match self.jobs.try_recv() {
                Ok(job) => job,
                Err(TryRecvError::Empty) => return Ok(worked),
                Err(TryRecvError::Disconnected) => return Err(()),
            };
            worked = true;
            match job {
                // Who has asked may be gone; then so is the connection.
                Job::Import(arrival, reply) => {
                    let imported = self.import(arrival);
                    if let Err(Ok(id)) = reply.send(imported) {
                        self.stack.abort(id);
                    }
                }
                Job::Export(id, reply) => {
                    // What has come for it so far belongs to it.
                    self.receive(clock::now());
                    let _ = reply.send(self.export(id));
                }
                Job::Close(id) => self.stack.close(id),
                Job::Abort(id) => self.stack.abort(id),
                Job::WaitOut(waits) => {
                    let now = clock::now();
                    for one in &waits {
                        self.stack.import_time_wait(now, one);
                    }
                }
                Job::ForgetWaits(all) => {
                    all.iter().for_each(|ends| self.stack.end_time_wait(ends));
                }
                Job::Show => {
                    if let Some(journal) = &mut self.journal {
                        journal.show(clock::now(), &self.stack);
                    }
                }
            }
        }
    }

    fn import(&mut self, arrival: Arrival) -> Result<ConnectionId, ImportError> {
        let Arrival { bytes, at, room, ends, purpose } = arrival;
        let now = clock::now();
        // What is left of an earlier connection makes way.
        if let Some(ends) = ends {
            self.stack.end_time_wait(&ends);
        }
        self.stack.buffers_mut().next = room;
        let id = self.stack.import(now, now.saturating_sub(at), &bytes, &mut None)?;
        if let Some(ends) = transport::Transport::ends(&self.stack, id) {
            self.leaving.retain(|(_, gone)| *gone != ends);
            self.stack.buffers_mut().gone.retain(|gone| *gone != ends);
        }
        if purpose == Purpose::Finish {
            self.stack.close(id);
        }
        Ok(id)
    }

    fn export(&mut self, id: ConnectionId) -> Result<Departure, transport::ExportError> {
        let now = clock::now();
        self.note_ended(now);
        let exported = self.stack.export(now, id, Contents::Copied);
        // It goes on elsewhere.
        self.stack.buffers_mut().gone.clear();
        exported.map(|exported| Departure { bytes: exported.bytes, at: now })
    }

    fn receive(&mut self, now: u64) {
        let Self { stack, queues, .. } = self;
        let Queues { inbound, outbound, .. } = queues;
        inbound.receive(|packets| stack.input(now, packets, outbound));
    }

    /// Packets in, timers, packets out.
    fn round(&mut self, now: u64) {
        if !self.waits() {
            self.receive(now);
        }
        let sink = &mut self.queues.outbound;
        self.stack.expire(now, sink);
        self.stack.flush(now, sink);
        sink.ring();
        while self.stack.poll_event().is_some() {}
        self.note_ended(now);
        if let Some(journal) = &mut self.journal {
            journal.look(now, &self.stack);
        }
    }

    /// Whether packets that have come may be for a connection that is on its way.
    fn waits(&self) -> bool {
        self.expected.load(Ordering::Acquire) > 0 && self.waited < EXPECTATIONS
    }

    fn note_ended(&mut self, now: u64) {
        let gone = std::mem::take(&mut self.stack.buffers_mut().gone);
        self.leaving.extend(gone.iter().map(|ends| (now + LINGER, *ends)));
        self.over.extend(gone);
    }

    /// Tells which connections are over, and which flows are free by now.
    fn tell_ended(&mut self, now: u64) {
        let over: Vec<_> = self.over.drain(..).map(|ends| flow_of(&ends)).collect();
        let mut free = Vec::new();
        while let Some((_, ends)) = self.leaving.front().filter(|(at, _)| *at <= now) {
            let left = self.stack.time_wait_left(ends).map(Duration::from_nanos);
            free.push(EndedFlow { flow: flow_of(ends), left });
            self.leaving.pop_front();
        }
        if !over.is_empty() || !free.is_empty() {
            (self.ended)(Endings { over, free });
        }
    }

    /// Sleeps until there is something to do. `false`: there was something already. An error when nobody can tell it anything
    /// any more.
    fn sleep(&mut self, now: u64, pulse: &Pulse) -> Result<bool, ()> {
        let waits = self.waits();
        self.waited = if waits { self.waited + 1 } else { 0 };
        self.bell.announce();
        if self.work()? {
            self.bell.awake();
            return Ok(false);
        }
        let idle = waits || self.queues.arm(self.stack.is_flush_due());
        if idle {
            let due = self.stack.next_deadline().into_iter();
            let due = due.chain(self.leaving.front().map(|(at, _)| *at)).min();
            let due = due.map_or(LONGEST, |due| Duration::from_nanos(due.saturating_sub(now)));
            let longest = if waits { EXPECTATION } else { LONGEST };
            let doors = [self.queues.as_fd(), self.link.as_fd()];
            let doors = if waits { &doors[1..] } else { &doors[..] };
            pulse.rests();
            self.bell.wait(doors, due.min(longest));
            pulse.works();
        }
        self.bell.awake();
        self.queues.withdraw();
        self.queues.clear();
        Ok(idle)
    }
}
