//! What is served: listeners as the control thread keeps them and as workers see them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use graph::StackId;
use shm::claims::{ClaimsReader, tag};

use super::buckets::{BUCKETS, assign, targets};
use super::{Bind, Flow, ListenerId, SteeringError};

/// Root's user number.
pub(super) const ROOT: u32 = 0;

/// Earlier members that a bucket remembers: each may cost a look into its memory.
const EARLIER: usize = 32;

/// A stack whose flows are looked up.
#[derive(Debug)]
pub(super) struct Claimant {
    pub(super) id: StackId,
    pub(super) user: u32,
    pub(super) process: u32,
    pub(super) claims: ClaimsReader,
    pub(super) key: [u64; 2],
}

impl Claimant {
    #[inline]
    pub(super) fn claims(&self, flow: &Flow) -> bool {
        self.claims.contains(tag(self.key, flow.protocol, flow.local, flow.remote))
    }
}

/// A bucket as workers see it.
#[derive(Debug, Default)]
struct Bucket {
    now: Option<Arc<Claimant>>,
    earlier: Box<[Arc<Claimant>]>,
}

/// A listener as workers see it; replaced as a whole.
#[derive(Debug)]
pub(super) struct Listener {
    buckets: Box<[Bucket]>,
    /// Stacks that may send from here, in order.
    senders: Box<[StackId]>,
    /// Nobody serves here at the moment, and somebody may.
    pub(super) is_vacant: bool,
}

impl Listener {
    fn bucket(&self, hash: u32) -> Option<&Bucket> {
        self.buckets.get(hash as usize % BUCKETS)
    }

    /// Who gets a new flow.
    #[inline]
    pub(super) fn member(&self, hash: u32) -> Option<StackId> {
        Some(self.bucket(hash)?.now.as_ref()?.id)
    }

    /// Whether a flow has been taken by another stack than `id`.
    pub(super) fn is_anothers(&self, hash: u32, flow: &Flow, id: StackId) -> Option<StackId> {
        let bucket = self.bucket(hash)?;
        let all = bucket.earlier.iter().chain(&bucket.now);
        let mut others = all.filter(|stack| stack.id != id);
        others.find(|stack| stack.claims(flow)).map(|stack| stack.id)
    }

    /// Who has the flow already, as far as it has been somebody else's than the member's of now; with `all`, the member
    /// of now is asked too.
    #[inline]
    pub(super) fn claimant(&self, hash: u32, flow: &Flow, all: bool) -> Option<StackId> {
        let bucket = self.bucket(hash)?;
        let now = bucket.now.iter().filter(|_| all);
        let found = bucket.earlier.iter().chain(now).find(|stack| stack.claims(flow));
        found.map(|stack| stack.id)
    }

    #[inline]
    pub(super) fn lets_send(&self, id: StackId) -> bool {
        self.senders.binary_search(&id).is_ok()
    }
}

/// A bucket as the control thread keeps it.
#[derive(Debug, Clone, Default)]
struct Tenure {
    now: Option<Arc<Claimant>>,
    /// The earliest first.
    earlier: Vec<Arc<Claimant>>,
}

/// A member of a listener.
#[derive(Debug)]
struct Member {
    stack: Arc<Claimant>,
    weight: u8,
    /// It gets new flows only while all that have a weight are busy.
    busy: bool,
}

impl Member {
    /// Its share of new flows, as long as some are not busy.
    fn share(&self) -> u8 {
        if self.busy { 0 } else { self.weight }
    }
}

/// A listener as the control thread keeps it.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) bind: Bind,
    members: Vec<Member>,
    buckets: Vec<Tenure>,
    /// In whose name each stack serves that is or was a member: its user's, or root's if root served when it came, since root
    /// hands sockets to other users' processes.
    owners: BTreeMap<StackId, u32>,
    /// Its last member has gone, and a process has the socket still.
    is_vacant: bool,
}

impl Group {
    pub(super) fn new(bind: Bind) -> Self {
        Self {
            bind,
            members: Vec::new(),
            buckets: vec![Tenure::default(); BUCKETS],
            owners: BTreeMap::new(),
            is_vacant: false,
        }
    }

    /// In whose name a stack serves.
    pub(super) fn owner(&self, id: StackId) -> Option<u32> {
        self.owners.get(&id).copied()
    }

    /// Whether it is vacant, or will be when that process ends: nobody else is a member.
    pub(super) fn is_alone(&self, process: u32) -> bool {
        self.members.iter().all(|member| member.stack.process == process)
    }

    pub(super) fn set_vacant(&mut self, is_vacant: bool) {
        self.is_vacant = is_vacant;
    }

    /// Whether nobody serves, and somebody may.
    pub(super) fn is_vacant(&self) -> bool {
        self.is_vacant && self.members.is_empty()
    }

    /// Whether all that are or were members are of that process, and nobody else may become one.
    pub(super) fn is_of(&self, process: u32) -> bool {
        if self.is_vacant() {
            return false;
        }
        let earlier = self.buckets.iter().flat_map(|bucket| &bucket.earlier);
        let mut all = self.members.iter().map(|member| &member.stack).chain(earlier);
        all.all(|stack| stack.process == process)
    }

    /// A member that takes new flows, but `id`: the one that would get this flow, if it is another.
    pub(super) fn successor(&self, hash: u32, id: StackId) -> Option<StackId> {
        let bucket = self.buckets.get(hash as usize % BUCKETS);
        let natural = bucket.and_then(|bucket| bucket.now.as_ref()).map(|stack| stack.id);
        let others = self.members.iter().filter(|member| member.stack.id != id);
        let key = |member: &&Member| (member.share(), member.weight);
        let heaviest = others.max_by_key(key).map(|member| member.stack.id);
        natural.filter(|natural| *natural != id).or(heaviest)
    }

    /// Whether a stack is a member.
    pub(super) fn has(&self, id: StackId) -> bool {
        self.members.iter().any(|member| member.stack.id == id)
    }

    /// Whether a member gets a share of new flows.
    pub(super) fn accepts(&self, id: StackId) -> bool {
        self.members.iter().any(|member| member.stack.id == id && member.share() > 0)
    }

    /// Whether some member does.
    pub(super) fn is_taken(&self) -> bool {
        self.members.iter().any(|member| member.share() > 0)
    }

    /// Whether any member gets a share of new flows, not only stands by.
    pub(super) fn takes_flows(&self) -> bool {
        self.members.iter().any(|member| member.weight > 0)
    }

    /// Those that stand by, or are busy.
    pub(super) fn others(&self) -> impl Iterator<Item = StackId> {
        self.members.iter().filter(|member| member.share() == 0).map(|member| member.stack.id)
    }

    /// A member is busy, or no longer. Gives whether anything has changed.
    pub(super) fn set_busy(&mut self, id: StackId, busy: bool) -> bool {
        let mut members = self.members.iter_mut();
        let Some(member) = members.find(|member| member.stack.id == id && member.busy != busy)
        else {
            return false;
        };
        member.busy = busy;
        self.share_out();
        true
    }

    pub(super) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Whether nobody takes new flows, and nobody may have old ones.
    pub(super) fn is_over(&self) -> bool {
        self.members.is_empty()
            && !self.is_vacant
            && self.buckets.iter().all(|bucket| bucket.earlier.is_empty())
    }

    /// A member comes, or gets another weight. Gives whether anything has changed.
    pub(super) fn join(
        &mut self,
        stack: &Arc<Claimant>,
        weight: u8,
    ) -> Result<bool, SteeringError> {
        let full = self.members.len() >= BUCKETS;
        match self.members.iter_mut().find(|member| member.stack.id == stack.id) {
            Some(member) if member.weight == weight => return Ok(false),
            Some(member) => member.weight = weight,
            None if full => return Err(SteeringError::TooManyMembers(BUCKETS)),
            None => {
                let root = self.members.iter().any(|member| member.stack.user == ROOT);
                self.owners.insert(stack.id, if root { ROOT } else { stack.user });
                self.is_vacant = false;
                self.members.push(Member { stack: Arc::clone(stack), weight, busy: false });
            }
        }
        self.share_out();
        Ok(true)
    }

    /// A member takes no new flows any more; it keeps what it has. Gives whether it was one.
    pub(super) fn leave(&mut self, id: StackId) -> bool {
        let before = self.members.len();
        self.members.retain(|member| member.stack.id != id);
        let left = self.members.len() < before;
        if left {
            self.share_out();
        }
        left
    }

    /// A stack has ended.
    pub(super) fn forget(&mut self, id: StackId) {
        self.leave(id);
        self.owners.remove(&id);
        for bucket in &mut self.buckets {
            bucket.earlier.retain(|stack| stack.id != id);
        }
    }

    /// Forgets stacks that are no members any more and of another owner than this stack, which serves the same port. Root's
    /// stay: root may have all packets anyway. Gives those that were forgotten.
    pub(super) fn forget_others_than(&mut self, stack: &Claimant, owner: u32) -> Vec<StackId> {
        let members: BTreeSet<StackId> =
            self.members.iter().map(|member| member.stack.id).collect();
        let may_stay = |known: &Claimant| {
            let of = self.owners.get(&known.id).copied().unwrap_or(known.user);
            of == owner || [ROOT, stack.user].contains(&known.user) || members.contains(&known.id)
        };
        let earlier = self.buckets.iter().flat_map(|bucket| &bucket.earlier);
        let others: BTreeSet<StackId> =
            earlier.filter(|known| !may_stay(known)).map(|known| known.id).collect();
        self.owners.retain(|id, _| !others.contains(id));
        for bucket in &mut self.buckets {
            bucket.earlier.retain(|stack| !others.contains(&stack.id));
        }
        others.into_iter().collect()
    }

    /// Gives the buckets to the members of now.
    fn share_out(&mut self) {
        let place = |stack: &Arc<Claimant>| {
            self.members.iter().position(|member| member.stack.id == stack.id)
        };
        let mut owners = [None; BUCKETS];
        for (owner, bucket) in owners.iter_mut().zip(&self.buckets) {
            *owner = bucket.now.as_ref().and_then(place);
        }
        let has: Vec<usize> = (0..self.members.len())
            .map(|at| owners.iter().filter(|owner| **owner == Some(at)).count())
            .collect();
        let weight = if self.is_taken() { Member::share } else { |member: &Member| member.weight };
        let weights: Vec<u8> = self.members.iter().map(weight).collect();
        assign(&mut owners, &targets(&weights, &has));
        for (owner, bucket) in owners.iter().zip(&mut self.buckets) {
            let next = owner.and_then(|at| self.members.get(at)).map(|member| &member.stack);
            bucket.pass_to(next);
        }
    }

    /// As workers are to see it.
    pub(super) fn publish(&self) -> Listener {
        let bucket = |tenure: &Tenure| Bucket {
            now: tenure.now.clone(),
            earlier: tenure.earlier.clone().into_boxed_slice(),
        };
        let earlier = self.buckets.iter().flat_map(|bucket| &bucket.earlier).map(|stack| stack.id);
        let mut senders: Vec<StackId> =
            self.members.iter().map(|member| member.stack.id).chain(earlier).collect();
        senders.sort_unstable();
        senders.dedup();
        Listener {
            buckets: self.buckets.iter().map(bucket).collect(),
            senders: senders.into_boxed_slice(),
            is_vacant: self.is_vacant(),
        }
    }

    pub(super) fn view(&self, id: ListenerId) -> ListenerView {
        let mut buckets: BTreeMap<StackId, usize> =
            self.members.iter().map(|member| (member.stack.id, 0)).collect();
        for now in self.buckets.iter().filter_map(|bucket| bucket.now.as_ref()) {
            if let Some(count) = buckets.get_mut(&now.id) {
                *count += 1;
            }
        }
        let member = |member: &Member| MemberView {
            stack: member.stack.id,
            weight: member.weight,
            buckets: buckets.get(&member.stack.id).copied().unwrap_or(0),
        };
        let mut earlier: Vec<StackId> = self
            .buckets
            .iter()
            .flat_map(|bucket| &bucket.earlier)
            .map(|stack| stack.id)
            .filter(|stack| !buckets.contains_key(stack))
            .collect();
        earlier.sort_unstable();
        earlier.dedup();
        ListenerView {
            id,
            bind: self.bind,
            members: self.members.iter().map(member).collect(),
            earlier,
        }
    }
}

impl Tenure {
    fn pass_to(&mut self, next: Option<&Arc<Claimant>>) {
        let same = |stack: &Arc<Claimant>| next.is_some_and(|next| next.id == stack.id);
        if self.now.is_none() && next.is_none() || self.now.as_ref().is_some_and(same) {
            return;
        }
        self.earlier.retain(|stack| !same(stack));
        if let Some(before) = self.now.take() {
            if self.earlier.len() >= EARLIER {
                self.earlier.remove(0);
            }
            self.earlier.push(before);
        }
        self.now = next.map(Arc::clone);
    }
}

/// A listener, for people and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerView {
    /// Its number.
    pub id: ListenerId,
    /// What it is bound to.
    pub bind: Bind,
    /// Who shares its new flows.
    pub members: Vec<MemberView>,
    /// Stacks that take no new flows of it and may have old ones.
    pub earlier: Vec<StackId>,
}

/// A member of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// The stack.
    pub stack: StackId,
    /// Its share of new flows; 0: stand-by.
    pub weight: u8,
    /// Its buckets, of 256.
    pub buckets: usize,
}
