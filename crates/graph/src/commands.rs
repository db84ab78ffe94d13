//! Commands on their way to a worker, which looks for some before each round.
//!
//! A look into an empty channel of the standard library takes a full fence, for which the round before must have written all it
//! has. So a mark says that commands have come: where none have, a look is one load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

/// The sending end. Clones serve other threads.
pub(crate) struct CommandSender<C> {
    channel: SyncSender<C>,
    come: Arc<AtomicBool>,
}

impl<C> Clone for CommandSender<C> {
    fn clone(&self) -> Self {
        Self { channel: self.channel.clone(), come: Arc::clone(&self.come) }
    }
}

impl<C> CommandSender<C> {
    /// Leaves a command with the worker; a ring at its doorbell comes after.
    pub(crate) fn send(&self, command: C) -> Result<(), TrySendError<C>> {
        self.channel.try_send(command)?;
        self.come.store(true, Ordering::Release);
        Ok(())
    }
}

/// The worker's end.
pub(crate) struct Commands<C> {
    channel: Receiver<C>,
    come: Arc<AtomicBool>,
}

impl<C> Commands<C> {
    /// Whether some have come since the last call: [`Self::next`] gives them, and has to be asked until it gives none.
    #[inline]
    pub(crate) fn have_come(&self) -> bool {
        // The mark is taken away before the channel is looked at, so what is sent from then on sets it again.
        self.come.load(Ordering::Relaxed) && self.come.swap(false, Ordering::Acquire)
    }

    /// The next one.
    pub(crate) fn next(&self) -> Option<C> {
        self.channel.try_recv().ok()
    }
}

/// Both ends, with room for `most` commands that wait.
pub(crate) fn commands<C>(most: usize) -> (CommandSender<C>, Commands<C>) {
    let (sender, channel) = mpsc::sync_channel(most);
    let come = Arc::new(AtomicBool::new(false));
    (CommandSender { channel: sender, come: Arc::clone(&come) }, Commands { channel, come })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_found_once() {
        let (sender, commands) = commands(2);
        assert!(!commands.have_come());
        let send = || sender.send(()).is_ok();
        assert!(send() && send());
        assert!(!send(), "there is room for two");
        assert!(commands.have_come());
        assert!(commands.next().is_some());
        // One that comes while others are taken is found in the same go, or in the next.
        assert!(send());
        assert!(commands.next().is_some() && commands.next().is_some());
        assert!(commands.next().is_none());
        assert!(commands.have_come() && commands.next().is_none());
        assert!(!commands.have_come());
        assert!(send() && commands.have_come());
    }

    #[test]
    fn nothing_is_sent_to_a_worker_that_has_ended() {
        let (sender, commands) = commands(1);
        drop(commands);
        assert!(matches!(sender.send(()), Err(TrySendError::Disconnected(_))));
    }
}
