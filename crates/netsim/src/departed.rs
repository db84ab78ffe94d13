//! Connections on the way from one stack of a host to the next.

use transport::{ConnectionId, Contents, Event, Exported, Ring, TimeWait};

use crate::buffers::HostStack;

/// They and when they arrive.
#[derive(Debug)]
pub(crate) struct Departed {
    /// With the handles that they had.
    connections: Vec<(ConnectionId, Exported<Ring>)>,
    /// Those in TIME-WAIT that have none, as bytes, and how many those are.
    waits: (Vec<u8>, usize),
    /// ns.
    left_at: u64,
    gap: u64,
    /// What the next stack's clock is ahead of simulated time: ns.
    ahead: u64,
    trouble: Option<String>,
}

impl Departed {
    /// Takes all connections out of a stack, which must have nothing left.
    pub(crate) fn leave(
        stack: &mut HostStack,
        contents: Contents,
        clock: u64,
        left_at: u64,
        gap: u64,
        ahead: u64,
    ) -> Result<Self, String> {
        let mut connections = Vec::new();
        for id in stack.all_connections() {
            let exported =
                stack.export(clock, id, contents).map_err(|why| format!("{id:?}: {why}"))?;
            connections.push((id, exported));
        }
        let waits = stack.export_time_waits(clock, usize::MAX);
        let waits = (TimeWait::write(&waits, clock), waits.len());
        let left = (stack.connections(), stack.next_deadline());
        if left != (0, None) {
            return Err(format!("connections, deadline left behind: {left:?}"));
        }
        let event = std::iter::from_fn(|| stack.poll_event())
            .find(|event| !matches!(event, Event::Gone(..) | Event::Incoming(_)));
        match event {
            Some(event) => Err(format!("left behind: {event:?}")),
            None => Ok(Self { connections, waits, left_at, gap, ahead, trouble: None }),
        }
    }

    /// Takes one connection out of a stack.
    pub(crate) fn leave_alone(
        stack: &mut HostStack,
        id: ConnectionId,
        contents: Contents,
        clock: u64,
        left_at: u64,
        gap: u64,
    ) -> Result<Self, String> {
        let exported = stack.export(clock, id, contents).map_err(|why| format!("{id:?}: {why}"))?;
        let (connections, waits) = (vec![(id, exported)], (TimeWait::write(&[], clock), 0));
        Ok(Self { connections, waits, left_at, gap, ahead: 0, trouble: None })
    }

    /// To a stack whose clock is so much ahead of simulated time: ns.
    pub(crate) fn towards(self, ahead: u64) -> Self {
        Self { ahead, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.connections.len() + self.waits.1
    }

    pub(crate) fn back_at(&self) -> u64 {
        if self.trouble.is_some() { u64::MAX } else { self.left_at + self.gap }
    }

    pub(crate) fn left_at(&self) -> u64 {
        self.left_at
    }

    pub(crate) fn ahead(&self) -> u64 {
        self.ahead
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// Puts them into the next stack. Gives itself when that went wrong.
    pub(crate) fn arrive(
        mut self,
        stack: &mut HostStack,
        now: u64,
        mut moved: impl FnMut(ConnectionId, ConnectionId),
    ) -> Option<Self> {
        let (clock, age) = (now + self.ahead, now - self.left_at);
        for (old, mut exported) in std::mem::take(&mut self.connections) {
            match stack.import(clock, age, &exported.bytes, &mut exported.fifos) {
                Ok(new) => moved(old, new),
                Err(why) => self.trouble = Some(format!("{:?}: {why}", exported.ends)),
            }
        }
        match TimeWait::read(&self.waits.0, clock, age) {
            Ok(waits) => {
                // One that is over by now is not taken.
                let mut left = waits.iter().filter(|one| one.left(clock) > 0);
                let lost = left.find(|one| !stack.import_time_wait(clock, one));
                let lost = lost.map(|one| format!("{:?}: in TIME-WAIT", one.ends()));
                self.trouble = self.trouble.take().or(lost);
            }
            Err(why) => self.trouble = Some(format!("in TIME-WAIT: {why}")),
        }
        self.trouble.is_some().then_some(self)
    }
}
