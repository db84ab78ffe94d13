//! Slots of an ECMP group by weight. When members come and go, as few slots as possible move, so
//! that as few flows as possible change their path.

use crate::state::GROUP_SLOTS;

/// A slot that no member has yet.
pub(super) const EMPTY: u32 = u32::MAX;

/// Gives each member (next hop, weight) its share of the slots.
///
/// Slots of members that left go to those that have least for their weight, and no other slot
/// moves; a member that came takes slots from those that have most. Each member gets at least one
/// slot. With no members nothing changes.
pub(super) fn fill(slots: &mut [u32; GROUP_SLOTS], members: &[(u32, u32)]) {
    let total: i64 = members.iter().map(|(_, weight)| i64::from(*weight)).sum();
    if members.is_empty() || members.len() > GROUP_SLOTS || total == 0 {
        return;
    }
    let place = |hop: u32| members.iter().position(|(member, _)| *member == hop);
    let mut shares: Vec<Share> =
        members.iter().map(|(_, weight)| Share { weight: i64::from(*weight), slots: 0 }).collect();
    for slot in slots.iter_mut() {
        match place(*slot).and_then(|at| shares.get_mut(at)) {
            Some(share) => share.slots += 1,
            None => *slot = EMPTY,
        }
    }
    for slot in slots.iter_mut().filter(|slot| **slot == EMPTY) {
        if let Some((at, share)) = poorest(&mut shares, total) {
            share.slots += 1;
            *slot = members[at].0;
        }
    }
    while let Some((giver, taker)) = unfair(&shares, total) {
        let Some(slot) = slots.iter_mut().rev().find(|slot| **slot == members[giver].0) else {
            return;
        };
        *slot = members[taker].0;
        shares[giver].slots -= 1;
        shares[taker].slots += 1;
    }
}

struct Share {
    weight: i64,
    slots: i64,
}

impl Share {
    /// Slots missing to the exact share, times the total weight.
    fn deficit(&self, total: i64) -> i64 {
        self.weight * GROUP_SLOTS as i64 - self.slots * total
    }
}

fn poorest(shares: &mut [Share], total: i64) -> Option<(usize, &mut Share)> {
    // `max_by_key` takes the last of equals; the first is wanted, so that the order is the members'.
    shares.iter_mut().enumerate().rev().max_by_key(|(_, share)| share.deficit(total))
}

/// A member with too many slots and one with too few: a whole slot away from the exact share, or
/// none at all.
fn unfair(shares: &[Share], total: i64) -> Option<(usize, usize)> {
    let (taker, poor) = shares
        .iter()
        .enumerate()
        .max_by_key(|(_, share)| (share.slots == 0, share.deficit(total)))?;
    let (giver, rich) = shares
        .iter()
        .enumerate()
        .filter(|(_, share)| share.slots > 1)
        .min_by_key(|(_, share)| share.deficit(total))?;
    let starved = poor.slots == 0;
    let apart = poor.deficit(total) >= total && rich.deficit(total) < 0;
    let surplus = rich.deficit(total) <= -total && poor.deficit(total) > 0;
    (giver != taker && (starved || apart || surplus)).then_some((giver, taker))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(slots: &[u32; GROUP_SLOTS], hop: u32) -> usize {
        slots.iter().filter(|slot| **slot == hop).count()
    }

    fn moved(before: &[u32; GROUP_SLOTS], after: &[u32; GROUP_SLOTS]) -> usize {
        before.iter().zip(after).filter(|(a, b)| a != b).count()
    }

    #[test]
    fn shares_follow_weights() {
        let mut slots = [EMPTY; GROUP_SLOTS];
        fill(&mut slots, &[(16, 1), (17, 2), (18, 1)]);
        assert_eq!([16, 17, 18].map(|hop| count(&slots, hop)), [16, 32, 16]);
        let mut slots = [EMPTY; GROUP_SLOTS];
        fill(&mut slots, &[(16, 255), (17, 1)]);
        assert_eq!([16, 17].map(|hop| count(&slots, hop)), [63, 1]);
    }

    #[test]
    fn only_slots_of_a_member_that_left_move_and_it_gets_no_more_than_its_share_back() {
        // With one weight it is exact, with several where each has slots enough.
        for (exact, weights) in [(64, 1), (8, 3)] {
            for members in 2..=64_u32 {
                let all: Vec<_> = (0..members).map(|n| (100 + n, 1 + n % weights)).collect();
                let mut slots = [EMPTY; GROUP_SLOTS];
                fill(&mut slots, &all);
                for gone in 0..members {
                    let had = count(&slots, 100 + gone);
                    assert!(had > 0);
                    let rest: Vec<_> =
                        all.iter().copied().filter(|(hop, _)| *hop != 100 + gone).collect();
                    let mut without = slots;
                    fill(&mut without, &rest);
                    assert_eq!(count(&without, 100 + gone), 0);
                    if members <= exact {
                        assert_eq!(moved(&slots, &without), had, "{members} members, {gone} left");
                    }
                    let mut back = without;
                    fill(&mut back, &all);
                    assert_eq!(
                        moved(&without, &back),
                        count(&back, 100 + gone),
                        "{members}, {gone}"
                    );
                }
            }
        }
    }

    #[test]
    fn nobody_stays_without_a_slot() {
        let mut members: Vec<_> = (0..64).map(|n| (n, 1)).collect();
        members[0].1 = 200;
        let mut slots = [EMPTY; GROUP_SLOTS];
        fill(&mut slots, &members);
        assert!((0..64).all(|hop| count(&slots, hop) == 1));
    }
}
