//! A socket to which nobody is admitted, for tests.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use shm::attach::{Refusal, RefusalKind, Reply, Request};

use super::{Answer, Bounds, Guest, Process, Service, Shared};

pub(super) struct Closed {
    pub(super) most: u16,
}

pub(super) struct Nobody;

impl Service for Closed {
    const SOCKET: &'static str = "test";
    const THREAD: &'static str = "test";
    const SECTION: &'static str = "test";
    type Guest = Nobody;

    fn bounds(&self) -> Bounds {
        Bounds { most: self.most, connections: 2, requests: 100 }
    }

    fn admit(&self, _: &Process) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalKind::Permission, "no"))
    }

    fn receive(&self, _: Process, _: Arc<Shared>) -> Nobody {
        Nobody
    }
}

impl Guest for Nobody {
    const FILES: usize = 0;
    type Request = Request;
    type Reply = Reply;

    fn is_known(&self) -> bool {
        false
    }

    async fn answer(&mut self, _: Request, _: Vec<OwnedFd>) -> Answer<Reply> {
        Answer::no(Refusal::new(RefusalKind::Permission, "no"))
    }

    async fn leave(self, _: String) {}
}
