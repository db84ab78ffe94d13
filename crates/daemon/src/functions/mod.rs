//! Packet functions from shared objects: added to workers and taken away while packets flow.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use control::api;
use graph::{PortId, WorkerError};
use loader::{LoadError, Object};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::ports::Ports;
use crate::workers::Crew;

/// How long a function's own code may take to be loaded, and to make or destroy an instance. It goes on after that, and what it gives
/// then is dropped.
const PATIENCE: Duration = Duration::from_secs(60);
/// While so many calls of such code have not ended, no function is added, and none follows its port: each call has a thread.
const MOST_CALLS: usize = 16;

/// Calls that have not ended, whether somebody waits for them or not.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Numbers of functions on workers; a client's begin with its own number, which is not 0.
fn worker_number(id: u32) -> u64 {
    u64::from(id)
}

/// A function that was added.
#[derive(Clone)]
pub(crate) struct Added {
    id: u32,
    asked: api::FunctionAdd,
    object: Object,
    since: Instant,
    /// The port that its instances are bound to; `None`: that port is gone, and with it the instances.
    bound: Option<PortId>,
}

/// Why a function was not added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FunctionError {
    #[error("'{0}' is no name of a file in functions.folder")]
    Name(String),
    #[error("no worker runs on core {0}; see millrace show workers")]
    Core(u16),
    #[error("there is no port {0}, or it is not open; see millrace show ports")]
    Port(String),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("a thread for it: {0}")]
    Thread(String),
    #[error("its code has not returned within {0} s")]
    Late(u64),
    #[error("{0} calls of functions' code have not returned; restart the daemon without them")]
    Hanging(usize),
}

/// The packet functions that were added, in order.
#[derive(Default)]
pub(crate) struct Functions {
    list: Vec<Added>,
    last: u32,
    /// Counted with each that comes or goes.
    changes: u64,
}

impl Functions {
    /// As the API shows them.
    pub(crate) fn show(&self) -> Vec<api::Function> {
        self.list.iter().map(show).collect()
    }

    /// What was asked for, in order.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &api::FunctionAdd> {
        self.list.iter().map(|added| &added.asked)
    }

    /// Counted with each that comes or goes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// A number for another one.
    pub(crate) fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.last
    }

    /// Notes one that the workers have.
    pub(crate) fn push(&mut self, added: Added) -> api::Function {
        tracing::info!(function = added.id, "{} added", added.object.path().display());
        let shown = show(&added);
        self.list.push(added);
        self.changes += 1;
        shown
    }

    /// Forgets one. `None`: there was none.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Added> {
        let at = self.list.iter().position(|added| added.id == id)?;
        let added = self.list.remove(at);
        self.changes += 1;
        tracing::info!(function = id, "{} removed", added.object.path().display());
        Some(added)
    }

    /// Those whose port came, went, or has another number, with the number that it has now.
    pub(crate) fn astray(&self, ports: &Ports) -> Vec<(Added, Option<PortId>)> {
        let bound = self.list.iter().filter_map(|added| {
            let now = ports.id(added.asked.port.as_deref()?);
            (now != added.bound).then(|| (added.clone(), now))
        });
        bound.collect()
    }

    /// Notes where one is bound now.
    pub(crate) fn bind(&mut self, id: u32, bound: Option<PortId>) {
        if let Some(added) = self.list.iter_mut().find(|added| added.id == id) {
            added.bound = bound;
        }
    }
}

impl Added {
    /// Loads the shared object that is asked for. It runs its initialisers, and they take the time they take.
    ///
    /// Errors: [`FunctionError`].
    pub(crate) async fn load(
        id: u32,
        asked: api::FunctionAdd,
        file: PathBuf,
        bound: Option<PortId>,
    ) -> Result<Self, FunctionError> {
        let object = create(move || Object::load(&file)).await??;
        Ok(Self { id, asked, object, since: Instant::now(), bound })
    }

    /// Makes an instance for each worker that is to have one, and gives it to the worker.
    ///
    /// Errors: [`FunctionError`]; some workers may have theirs.
    pub(crate) async fn install(
        &self,
        crew: &Crew,
        bound: Option<PortId>,
    ) -> Result<(), FunctionError> {
        for member in crew.iter() {
            if self.asked.core.is_some_and(|wanted| wanted != member.core) {
                continue;
            }
            let (object, argument) = (self.object.clone(), self.asked.argument.clone());
            let instance = create(move || object.instance(&argument, bound)).await??;
            let (number, instance) = (worker_number(self.id), Box::new(instance));
            member.ask(move |state| state.add_function(number, instance)).get().await?;
        }
        Ok(())
    }

    /// Takes its instances from the workers. Its own code destroys them: not between two vectors, and nobody waits for that for
    /// ever. A worker that does not answer gives its own back when it answers again.
    pub(crate) async fn uninstall(&self, crew: &Crew) {
        let number = worker_number(self.id);
        let taken = crew.owe_all(move |state| state.remove_function(number)).all().await;
        if let Err(error) = elsewhere(PATIENCE, move || drop(taken)).await {
            tracing::error!(function = self.id, "its instances are not destroyed: {error}");
        }
    }

    /// The same, and unloads its shared object, which runs that one's finalisers.
    pub(crate) async fn unload(self, crew: &Crew) {
        self.uninstall(crew).await;
        let id = self.id;
        if let Err(error) = elsewhere(PATIENCE, move || drop(self)).await {
            tracing::error!(function = id, "its shared object is not unloaded: {error}");
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }
}

/// A call of a function's own code, until it has returned.
struct Call;

impl Call {
    fn begin() -> Self {
        CALLS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs what makes something, as [`elsewhere`], unless too many calls have not ended.
async fn create<R: Send + 'static>(
    make: impl FnOnce() -> R + Send + 'static,
) -> Result<R, FunctionError> {
    let calls = CALLS.load(Ordering::Relaxed);
    if calls >= MOST_CALLS {
        return Err(FunctionError::Hanging(calls));
    }
    elsewhere(PATIENCE, make).await
}

/// Runs what a shared object does on a thread where it may take its time, and waits for it for so long.
async fn elsewhere<R: Send + 'static>(
    patience: Duration,
    run: impl FnOnce() -> R + Send + 'static,
) -> Result<R, FunctionError> {
    let call = Call::begin();
    // What comes too late is dropped before the call is over: that may run the function's code, too.
    let done = spawn_blocking(move || (run(), call));
    match timeout(patience, done).await {
        Ok(Ok((done, _))) => Ok(done),
        Ok(Err(error)) => Err(FunctionError::Thread(error.to_string())),
        Err(_) => Err(FunctionError::Late(patience.as_secs())),
    }
}

/// The path of a file in the folder for functions.
///
/// Errors: [`FunctionError::Name`]: it is not a name alone.
pub(crate) fn path_of(folder: &Path, name: &str) -> Result<PathBuf, FunctionError> {
    let alone = Path::new(name);
    if alone.file_name() != Some(alone.as_os_str()) {
        return Err(FunctionError::Name(name.escape_debug().to_string()));
    }
    Ok(folder.join(alone))
}

fn show(added: &Added) -> api::Function {
    let (id, asked) = (added.id, added.asked.clone());
    api::Function { id, age: added.since.elapsed().as_secs(), asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::{Sender, channel};

    /// Tells how many calls have not ended when it is dropped.
    #[derive(Debug)]
    struct Tells(Sender<usize>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(CALLS.load(Ordering::Relaxed));
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_for_code_that_does_not_return() {
        let ((release, hangs), (tell, told)) = (channel::<()>(), channel());
        let run = move || {
            let _ = hangs.recv();
            Tells(tell)
        };
        let late = elsewhere(Duration::from_millis(20), run).await;
        assert!(matches!(late, Err(FunctionError::Late(0))), "{late:?}");
        // Others have threads, as long as they are few.
        assert_eq!(create(|| 7).await.unwrap(), 7);
        let more: Vec<Call> = (1..MOST_CALLS).map(|_| Call::begin()).collect();
        assert!(matches!(create(|| 7).await, Err(FunctionError::Hanging(MOST_CALLS))));
        drop(more);
        assert!(create(|| 7).await.is_ok());
        release.send(()).unwrap();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(1), "what came late counts until it is dropped");
    }
}
