//! The thread for devices: opening and closing one takes as long as its driver likes, and nobody but this thread waits for it
//! for ever. What is done with an open one, its own thread does.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use dpdk::BufferPool;
use graph::{RxAssignment, TransmitPath};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::device::{OpenDevice, Unanswered, answer_within};
use super::given::Given;
use super::open::{self, OpenError, Order, Ready};
use super::pools::Pools;

/// How long a driver may take to open a device: some reset a card for seconds, and each queue adds to that.
const DEADLINE: Duration = Duration::from_secs(60);

type Job = Box<dyn FnOnce(&mut Pools, &mut Given) + Send>;
type Shown = Arc<ArcSwap<Vec<(u32, BufferPool)>>>;

/// Leaves jobs with the thread, which does them one after the other.
#[derive(Clone)]
pub(crate) struct Devices {
    jobs: Sender<Job>,
    pools: Shown,
    /// Since when it does what it does.
    since: Arc<ArcSwapOption<Instant>>,
    changed: Arc<Notify>,
}

impl Devices {
    /// Starts the thread. It ends with the last clone.
    ///
    /// Errors: the system has no thread for it.
    pub(crate) fn start(pools: Pools) -> io::Result<Self> {
        let (jobs, inbox) = channel();
        let (shown, since) = (Shown::default(), Arc::<ArcSwapOption<Instant>>::default());
        let (show, at_work) = (Arc::clone(&shown), Arc::clone(&since));
        let body = move || serve(&inbox, pools, &show, &at_work);
        thread::Builder::new().name("millrace-dev".to_owned()).spawn(body)?;
        Ok(Self { jobs, pools: shown, since, changed: Arc::default() })
    }

    /// Every buffer pool by its NUMA node.
    pub(crate) fn pools(&self) -> Arc<Vec<(u32, BufferPool)>> {
        self.pools.load_full()
    }

    /// Notified when the link of an open device changes.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Runs something on the thread, and waits for it.
    ///
    /// Errors: [`Unanswered::Ended`].
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Pools) -> R + Send + 'static,
    ) -> Result<R, Unanswered> {
        let (answer, answered) = oneshot::channel();
        // Nobody may listen any more.
        self.leave(move |pools| drop(answer.send(job(pools))));
        answered.await.map_err(|_| Unanswered::Ended)
    }

    /// Leaves something with the thread that nobody waits for.
    pub(crate) fn leave(&self, job: impl FnOnce(&mut Pools) + Send + 'static) {
        // A thread that has ended has nothing any more.
        let _ = self.jobs.send(Box::new(move |pools, _| job(pools)));
    }

    /// Opens a device.
    ///
    /// Errors: [`OpenError`]; nothing is left behind: what a driver opens too late is closed again.
    pub(crate) async fn open(&self, order: Order) -> Result<Ready, OpenError> {
        let name = order.name().to_owned();
        let (answer, answered) = oneshot::channel();
        let (changed, late) = (self.changed(), name.clone());
        let job: Job = Box::new(move |pools, given| {
            if answer.is_closed() {
                return;
            }
            let opened = open::open(&order, pools, given, &changed);
            if let Err(Ok(ready)) = answer.send(opened) {
                tracing::warn!(port = late, "its device was opened too late, and is closed again");
                let (device, receive) = ready.into_parts();
                close(pools, &late, device, (receive, Vec::new()));
            }
        });
        let opened = if self.hangs() {
            Err(Unanswered::Late(DEADLINE.as_secs()))
        } else {
            self.jobs.send(job).map_err(|_| Unanswered::Ended)
        };
        let opened = match opened {
            Ok(()) => answer_within(DEADLINE, answered).await,
            Err(error) => Err(error),
        };
        opened.map_err(|source| OpenError::Unanswered { name, source })?
    }

    /// Whether a driver holds the thread up: nobody need wait to see it again.
    fn hangs(&self) -> bool {
        self.since.load().as_ref().is_some_and(|since| since.elapsed() >= DEADLINE)
    }

    /// Closes a device whose queues the workers have given back.
    pub(crate) async fn close(
        &self,
        name: String,
        device: OpenDevice,
        queues: (Vec<RxAssignment>, Vec<TransmitPath>),
    ) {
        let port = name.clone();
        let closed = self.run(move |pools| close(pools, &port, device, queues));
        let patience = if self.hangs() { Duration::ZERO } else { DEADLINE };
        let late = Unanswered::Late(DEADLINE.as_secs());
        if let Err(error) = timeout(patience, closed).await.unwrap_or(Err(late)) {
            tracing::error!(port = name, "it is closed later: {error}");
        }
    }
}

fn close(
    pools: &mut Pools,
    name: &str,
    device: OpenDevice,
    (receive, transmit): (Vec<RxAssignment>, Vec<TransmitPath>),
) {
    open::keep_lanes(pools, name, receive);
    drop(transmit);
    drop(device);
}

fn serve(inbox: &Receiver<Job>, mut pools: Pools, shown: &Shown, since: &ArcSwapOption<Instant>) {
    let mut given = Given::default();
    while let Ok(job) = inbox.recv() {
        since.store(Some(Arc::new(Instant::now())));
        job(&mut pools, &mut given);
        since.store(None);
        let now: Vec<(u32, BufferPool)> = pools.iter().map(|(node, pool)| (node, *pool)).collect();
        if now.len() != shown.load().len() {
            shown.store(Arc::new(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::needs::Needs;
    use super::super::numa::Numa;
    use super::super::port::PortState;
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn nobody_waits_for_a_thread_that_a_driver_holds_up() {
        let config = testing::config("[[port]]\nname = \"p\"\ndevice = \"null,no-rx=1\"\n");
        let devices = Devices::start(Pools::new(&config, Numa::of_machine())).unwrap();
        let (release, released) = channel::<()>();
        devices.leave(move |_| {
            let _ = released.recv();
        });
        while devices.since.load().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!devices.hangs());
        let long_ago = Instant::now().checked_sub(DEADLINE).unwrap();
        devices.since.store(Some(Arc::new(long_ago)));
        let port = PortState::new(&config.ports[0], Needs::of(&config, "p")).unwrap();
        let opened = timeout(DEADLINE / 2, devices.open(port.order())).await.unwrap();
        let error = opened.unwrap_err();
        assert!(error.to_string().contains("port p: a driver has not answered"), "{error}");
        release.send(()).unwrap();
        assert_eq!(devices.run(|_| 7).await, Ok(7));
        assert!(!devices.hangs());
    }
}
