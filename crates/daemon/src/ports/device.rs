//! An open device, and the thread that calls its driver for as long as that takes. Nobody else calls it: what is to be done is
//! left with the thread, and what it has seen last is there at once. A driver that never closes its device keeps the thread, and the
//! device its number: there are never more such threads than DPDK has numbers (`RTE_MAX_ETHPORTS`).

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use dpdk::{Health, Port, PortStats};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

/// Between two looks at a link: routes have left it within 100 ms of its going down.
const PERIOD: Duration = Duration::from_millis(50);
/// Looks for each at counters and speed, for which some drivers ask the device: once a second.
const LOOKS: u32 = 20;
/// How long a driver may take to change a device, or to close it.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why something was not done with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("a driver has not answered within {0} s; the kernel's log (dmesg) may say why")]
    Late(u64),
    #[error("the thread that calls the driver has ended; see the log")]
    Ended,
}

/// What a device is asked again and again.
pub(crate) trait Driven: Send + 'static {
    /// Whether it can carry packets.
    fn look(&self) -> Health;
    /// Speed of its link, where known: Mbit/s.
    fn speed(&self) -> Option<u32>;
    /// What it has counted, where it counts.
    fn counted(&self) -> Option<PortStats>;
    /// Closes it.
    fn shut(self);
}

impl Driven for Port {
    fn look(&self) -> Health {
        self.health()
    }

    fn speed(&self) -> Option<u32> {
        self.link().ok().and_then(|link| link.speed)
    }

    fn counted(&self) -> Option<PortStats> {
        self.stats().ok()
    }

    fn shut(self) {
        if let Err(error) = self.close() {
            tracing::error!("{error}");
        }
    }
}

/// What was seen of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether it can carry packets.
    pub(crate) health: Health,
    /// Speed of its link, where known: Mbit/s. As the counters at most a second old.
    pub(crate) speed: Option<u32>,
    /// What it has counted.
    pub(crate) stats: PortStats,
}

/// An open device. Dropping it closes the device, and waits for that.
#[derive(Debug)]
pub(crate) struct OpenDevice<D = Port> {
    port: String,
    jobs: DeviceJobs<D>,
    /// Ends when the device is closed.
    open: Receiver<Infallible>,
    /// When that is late, once it has begun.
    deadline: Option<Instant>,
    view: Arc<View>,
}

impl<D: Driven> OpenDevice<D> {
    /// Starts its thread. `port`: for messages. `changed` is notified when its link changes.
    ///
    /// Errors: the system has no thread for it; the device is dropped.
    pub(super) fn start(port: &str, device: D, changed: Arc<Notify>) -> io::Result<Self> {
        let (jobs, inbox) = channel();
        let (closed, open) = channel::<Infallible>();
        let view = Arc::new(View::of(&device));
        let shown = Arc::clone(&view);
        let body = move || {
            attend(device, inbox, &shown, &changed);
            drop(closed);
        };
        thread::Builder::new().name("millrace-port".to_owned()).spawn(body)?;
        let (port, jobs) = (port.to_owned(), DeviceJobs(jobs));
        Ok(Self { port, jobs, open, deadline: None, view })
    }
}

impl<D> OpenDevice<D> {
    /// What was seen last.
    pub(crate) fn seen(&self) -> Seen {
        **self.view.seen.load()
    }

    /// How often was looked: no more while the driver holds the thread up.
    pub(crate) fn looks(&self) -> u64 {
        self.view.looks.load(Ordering::Relaxed)
    }

    /// For what is to be done with the device.
    pub(crate) fn jobs(&self) -> DeviceJobs<D> {
        self.jobs.clone()
    }

    /// Has it closed after what was left before. Dropping it waits for that, as long from now on as a driver may take: those whose
    /// closing has begun at the same time are waited for together.
    pub(super) fn begin_closing(&mut self) {
        self.begin_closing_within(DEADLINE);
    }

    fn begin_closing_within(&mut self, deadline: Duration) {
        self.deadline.get_or_insert_with(|| Instant::now() + deadline);
        // The thread has ended otherwise.
        let _ = self.jobs.0.send(Job::Close);
    }

    /// Waits for it to be closed. Whether it is, in time.
    fn closes(&mut self) -> bool {
        self.begin_closing();
        let rest = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        self.open.recv_timeout(rest.unwrap_or_default()) != Err(RecvTimeoutError::Timeout)
    }
}

impl<D> Drop for OpenDevice<D> {
    fn drop(&mut self) {
        if !self.closes() {
            let late = Unanswered::Late(DEADLINE.as_secs());
            // Its own, or another one that it waits for.
            let device = dpdk::bus_holder().unwrap_or_else(|| "no device".to_owned());
            tracing::error!(
                port = self.port,
                "it is closed later: {late}; {device} is being opened or closed"
            );
        }
    }
}

type Act<D> = Box<dyn FnOnce(&mut D) + Send>;

enum Job<D> {
    Act(Act<D>),
    /// Counters and speed are to be looked at now.
    Count,
    Close,
}

/// Leaves jobs with a device's thread, which does them one after the other.
#[derive(Debug)]
pub(crate) struct DeviceJobs<D = Port>(Sender<Job<D>>);

impl<D> Clone for DeviceJobs<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D: 'static> DeviceJobs<D> {
    /// Does something with the device. What comes too late is taken back by `undo`.
    ///
    /// Errors: [`Unanswered`]: it was not done, or will not have been.
    pub(crate) async fn act<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut D) -> R + Send + 'static,
        undo: impl FnOnce(&mut D, R) + Send + 'static,
    ) -> Result<R, Unanswered> {
        self.act_within(DEADLINE, act, undo).await
    }

    /// The same for what need not be taken back.
    ///
    /// Errors: [`Unanswered`].
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut D) -> R + Send + 'static,
    ) -> Result<R, Unanswered> {
        self.act(ask, |_, _| ()).await
    }

    /// Has counters and speed looked at now.
    ///
    /// Errors: [`Unanswered`]: they are as they were.
    pub(crate) async fn count(&self) -> Result<(), Unanswered> {
        self.0.send(Job::Count).map_err(|_| Unanswered::Ended)?;
        // When this is done, so is what was left before.
        self.ask(|_| ()).await
    }

    async fn act_within<R: Send + 'static>(
        &self,
        deadline: Duration,
        act: impl FnOnce(&mut D) -> R + Send + 'static,
        undo: impl FnOnce(&mut D, R) + Send + 'static,
    ) -> Result<R, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let job = move |device: &mut D| {
            if answer.is_closed() {
                return;
            }
            if let Err(done) = answer.send(act(device)) {
                undo(device, done);
            }
        };
        self.0.send(Job::Act(Box::new(job))).map_err(|_| Unanswered::Ended)?;
        answer_within(deadline, answered).await
    }
}

/// What a thread answers in time. What it wants to answer later finds nobody: it is told so.
///
/// Errors: [`Unanswered`].
pub(super) async fn answer_within<R>(
    deadline: Duration,
    mut answered: oneshot::Receiver<R>,
) -> Result<R, Unanswered> {
    match timeout(deadline, &mut answered).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(Unanswered::Ended),
        Err(_) => {
            answered.close();
            // It may have come at the last moment.
            answered.try_recv().map_err(|_| Unanswered::Late(deadline.as_secs()))
        }
    }
}

/// What the thread shows to everybody.
#[derive(Debug)]
struct View {
    seen: ArcSwap<Seen>,
    looks: AtomicU64,
}

impl View {
    fn of(device: &impl Driven) -> Self {
        let stats = device.counted().unwrap_or_default();
        let seen = Seen { health: device.look(), speed: device.speed(), stats };
        Self { seen: ArcSwap::from_pointee(seen), looks: AtomicU64::new(0) }
    }

    /// Looks at the device, its counters and speed too where `all` says so. Returns whether its link has changed.
    fn look(&self, device: &impl Driven, all: bool) -> bool {
        let before = **self.seen.load();
        let mut now = Seen { health: device.look(), ..before };
        let changed = now.health != before.health;
        if all || changed {
            now.speed = device.speed();
            now.stats = device.counted().unwrap_or(before.stats);
        }
        if now != before {
            self.seen.store(Arc::new(now));
        }
        self.looks.fetch_add(1, Ordering::Relaxed);
        changed
    }
}

/// The thread: looks and does jobs until the device is closed.
fn attend<D: Driven>(mut device: D, inbox: Receiver<Job<D>>, view: &View, changed: &Notify) {
    let look = |device: &D, all: bool| {
        if view.look(device, all) {
            changed.notify_one();
        }
    };
    let (mut looks, mut next) = (0, Instant::now() + PERIOD);
    loop {
        let rest = next.saturating_duration_since(Instant::now());
        // However many jobs wait, a look that is due comes first.
        let job =
            if rest.is_zero() { Err(RecvTimeoutError::Timeout) } else { inbox.recv_timeout(rest) };
        match job {
            Ok(Job::Act(act)) => act(&mut device),
            Ok(Job::Count) => look(&device, true),
            Ok(Job::Close) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                looks = (looks + 1) % LOOKS;
                look(&device, looks == 0);
                next = Instant::now() + PERIOD;
            }
        }
    }
    device.shut();
}

#[cfg(test)]
mod tests;
