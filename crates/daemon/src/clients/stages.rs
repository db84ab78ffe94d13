//! What a client's queues are on their way: made by its user's thread, set up by the control thread, begun by workers, and
//! taken back from them.

use std::sync::Arc;

use dpdk::DeviceMemory;
use graph::{ClientSetup, Function, LaneClient, PortId};
use shm::Segment;
use shm::attach::Refusal;

use crate::processes::no_resources;
use crate::workers::{Answer, Answers};

/// A queue that is to be given.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) port: PortId,
    pub(super) queue: u16,
    /// Of the worker that polls it.
    pub(super) core: u16,
    /// Buffers, and bytes of each.
    pub(super) buffers: (u32, usize),
}

/// What a worker says to a client that it is given; none: it does not poll the queue any more.
pub(super) type Given = Option<Result<(), graph::LaneError>>;

/// What a client will have once it has mapped its memory.
pub(super) enum Start {
    /// Its rings, by worker.
    Workers(Vec<ClientSetup>),
    /// A dedicated receive queue, and the memory for its buffers.
    Own(Place, Box<LaneClient>, Arc<DeviceMemory>),
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start")
    }
}

/// Workers that were told to begin.
pub(super) enum Starting {
    Workers(Vec<Answer<()>>),
    Own(Answer<Given>),
}

impl Starting {
    /// When they have.
    pub(super) async fn done(self) -> Result<(), Refusal> {
        match self {
            Self::Workers(answers) => {
                for answer in answers {
                    answer.get().await.map_err(no_resources)?;
                }
                Ok(())
            }
            Self::Own(answer) => {
                let given = answer.get().await.map_err(no_resources)?;
                given.unwrap_or(Err(graph::LaneError::None)).map_err(no_resources)
            }
        }
    }
}

/// What the workers give back.
pub(super) enum Taken {
    Workers(Answers<Option<Box<dyn Function>>>),
    Own(Answers<Option<LaneClient>>),
}

/// What is left of queues that were taken back. Its memory is unmapped by whoever waits for it, when the workers have
/// answered.
pub(super) struct Left {
    pub(super) taken: Taken,
    pub(super) _start: Option<Start>,
    pub(super) _segment: Arc<Segment>,
}

impl Left {
    /// When no worker touches them any more.
    pub(super) async fn taken(self) {
        match self.taken {
            Taken::Workers(answers) => drop(answers.all().await),
            Taken::Own(answers) => drop(answers.all().await),
        }
    }

    /// Waits for it elsewhere.
    pub(super) fn forget(self) {
        tokio::spawn(self.taken());
    }
}
