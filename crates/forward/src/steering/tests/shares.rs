//! Buckets follow weights, and change hands only where they must.

use proptest::prelude::*;

use super::super::buckets::{BUCKETS, assign, targets};

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
