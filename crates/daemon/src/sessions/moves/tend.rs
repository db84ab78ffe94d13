//! What is overdue: processes that do not give what they are asked for, offers that nobody takes, redirects that nobody needs,
//! connections in TIME-WAIT.

use std::time::{Duration, Instant};

use forward::steering::Flow;
use graph::StackId;
use shm::session::{CarrierId, Event};

use super::super::Sessions;
use super::{CLAIM, Kind, OFFER, OFFERS, Place, RECALL};

/// Between two looks at redirects.
pub(super) const SWEEP: Duration = Duration::from_secs(1);

impl Sessions {
    /// Looks for what is overdue. To be called now and then.
    pub(crate) fn tend(&mut self, now: Instant) {
        if self.returning.is_some_and(|until| now >= until) {
            self.returning = None;
            self.reserved.clear();
            self.steering.keep_quiet(false);
        }
        self.end_recalls(now);
        self.remind_earlier(now);
        self.end_offers(now);
        if self.moves.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP) {
            self.moves.swept = Some(now);
            self.sweep(now);
            self.end_waits(now);
        }
    }

    /// Who waits for a connection longer than its process may take waits in vain.
    fn end_recalls(&mut self, now: Instant) {
        let late = self.moves.named.iter().filter(|(_, named)| {
            !named.waiting.is_empty() && now.saturating_duration_since(named.since) >= RECALL
        });
        let late: Vec<CarrierId> = late.map(|(id, _)| *id).collect();
        for id in late {
            self.tell_waiting(id, Event::Lost(id));
        }
    }

    /// What a listener's member does not take is for another, or reset.
    fn end_offers(&mut self, now: Instant) {
        let (mut late, mut untold) = (Vec::new(), Vec::new());
        for (id, named) in &self.moves.named {
            let Kind::Offer { listener, to, asked, is_told } = named.kind else { continue };
            let Place::Parked(parked) = &named.place else { continue };
            let gone = !self.steering.has(to);
            // Who has closed the listener since takes none.
            let has_left = asked > 0 && !self.steering.is_member(listener, to);
            let has_come = asked == 0 && self.who_accepts(listener, to, parked.flow).is_some();
            if gone || has_left || has_come || now.saturating_duration_since(named.since) >= OFFER {
                late.push((*id, listener, (to, gone), asked, parked.flow));
            } else if asked > 0 && !is_told {
                untold.push((*id, to, listener));
            }
        }
        for (id, to, listener) in untold {
            self.tell_offered(id, to, listener);
        }
        for (id, listener, (to, gone), asked, flow) in late {
            let next = match asked {
                // Where nobody has begun to accept, it waits with whom it is for.
                0 => self.who_accepts(listener, to, flow).or((!gone).then_some(to)),
                OFFERS.. => None,
                _ => flow.and_then(|flow| self.steering.successor(listener, to, &flow)),
            };
            match next {
                Some(next) => {
                    if let Some(named) = self.moves.named.get_mut(&id) {
                        let asked = asked + 1;
                        named.kind = Kind::Offer { listener, to: next, asked, is_told: false };
                    }
                    self.offer(id, next, listener);
                }
                None => {
                    let named = self.moves.forget(id);
                    if let Some(Place::Parked(parked)) = named.map(|named| named.place) {
                        self.reset(parked);
                    }
                }
            }
        }
    }

    /// For whom a connection is that was for `to`, which did not accept any: that one, when it does now, or another.
    fn who_accepts(&self, listener: u32, to: StackId, flow: Option<Flow>) -> Option<StackId> {
        if self.steering.accepts(listener, to) {
            return Some(to);
        }
        let other = self.steering.successor(listener, to, &flow?)?;
        self.steering.accepts(listener, other).then_some(other)
    }

    /// Ends redirects of connections that their stacks have no longer.
    fn sweep(&mut self, now: Instant) {
        self.moves.withdrawn.retain(|_, at| now.saturating_duration_since(*at) < CLAIM);
        let Self { steering, moves, list, .. } = self;
        let own = moves.parking.as_ref().map(|own| own.id);
        let stacks = list.values().flat_map(|session| session.stacks.values());
        for stack in stacks.filter(|stack| Some(stack.id) != own) {
            let spare = |flow: &Flow| moves.withdrawn.contains_key(flow);
            steering.sweep_redirects(stack.id, spare);
        }
    }
}
