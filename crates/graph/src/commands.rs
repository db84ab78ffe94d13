//! Commands on their way to a worker, which looks for some before each round.
//!
//! A look into an empty channel of the standard library takes a full fence, for which the round before must have written all it
//! has. So a mark says that commands have come: where none have, a look is one load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use crate::worker::WorkerState;

/// What the control thread sends to a worker, run between two vectors.
pub(crate) type Command = Box<dyn FnOnce(&mut WorkerState) + Send>;

/// The sending end. Clones serve other threads.
#[derive(Clone)]
pub(crate) struct CommandSender {
    channel: SyncSender<Command>,
    come: Arc<AtomicBool>,
}

impl CommandSender {
    /// Leaves a command with the worker; a ring at its doorbell comes after.
    pub(crate) fn send(&self, command: Command) -> Result<(), TrySendError<Command>> {
        self.channel.try_send(command)?;
        self.come.store(true, Ordering::Release);
        Ok(())
    }
}

/// The worker's end.
pub(crate) struct Commands {
    channel: Receiver<Command>,
    come: Arc<AtomicBool>,
}

impl Commands {
    /// Whether some have come since the last call: [`Self::next`] gives them, and has to be asked until it gives none.
    #[inline]
    pub(crate) fn have_come(&self) -> bool {
        // The mark is taken away before the channel is looked at, so what is sent from then on sets it again.
        self.come.load(Ordering::Relaxed) && self.come.swap(false, Ordering::Acquire)
    }

    /// The next one.
    pub(crate) fn next(&self) -> Option<Command> {
        self.channel.try_recv().ok()
    }
}

/// Both ends, with room for `most` commands that wait.
pub(crate) fn commands(most: usize) -> (CommandSender, Commands) {
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
        let send = || sender.send(Box::new(|_| {})).is_ok();
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
        assert!(matches!(sender.send(Box::new(|_| {})), Err(TrySendError::Disconnected(_))));
    }
}
