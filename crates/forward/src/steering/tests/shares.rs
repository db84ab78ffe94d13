//! Buckets follow weights, and change hands only where they must.

use proptest::prelude::*;

use super::super::buckets::{BUCKETS, assign, targets};
use super::*;

proptest! {
    #[test]
    fn only_buckets_that_must_change_hands_do(
        weights in prop::collection::vec(0..6u8, 0..12),
        owners in prop::collection::vec(prop::option::of(0..12usize), BUCKETS),
    ) {
        let mut owners: [Option<usize>; BUCKETS] = owners.try_into().unwrap();
        owners.iter_mut().for_each(|owner| *owner = owner.filter(|at| *at < weights.len()));
        let count = |owners: &[Option<usize>; BUCKETS], at| {
            owners.iter().filter(|owner| **owner == Some(at)).count()
        };
        let has: Vec<usize> = (0..weights.len()).map(|at| count(&owners, at)).collect();
        let wanted = targets(&weights, &has);
        let total: usize = wanted.iter().sum();
        prop_assert_eq!(total, if weights.is_empty() { 0 } else { BUCKETS });
        let active = weights.iter().any(|weight| *weight > 0);
        for (target, weight) in wanted.iter().zip(&weights) {
            prop_assert_eq!(*target > 0, !active || *weight > 0);
        }
        let before = owners;
        assign(&mut owners, &wanted);
        for (at, target) in wanted.iter().enumerate() {
            prop_assert_eq!(count(&owners, at), *target);
        }
        let changed = before.iter().zip(&owners).filter(|(a, b)| a.is_some() && a != b).count();
        let surplus: usize =
            has.iter().zip(&wanted).map(|(has, wanted)| has.saturating_sub(*wanted)).sum();
        prop_assert_eq!(changed, surplus);
        // Asked again, nothing moves.
        let again = owners;
        let has: Vec<usize> = (0..weights.len()).map(|at| count(&owners, at)).collect();
        assign(&mut owners, &targets(&weights, &has));
        prop_assert_eq!(owners, again);
    }

    #[test]
    fn shares_follow_weights(weights in prop::collection::vec(1..20u8, 1..20)) {
        let wanted = targets(&weights, &vec![0; weights.len()]);
        let total: usize = weights.iter().map(|weight| usize::from(*weight)).sum();
        let shared = BUCKETS - weights.len();
        for (target, weight) in wanted.iter().zip(&weights) {
            let exact = 1.0 + (shared * usize::from(*weight)) as f64 / total as f64;
            prop_assert!((*target as f64 - exact).abs() < 1.0, "{} for {}", target, exact);
        }
    }
}

#[test]
fn new_flows_are_for_members_that_are_not_busy_as_long_as_some_are_not() {
    let mut steering = steering();
    let at = bind("0.0.0.0", 80);
    let [one, two, keeper] = [1, 2, 0].map(|weight| {
        let id = stack(&mut steering).0;
        steering.listen(id, at, weight).unwrap();
        id
    });
    let listener = steering.listeners().next().unwrap().id;
    let others = |steering: &Steering| steering.others(listener).collect::<Vec<_>>();
    assert!(steering.is_taken(&at) && !steering.is_taken(&bind("0.0.0.0", 81)));
    assert_eq!(others(&steering), [keeper]);
    steering.set_busy(listener, two, true);
    assert_eq!(buckets(&steering), [256, 0, 0]);
    assert_eq!(others(&steering), [two, keeper]);
    assert!(steering.accepts(listener, one) && !steering.accepts(listener, two));
    let flow = flow(Tcp, "10.0.0.1:80", "192.0.2.7:7");
    assert_eq!(steering.successor(listener, keeper, &flow), Some(one));
    // All that take any: they share them as before, and who only keeps the listener open gets none.
    steering.set_busy(listener, one, true);
    assert!(!steering.is_taken(&at));
    assert_eq!(buckets(&steering)[2], 0);
    assert!(buckets(&steering)[1] > buckets(&steering)[0]);
    assert_eq!(others(&steering), [one, two, keeper]);
    // Another weight leaves it busy.
    steering.listen(two, at, 3).unwrap();
    steering.set_busy(listener, one, false);
    assert_eq!(buckets(&steering), [256, 0, 0]);
    steering.set_busy(listener, two, false);
    assert_eq!(steering.successor(listener, one, &flow), Some(two));
}
