//! A user's thread: its connections, its bells and its memory, so that what a user does slows nobody else down.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::Service;
use super::user::{Coming, Place, Shared};
use super::visit::visit;

/// Connections that wait for the thread. More are closed unheard.
const WAITING: usize = 64;
/// Connections beyond a user's bound that are told so at the same time. More are closed unheard.
const REFUSED: usize = 16;
/// Connections of users that may not come that are told so at the same time.
const STRANGERS: usize = 64;
/// A thread without a connection ends after this time.
const IDLE: Duration = Duration::from_secs(10);

/// Whose thread it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum User {
    /// A user that may come.
    Uid(u32),
    /// All those that may not.
    Strangers,
}

/// A user's thread, as the door sees it.
pub(super) struct Desk {
    coming: mpsc::Sender<Coming>,
    taken: Arc<AtomicUsize>,
}

impl Desk {
    /// Starts the thread.
    ///
    /// Errors: no thread or no descriptors.
    pub(super) fn open<S: Service>(user: User, service: Arc<S>) -> io::Result<Self> {
        let (coming, come) = mpsc::channel(WAITING);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared::new()?);
        let (name, refused) = match user {
            User::Uid(uid) => (format!("{}-{uid}", S::THREAD), REFUSED),
            User::Strangers => ("strangers".to_owned(), STRANGERS),
        };
        let taken = Arc::default();
        let thread = std::thread::Builder::new().name(name);
        thread.spawn(move || runtime.block_on(attend(come, service, shared, refused)))?;
        Ok(Self { coming, taken })
    }

    /// Places taken.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// A place, which only the door takes.
    pub(super) fn place(&self) -> Place {
        Place::of(&self.taken)
    }

    /// Gives a connection to the thread; gives it back when the thread has enough of them, or has ended.
    pub(super) fn send(&self, coming: Coming) -> Result<(), Coming> {
        self.coming.try_send(coming).map_err(mpsc::error::TrySendError::into_inner)
    }

    /// Whether the thread has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.coming.is_closed()
    }
}

async fn attend<S: Service>(
    mut coming: mpsc::Receiver<Coming>,
    service: Arc<S>,
    shared: Arc<Shared>,
    refused: usize,
) {
    let here = Arc::clone(&shared);
    tokio::spawn(async move {
        if let Err(error) = here.bells.serve().await {
            tracing::error!("a user's bells are not rung: {error}; raise LimitNOFILE");
        }
    });
    let here = Arc::clone(&shared);
    tokio::spawn(async move {
        if let Err(error) = here.kept.serve().await {
            tracing::error!("a user's connections are not watched: {error}; raise LimitNOFILE");
        }
    });
    let refused = Arc::new(Semaphore::new(refused));
    let served = Arc::new(());
    let needed = |shared: &Shared| Arc::strong_count(&served) > 1 || !shared.kept.is_empty();
    loop {
        let next = match timeout(IDLE, coming.recv()).await {
            Ok(next) => next,
            Err(_) if needed(&shared) => continue,
            // Who came in the meantime is served still, whoever comes now finds another thread.
            Err(_) => {
                coming.close();
                coming.recv().await
            }
        };
        let Some(next) = next else { break };
        let among = match &next.place {
            Ok(_) => None,
            Err(_) => match Arc::clone(&refused).try_acquire_owned() {
                Ok(among) => Some(among),
                Err(_) => continue,
            },
        };
        let (service, shared, served) =
            (Arc::clone(&service), Arc::clone(&shared), Arc::clone(&served));
        tokio::spawn(async move {
            visit(service, next, shared).await;
            drop((among, served));
        });
    }
    while needed(&shared) {
        sleep(IDLE / 10).await;
    }
}

#[cfg(test)]
mod tests;
