//! Who gets which of a listener's buckets.

use std::cmp::Reverse;

/// Buckets of a listener: the resolution of weights, and the most members that each get one.
pub(super) const BUCKETS: usize = 256;

/// How many buckets each member gets, by weight: none with weight 0 unless all have it, then all the same; at least one
/// each otherwise. What does not come out even goes to those that miss most, and among equals to who `has` one more to
/// keep, so that less moves.
pub(super) fn targets(weights: &[u8], has: &[usize]) -> Vec<usize> {
    let all_stand_by = weights.iter().all(|weight| *weight == 0);
    let weight = |weight: u8| if all_stand_by { 1 } else { usize::from(weight) };
    let weights: Vec<usize> = weights.iter().map(|known| weight(*known)).collect();
    let total: usize = weights.iter().sum();
    let takers = weights.iter().filter(|weight| **weight > 0).count();
    if total == 0 || takers > BUCKETS {
        return vec![0; weights.len()];
    }
    let shared = BUCKETS - takers;
    let mut targets: Vec<usize> =
        weights.iter().map(|weight| usize::from(*weight > 0) + shared * weight / total).collect();
    let missing = BUCKETS - targets.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..weights.len()).filter(|at| weights[*at] > 0).collect();
    order.sort_by_key(|at| {
        let rest = shared * weights[*at] % total;
        let keeps_one_more = has.get(*at) > targets.get(*at);
        (Reverse(rest), Reverse(keeps_one_more), *at)
    });
    for at in order.into_iter().take(missing) {
        targets[at] += 1;
    }
    targets
}

/// Gives each member its number of buckets: those that it has stay, as far as it may keep them, and no other changes hands
/// without need. `owners`: the member of each bucket, if it still is one; `targets` sum up to all buckets, or to 0 when
/// there is no member.
pub(super) fn assign(owners: &mut [Option<usize>; BUCKETS], targets: &[usize]) {
    let mut left = targets.to_vec();
    for owner in owners.iter_mut() {
        let room = owner.and_then(|at| left.get_mut(at)).filter(|room| **room > 0);
        match room {
            Some(room) => *room -= 1,
            None => *owner = None,
        }
    }
    let mut takers = left.iter_mut().enumerate().filter(|(_, room)| **room > 0).peekable();
    // Turn by turn, so that a member that comes does not get one stretch only.
    let mut queue: Vec<(usize, usize)> = takers.by_ref().map(|(at, room)| (at, *room)).collect();
    let mut turn = 0;
    for owner in owners.iter_mut().filter(|owner| owner.is_none()) {
        if queue.is_empty() {
            break;
        }
        turn %= queue.len();
        let (at, room) = &mut queue[turn];
        *owner = Some(*at);
        *room -= 1;
        if *room == 0 {
            queue.remove(turn);
        } else {
            turn += 1;
        }
    }
}
