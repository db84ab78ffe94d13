//! What processes ask of the control thread: one thing after the other, and never more than a quarter of its time.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

/// Things that wait to be done. Each user has one at a time there, so that who asks for much waits for nobody but itself.
const WAITING: usize = 256;
/// What took longer is followed by a rest of [`REST`] times as long.
const SHORT: Duration = Duration::from_micros(200);
const REST: u32 = 3;

/// A request, parsed and paced, as what is to be done with the daemon.
pub(crate) type Act<D> = Box<dyn FnOnce(&mut D) + Send>;

/// The way from the users' threads to the control thread, which has `D`.
#[derive(Debug)]
pub(crate) struct Control<D> {
    acts: mpsc::Sender<Act<D>>,
}

/// The other end of it.
pub(crate) struct Asked<D> {
    acts: mpsc::Receiver<Act<D>>,
}

/// Both ends.
pub(crate) fn asks<D>() -> (Control<D>, Asked<D>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Control { acts: sender }, Asked { acts: receiver })
}

impl<D> Clone for Control<D> {
    fn clone(&self) -> Self {
        Self { acts: self.acts.clone() }
    }
}

impl<D: 'static> Control<D> {
    /// Has something done on the control thread, which goes on when the caller does not wait for it. `None`: the daemon
    /// ends.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        act: impl FnOnce(&mut D) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        let act = Box::new(move |daemon: &mut D| {
            // Whoever asked may be gone; what the answer holds goes with it.
            let _ = answer.send(act(daemon));
        });
        self.acts.send(act).await.ok()?;
        answered.await.ok()
    }
}

impl<D: 'static> Asked<D> {
    /// Has done what is asked, for ever.
    pub(crate) async fn serve(mut self, perform: impl Fn(Act<D>)) {
        while let Some(act) = self.acts.recv().await {
            let begun = Instant::now();
            perform(act);
            let took = begun.elapsed();
            if took > SHORT {
                sleep(took * REST).await;
            }
        }
    }
}
