//! What clients ask of the control thread: one thing after the other, and never more than a quarter of its time.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::daemon::{Daemon, Shared};

/// Things that wait to be done. Each user has one at a time there, so that who asks for much waits for nobody but itself.
const WAITING: usize = 256;
/// What took longer is followed by a rest of [`REST`] times as long.
const SHORT: Duration = Duration::from_micros(200);
const REST: u32 = 3;

/// A request, parsed and paced, as what is to be done with the daemon.
type Act = Box<dyn FnOnce(&mut Daemon) + Send>;

/// The way from the users' threads to the control thread.
#[derive(Clone)]
pub(super) struct Control {
    acts: mpsc::Sender<Act>,
}

/// The other end of it.
pub(crate) struct Asked {
    acts: mpsc::Receiver<Act>,
}

pub(super) fn channel() -> (Control, Asked) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Control { acts: sender }, Asked { acts: receiver })
}

impl Control {
    /// Has something done on the control thread, which goes on when the caller does not wait for it. `None`: the daemon
    /// ends.
    pub(super) async fn ask<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Daemon) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        let act = Box::new(move |daemon: &mut Daemon| {
            // Whoever asked may be gone; what the answer holds goes with it.
            let _ = answer.send(act(daemon));
        });
        self.acts.send(act).await.ok()?;
        answered.await.ok()
    }
}

impl Asked {
    /// Does what is asked, for ever.
    pub(crate) async fn serve(mut self, daemon: Shared) {
        while let Some(act) = self.acts.recv().await {
            let begun = Instant::now();
            act(&mut daemon.lock());
            let took = begun.elapsed();
            if took > SHORT {
                sleep(took * REST).await;
            }
        }
    }
}
