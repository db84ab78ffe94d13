//! The slow path, for ever: woken by packets from workers, by changes, and by its timers.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep;

use super::{Daemon, Shared};
use crate::service::Beat;

/// Longest time between two looks: a bridge's workers do not ring when they have learned something.
const PERIOD: Duration = Duration::from_millis(50);
const PERIOD_WITHOUT_BRIDGES: Duration = Duration::from_secs(1);

/// Serves packets for the control thread, for ever.
///
/// Errors: the runtime cannot wait for the doorbell.
pub(crate) fn slow_path(daemon: Shared, beat: Beat) -> io::Result<impl Future<Output = ()>> {
    let doorbell = Arc::clone(&daemon.lock().doorbell);
    // The runtime waits for an eventfd as it does for a pipe.
    let event = Receiver::from_owned_fd_unchecked(doorbell.as_fd().try_clone_to_owned()?)?;
    let changed = Arc::clone(&daemon.changed);
    Ok(async move {
        loop {
            beat.count();
            let (more, wait) = daemon.lock().turn();
            if more {
                // Requests have their turn too.
                tokio::task::yield_now().await;
                continue;
            }
            doorbell.announce();
            if daemon.lock().routing.has_punts() {
                doorbell.awake();
                continue;
            }
            tokio::select! {
                _ = event.readable() => {
                    // Until it is empty: only then the runtime waits again.
                    while event.try_read(&mut [0; 8]).is_ok_and(|count| count > 0) {}
                }
                () = sleep(wait) => {}
                () = changed.notified() => {}
            }
            doorbell.awake();
        }
    })
}

impl Daemon {
    /// One turn: whether there is more to do at once, else for how long there is nothing.
    fn turn(&mut self) -> (bool, Duration) {
        let turn = self.routing.turn();
        // Somebody may serve since a worker has handed one up.
        self.routing.release_early(|packet| self.sessions.is_settled(packet));
        let more = self.bridges.learn(&self.routing.interfaces()) | turn.more;
        let longest = if self.config.bridges.is_empty() { PERIOD_WITHOUT_BRIDGES } else { PERIOD };
        (more, turn.wait.unwrap_or(longest).min(longest))
    }
}
