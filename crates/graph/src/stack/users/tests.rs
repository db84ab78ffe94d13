use std::collections::BTreeSet;

use super::*;

/// A round in which every stack takes `each` of the slots that all share, as far as there are. Gives the stacks that were looked
/// at, and how many slots each took.
fn round(users: &mut Users, all: bool, each: i32) -> Vec<(u16, i32)> {
    let mut looked = Vec::new();
    users.visit(all, |_, place, spare| {
        let taken = each.min(*spare);
        *spare -= taken;
        looked.push((place, taken));
        taken as usize
    });
    looked
}

fn places(users: &mut Users) -> Vec<u16> {
    round(users, false, 0).into_iter().map(|(place, _)| place).collect()
}

/// Users that have so many stacks each.
fn users(stacks: &[u16]) -> (Users, Vec<ClientPace>) {
    let (mut users, mut next) = (Users::default(), 0_u16);
    let paces = stacks.iter().map(|&count| {
        let pace = ClientPace::default();
        (next..next + count).for_each(|place| users.add(&pace, place));
        next += count;
        pace
    });
    let paces = paces.collect();
    (users, paces)
}

#[test]
fn a_user_with_many_stacks_leaves_others_their_looks() {
    let (mut users, _) = users(&[256, 1]);
    let mut seen = BTreeSet::new();
    for _ in 0..2 * 256 / LOOKS {
        let looked = places(&mut users);
        assert!(looked.contains(&256) && looked.len() <= LOOKS, "{looked:?}");
        seen.extend(looked);
    }
    assert_eq!(seen.len(), 257);
    assert_eq!(round(&mut users, true, 0).len(), 257, "before sleep");
}

#[test]
fn users_get_as_much_whatever_stacks_they_have() {
    let (mut users, _) = users(&[40, 1, 2]);
    let mut taken = [0; 43];
    for _ in 0..3 * 40 {
        for (place, slots) in round(&mut users, false, SPARE) {
            taken[usize::from(place)] += slots;
        }
    }
    // 40 times each, and the stacks of each in turn.
    assert_eq!(taken[..40], [SPARE; 40]);
    assert_eq!(taken[40..], [40 * SPARE, 20 * SPARE, 20 * SPARE]);
}

#[test]
fn who_leaves_a_little_of_what_all_share_does_not_keep_others_from_the_rest() {
    // Two users, and two stacks of one.
    for stacks in [&[1, 1][..], &[2]] {
        let (mut users, _) = users(stacks);
        let mut taken = [0; 2];
        for _ in 0..100 {
            users.visit(false, |_, place, spare| {
                let most = if place == 0 { SPARE - 1 } else { SPARE };
                let slots = most.min(*spare);
                *spare -= slots;
                taken[usize::from(place)] += slots;
                slots as usize
            });
        }
        assert_eq!(taken, [50 * (SPARE - 1), 50 * (SPARE + 1)]);
    }
}

#[test]
fn of_many_users_each_has_its_turn() {
    let (mut users, _) = users(&[1; 40]);
    let rounds: Vec<_> = (0..5).map(|_| places(&mut users)).collect();
    assert!(rounds.iter().all(|looked| looked.len() == LOOKS));
    let looked: Vec<u16> = rounds.concat();
    assert_eq!(looked, (0..40).cycle().take(5 * LOOKS).collect::<Vec<u16>>());
}

#[test]
fn those_that_are_fined_wait_until_their_user_has_paid_and_no_others_do() {
    let (mut users, _) = users(&[3, 1]);
    let (all, others) = (BTreeSet::from([0, 1, 2, 3]), BTreeSet::from([0, 2, 3]));
    let seen = |users: &mut Users| BTreeSet::from_iter(places(users));
    assert_eq!(seen(&mut users), all);
    users.judge(0, 1, true);
    users.charge(0, 9 * SPARE);
    users.charge(0, SPARE);
    for _ in 0..8 {
        assert_eq!(seen(&mut users), others);
    }
    assert_eq!(users.visit(true, |_, _, _| 0), 1, "the worker does not sleep meanwhile");
    assert_eq!(seen(&mut users), all);
    assert_eq!(users.visit(true, |_, _, _| 0), 0);
    // It is a stack like others again.
    users.judge(0, 1, false);
    (0..3).for_each(|_| users.charge(0, i32::MAX));
    assert_eq!(seen(&mut users), all);
    users.judge(0, 1, true);
    let waited = (0..).find(|_| seen(&mut users) == all);
    assert_eq!(waited, Some(MOST / SPARE - 2), "no more is owed than the most");
}

#[test]
fn stacks_that_are_fined_do_not_take_all_turns_of_their_user() {
    let (mut users, _) = users(&[40]);
    (0..20).for_each(|place| users.judge(0, place, true));
    let looked: Vec<_> = (0..8).flat_map(|_| places(&mut users)).collect();
    assert_eq!(BTreeSet::from_iter(looked).len(), 40);
}

#[test]
fn who_has_no_stacks_left_is_forgotten() {
    let (mut users, paces) = users(&[1, 2]);
    users.remove(&paces[1], 1);
    users.judge(1, 2, true);
    assert_eq!(BTreeSet::from_iter(places(&mut users)), BTreeSet::from([0, 2]));
    users.remove(&paces[1], 2);
    users.remove(&ClientPace::default(), 0);
    assert_eq!(places(&mut users), [0]);
    users.remove(&paces[0], 0);
    assert!(users.is_empty() && places(&mut users).is_empty());
}
