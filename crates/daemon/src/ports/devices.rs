//! The thread for devices: opening, changing and closing one takes as long as its driver likes, and nobody but
//! this thread waits for it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use arc_swap::ArcSwap;
use control::config;
use dpdk::{BufferPool, Port, PortError};
use graph::{RxAssignment, TransmitPath};
use tokio::sync::oneshot;

use super::given::Given;
use super::needs::Needs;
use super::open::{self, Ended, OpenError, Order, Ready};
use super::pools::Pools;

type Job = Box<dyn FnOnce(&mut Pools, &mut Given) + Send>;
type Shown = Arc<ArcSwap<Vec<(u32, BufferPool)>>>;

/// Leaves jobs with the thread, which does them one after the other.
#[derive(Clone)]
pub(crate) struct Devices {
    jobs: Sender<Job>,
    pools: Shown,
}

impl Devices {
    /// Starts the thread. It ends with the last clone.
    ///
    /// Errors: the system has no thread for it.
    pub(crate) fn start(pools: Pools) -> io::Result<Self> {
        let (jobs, inbox) = channel();
        let shown = Shown::default();
        let show = Arc::clone(&shown);
        let body = move || serve(&inbox, pools, &show);
        thread::Builder::new().name("millrace-dev".to_owned()).spawn(body)?;
        Ok(Self { jobs, pools: shown })
    }

    /// Every buffer pool by its NUMA node.
    pub(crate) fn pools(&self) -> Arc<Vec<(u32, BufferPool)>> {
        self.pools.load_full()
    }

    /// Runs something on the thread.
    ///
    /// Errors: [`Ended`].
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Pools) -> R + Send + 'static,
    ) -> Result<R, Ended> {
        self.run_with(move |pools, _| job(pools)).await
    }

    async fn run_with<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Pools, &mut Given) -> R + Send + 'static,
    ) -> Result<R, Ended> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |pools, given| {
            // Nobody may listen any more; what was opened is closed then.
            let _ = answer.send(job(pools, given));
        });
        self.jobs.send(job).map_err(|_| Ended)?;
        answered.await.map_err(|_| Ended)
    }

    /// Leaves something with the thread that nobody waits for.
    pub(crate) fn leave(&self, job: impl FnOnce(&mut Pools) + Send + 'static) {
        // A thread that has ended has nothing any more.
        let _ = self.jobs.send(Box::new(move |pools, _| job(pools)));
    }

    /// Opens a device.
    ///
    /// Errors: [`OpenError`]; nothing is left behind.
    pub(crate) async fn open(&self, order: Order) -> Result<Ready, OpenError> {
        self.run_with(move |pools, given| open::open(&order, pools, given)).await?
    }

    /// Closes a device whose queues the workers have given back.
    pub(crate) async fn close(
        &self,
        name: String,
        port: Port,
        (receive, transmit): (Vec<RxAssignment>, Vec<TransmitPath>),
    ) {
        let close = move |pools: &mut Pools| {
            let lanes = receive.into_iter().filter_map(RxAssignment::into_lane).collect();
            pools.keep_lanes(&name, lanes, 0);
            drop(transmit);
            if let Err(error) = port.close() {
                tracing::error!(port = name, "{error}");
            }
        };
        if let Err(error) = self.run(close).await {
            tracing::error!("{error}");
        }
    }

    /// Changes an open device where two sections differ. Gives it back with the device's refusal, in which case
    /// it is as it was; `None`: it is lost with the thread.
    pub(crate) async fn adapt(
        &self,
        port: Port,
        before: (config::Port, Needs),
        after: (config::Port, Needs),
    ) -> Option<(Port, Result<(), PortError>)> {
        let adapt =
            move |port: &mut Port| open::adapt(port, (&before.0, before.1), (&after.0, after.1));
        self.with(port, adapt).await
    }

    /// Does something with an open device and gives it back; `None`: it is lost with the thread.
    pub(crate) async fn with<R: Send + 'static>(
        &self,
        mut port: Port,
        act: impl FnOnce(&mut Port) -> R + Send + 'static,
    ) -> Option<(Port, R)> {
        let act = move |_: &mut Pools| {
            let done = act(&mut port);
            (port, done)
        };
        self.run(act).await.ok()
    }
}

fn serve(inbox: &Receiver<Job>, mut pools: Pools, shown: &Shown) {
    let mut given = Given::default();
    while let Ok(job) = inbox.recv() {
        job(&mut pools, &mut given);
        let now: Vec<(u32, BufferPool)> = pools.iter().map(|(node, pool)| (node, *pool)).collect();
        if now.len() != shown.load().len() {
            shown.store(Arc::new(now));
        }
    }
}
