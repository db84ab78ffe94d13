//! Whose turn it is: users take turns, and the stacks of each.
//!
//! A user whose stacks send what they may not owes for it ([`bounds`](super::bounds)), and pays in the rounds after. Until then a
//! worker does not look at those stacks of it, the *fined* ones, whatever is in their rings; so what is refused takes no more
//! than a part of its time, from however many stacks it comes. Other stacks of the user are looked at as ever.

use std::collections::VecDeque;

use super::bounds::{LOOKS, MOST, SPARE};
use crate::ClientPace;

/// A user's stacks on this worker.
#[derive(Debug)]
struct User {
    /// All its stacks have the same.
    pace: ClientPace,
    /// Places of those that send what they may, in the order of their turns, and of the others.
    free: VecDeque<u16>,
    fined: VecDeque<u16>,
    /// Whose turn comes first.
    fined_first: bool,
    /// When all is paid, by [`Users::paid`].
    owes_until: u64,
}

impl User {
    fn has_none(&self) -> bool {
        self.free.is_empty() && self.fined.is_empty()
    }

    fn forget(&mut self, place: u16) {
        self.free.retain(|known| *known != place);
        self.fined.retain(|known| *known != place);
    }

    /// Looks at so many of its stacks at most. Gives how much was found, and at how many it looked.
    fn visit(
        &mut self,
        most: usize,
        (paid, spare): (u64, &mut i32),
        mut look: impl FnMut(u16, &mut i32) -> usize,
    ) -> (usize, usize) {
        self.fined_first = !self.fined_first;
        let (mut found, mut looks) = (0, 0);
        for fined in [self.fined_first, !self.fined_first] {
            if fined && self.owes_until > paid {
                // The worker does not sleep before all is paid.
                found += usize::from(!self.fined.is_empty());
                continue;
            }
            let list = if fined { &mut self.fined } else { &mut self.free };
            let mut served = 0;
            for at in 0..list.len().min(most - looks) {
                let has = *spare > 0;
                // One that is fined has nothing else to send with.
                let Some(place) = list.get(at).filter(|_| has || !fined) else { break };
                found += look(*place, spare);
                looks += 1;
                // Whoever comes first has had its turn.
                served += usize::from(*spare > 0 || has && at == 0);
            }
            // Who got nothing of what all share, or the rest of it, gets it first.
            list.rotate_left(served);
        }
        (found, looks)
    }
}

/// The users of a worker's stacks.
#[derive(Debug, Default)]
pub(super) struct Users {
    list: Vec<User>,
    /// The user that may send first.
    first: usize,
    /// Slots that each user could have paid so far.
    paid: u64,
}

impl Users {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A stack comes; `pace` says of which user.
    pub(super) fn add(&mut self, pace: &ClientPace, place: u16) {
        if let Some(user) = self.list.iter_mut().find(|user| user.pace.is_same(pace)) {
            user.free.push_back(place);
            return;
        }
        self.list.push(User {
            pace: pace.clone(),
            free: VecDeque::from([place]),
            fined: VecDeque::new(),
            fined_first: false,
            owes_until: 0,
        });
    }

    /// A stack goes.
    pub(super) fn remove(&mut self, pace: &ClientPace, place: u16) {
        let user = self.list.iter_mut().find(|user| user.pace.is_same(pace));
        user.into_iter().for_each(|user| user.forget(place));
        self.list.retain(|user| !user.has_none());
    }

    /// A round: `look` asks a stack, by the places of its user and its own, what it has to send, and takes from the slots that
    /// all share; it gives how much there was. `all`: the worker is about to sleep. Gives how much there was of all.
    pub(super) fn visit(
        &mut self,
        all: bool,
        mut look: impl FnMut(usize, u16, &mut i32) -> usize,
    ) -> usize {
        self.paid += SPARE as u64;
        let count = self.list.len();
        let (mut found, mut spare, mut served) = (0, SPARE, None);
        let (mut asked, mut left) = (0, LOOKS);
        while asked < count && (all || left > 0) {
            let place = (self.first + asked) % count;
            // Those that come after it get their part.
            let most = if all { usize::MAX } else { left.div_ceil(count - asked) };
            let Some(user) = self.list.get_mut(place) else { break };
            let means = (self.paid, &mut spare);
            let (had, looks) = user.visit(most, means, |at, spare| look(place, at, spare));
            found += had;
            left = left.saturating_sub(looks.max(1));
            if spare == 0 && served.is_none() {
                // Whoever comes first has had its turn.
                served = Some(asked.max(1));
            }
            asked += 1;
        }
        // Who got nothing of what all share, or the rest of it, gets it first.
        let turns = served.unwrap_or(if asked < count { asked } else { 1 });
        self.first = (self.first + turns) % count.max(1);
        found
    }

    /// A user owes that much more.
    pub(super) fn charge(&mut self, user: usize, slots: i32) {
        if let Some(user) = self.list.get_mut(user).filter(|_| slots > 0) {
            let owed = user.owes_until.saturating_sub(self.paid) + u64::from(slots.unsigned_abs());
            user.owes_until = self.paid + owed.min(MOST as u64);
        }
    }

    /// A stack is fined from now on, or no longer.
    pub(super) fn judge(&mut self, user: usize, place: u16, fined: bool) {
        let Some(user) = self.list.get_mut(user) else { return };
        let User { free, fined: others, .. } = user;
        let (from, to) = if fined { (free, others) } else { (others, free) };
        // It was looked at just now, and so stands near the end.
        let at = from.iter().rposition(|known| *known == place);
        to.extend(at.and_then(|at| from.remove(at)));
    }
}

#[cfg(test)]
mod tests;
