//! Flows that belong to another stack than leases and listeners say: their connection has moved, or is over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;
use graph::StackId;
use tables::{FlowReader, FlowTable, OutOfMemory};
use wire::flow::{FiveTuple4, FiveTuple6};

use super::listener::Claimant;
use super::{Flow, SteeringError};

/// Beside a stack's place: it keeps the connection, and claims nothing.
const KEPT: u32 = 1 << 31;

/// A flow as the tables have it: as in packets that come.
enum Key {
    V4([u8; 16]),
    V6([u8; 40]),
}

impl Key {
    /// `None`: its ends are of different versions.
    #[inline]
    fn of(flow: &Flow) -> Option<Self> {
        let protocol = flow.protocol();
        let (from, to) = (flow.remote.port(), flow.local.port());
        match (flow.remote.ip(), flow.local.ip()) {
            (IpAddr::V4(remote), IpAddr::V4(local)) => {
                Some(Self::V4(FiveTuple4::new((remote, from), (local, to), protocol).key()))
            }
            (IpAddr::V6(remote), IpAddr::V6(local)) => {
                Some(Self::V6(FiveTuple6::new((remote, from), (local, to), protocol).key()))
            }
            _ => None,
        }
    }
}

/// What workers share with the owner's side.
#[derive(Debug)]
struct Shared {
    /// How many there are: while there are none, nothing else is looked at.
    count: AtomicUsize,
    /// Which stack is at each place, as far as it ever had such a flow.
    seats: Box<[ArcSwapOption<Claimant>]>,
}

/// The owner's side.
#[derive(Debug)]
pub(super) struct Redirects {
    shared: Arc<Shared>,
    four: FlowTable<16>,
    six: FlowTable<40>,
    /// Whose each is, and whether that one keeps it.
    by_flow: HashMap<Flow, (StackId, bool)>,
    by_stack: BTreeMap<StackId, BTreeSet<Flow>>,
    /// How many flows each local port has.
    by_port: BTreeMap<u16, usize>,
}

/// A worker's view.
#[derive(Debug, Clone)]
pub(super) struct RedirectReader {
    shared: Arc<Shared>,
    four: FlowReader<16>,
    six: FlowReader<40>,
}

impl Redirects {
    /// `most`: flows of each version of IP. `stacks`: places for stacks.
    pub(super) fn new(most: usize, stacks: u16) -> Result<Self, OutOfMemory> {
        let seats = (0..stacks).map(|_| ArcSwapOption::empty()).collect();
        Ok(Self {
            shared: Arc::new(Shared { count: AtomicUsize::new(0), seats }),
            four: FlowTable::new(most)?,
            six: FlowTable::new(most)?,
            by_flow: HashMap::new(),
            by_stack: BTreeMap::new(),
            by_port: BTreeMap::new(),
        })
    }

    pub(super) fn reader(&self) -> RedirectReader {
        let (four, six) = (self.four.reader(), self.six.reader());
        RedirectReader { shared: Arc::clone(&self.shared), four, six }
    }

    /// Whose a flow is.
    pub(super) fn get(&self, flow: &Flow) -> Option<StackId> {
        self.by_flow.get(flow).map(|(id, _)| *id)
    }

    /// Whether a flow is a stack's that keeps it.
    pub(super) fn is_kept(&self, flow: &Flow) -> bool {
        self.by_flow.get(flow).is_some_and(|(_, is_kept)| *is_kept)
    }

    /// All flows that a stack has this way.
    pub(super) fn of(&self, id: StackId) -> impl Iterator<Item = &Flow> {
        self.by_stack.get(&id).into_iter().flatten()
    }

    /// How many those are.
    pub(super) fn count_of(&self, id: StackId) -> usize {
        self.by_stack.get(&id).map_or(0, BTreeSet::len)
    }

    /// Whether a port from `first` to `last` has such a flow.
    pub(super) fn within(&self, first: u16, last: u16) -> bool {
        self.by_port.range(first..=last).next().is_some()
    }

    /// A flow is a stack's from now on. `is_kept`: although it does not claim it.
    pub(super) fn set(
        &mut self,
        flow: &Flow,
        stack: &Arc<Claimant>,
        is_kept: bool,
    ) -> Result<(), SteeringError> {
        let id = stack.id;
        let seat = self.shared.seats.get(usize::from(id.place()));
        let seat = seat.ok_or(SteeringError::NoStack(id))?;
        seat.store(Some(Arc::clone(stack)));
        let value = u32::from(id.place()) | if is_kept { KEPT } else { 0 };
        let full = SteeringError::TooManyRedirects(self.four.capacity());
        match Key::of(flow).ok_or(SteeringError::NoFlow)? {
            Key::V4(key) => self.four.insert(&key, value).map_err(|_| full)?,
            Key::V6(key) => self.six.insert(&key, value).map_err(|_| full)?,
        };
        match self.by_flow.insert(*flow, (id, is_kept)) {
            Some((before, _)) => self.leave(before, flow),
            None => *self.by_port.entry(flow.local.port()).or_default() += 1,
        }
        self.by_stack.entry(id).or_default().insert(*flow);
        self.shared.count.store(self.by_flow.len(), Ordering::Relaxed);
        Ok(())
    }

    /// A flow is again whose leases and listeners say. Gives whose it was.
    pub(super) fn end(&mut self, flow: &Flow) -> Option<StackId> {
        let (id, _) = self.by_flow.remove(flow)?;
        match Key::of(flow)? {
            Key::V4(key) => self.four.remove(&key),
            Key::V6(key) => self.six.remove(&key),
        };
        self.leave(id, flow);
        let port = flow.local.port();
        if let Some(flows) = self.by_port.get_mut(&port) {
            *flows = flows.saturating_sub(1);
            if *flows == 0 {
                self.by_port.remove(&port);
            }
        }
        self.shared.count.store(self.by_flow.len(), Ordering::Relaxed);
        Some(id)
    }

    /// A stack has ended, and its place will be another's.
    pub(super) fn forget(&mut self, id: StackId) {
        let flows: Vec<Flow> = self.of(id).copied().collect();
        for flow in &flows {
            self.end(flow);
        }
        if let Some(seat) = self.shared.seats.get(usize::from(id.place())) {
            seat.store(None);
        }
    }

    fn leave(&mut self, id: StackId, flow: &Flow) {
        if let Some(flows) = self.by_stack.get_mut(&id) {
            flows.remove(flow);
            if flows.is_empty() {
                self.by_stack.remove(&id);
            }
        }
    }
}

impl RedirectReader {
    /// Whose a flow is.
    #[inline]
    pub(super) fn find(&self, flow: &Flow) -> Option<StackId> {
        self.look(flow, |stack, _| stack.id)
    }

    /// The same, and whether that stack has the flow's connection: it keeps or claims it.
    #[inline]
    pub(super) fn find_holder(&self, flow: &Flow) -> Option<(StackId, bool)> {
        self.look(flow, |stack, is_kept| (stack.id, is_kept || stack.claims(flow)))
    }

    #[inline]
    fn look<R>(&self, flow: &Flow, tell: impl FnOnce(&Claimant, bool) -> R) -> Option<R> {
        if self.shared.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.look_up(flow, tell)
    }

    #[inline(never)]
    fn look_up<R>(&self, flow: &Flow, tell: impl FnOnce(&Claimant, bool) -> R) -> Option<R> {
        let value = match Key::of(flow)? {
            Key::V4(key) => self.four.lookup(&key),
            Key::V6(key) => self.six.lookup(&key),
        };
        // NO_FLOW is no place.
        let seat = self.shared.seats.get(usize::try_from(value & !KEPT).ok()?)?.load();
        seat.as_deref().map(|stack| tell(stack, value & KEPT != 0))
    }
}
