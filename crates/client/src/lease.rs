//! Queues as long as somebody has them.

use std::sync::Arc;

use shm::attach::Request;

use crate::connection::Connection;

/// Gives the queues back when the last channel is gone.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) connection: Arc<Connection>,
    number: u32,
}

impl Lease {
    /// Of the queues with that number.
    pub(crate) fn new(connection: &Arc<Connection>, number: u32) -> Self {
        Self { connection: Arc::clone(connection), number }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // In a forked child the queues are the parent's, who still has them.
        if self.connection.is_ours() && !self.connection.is_closed() {
            // A daemon that does not answer ends the connection, and with it the queues.
            let _ = self.connection.ask(&Request::Close(self.number));
        }
    }
}
