//! Which result of one side belongs to which of the other.

use std::collections::BTreeMap;

use crate::archive::{Case, Cases, Results, Run};

/// One case, and what each side has of it: at least one has something.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) before: Results<'a>,
    pub(super) after: Results<'a>,
}

/// Pairs results by name, parameters, unit and yardstick. One that lacks its yardstick on the other side, where the run was made
/// without it or the best of several was another one, is paired without, if there is no choice.
pub(super) fn pairs<'a>(before: &'a [Run], after: &'a [Run]) -> Vec<Pair<'a>> {
    let (mut before, mut after) = (Cases::of(before), Cases::of(after));
    let order: Vec<Case> = before.iter().map(|(case, _)| case.clone()).collect();
    let mut found: BTreeMap<usize, Pair<'a>> = BTreeMap::new();
    for (place, case) in order.iter().enumerate() {
        if let Some(after) = after.take(case) {
            let before = before.take(case).unwrap_or_default();
            found.insert(place, Pair { before, after });
        }
    }
    let mut partners: BTreeMap<Case, Case> = BTreeMap::new();
    let others = after.alike();
    for (alike, cases) in before.alike() {
        if let ([case], Some([other])) = (cases.as_slice(), others.get(&alike).map(Vec::as_slice)) {
            partners.insert((*case).clone(), (*other).clone());
        }
    }
    for (place, case) in order.iter().enumerate() {
        if let Some(before) = before.take(case) {
            let partner = partners.get(case).and_then(|case| after.take(case));
            found.insert(place, Pair { before, after: partner.unwrap_or_default() });
        }
    }
    let rest = after.iter().map(|(_, after)| Pair { before: Vec::new(), after: after.clone() });
    found.into_values().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{entry, run};
    use super::*;

    fn counts(before: &[Run], after: &[Run]) -> Vec<(usize, usize)> {
        let pairs = pairs(before, after);
        pairs.iter().map(|pair| (pair.before.len(), pair.after.len())).collect()
    }

    #[test]
    fn results_are_paired_by_what_was_measured() {
        let small = || entry("forward", "ns", &[1.0]).parameter("flows", 1);
        let large = || entry("forward", "ns", &[1.0]).parameter("flows", 10);
        let other = || entry("forward", "packets/s", &[1.0]).parameter("flows", 1);
        let a = [run("x", [small(), large()]), run("x", [small()])];
        let b = [run("x", [other(), small()])];
        assert_eq!(counts(&a, &b), [(2, 1), (1, 0), (0, 1)]);
        assert_eq!(counts(&[], &b), [(0, 1), (0, 1)]);
        assert_eq!(counts(&a, &[]), [(2, 0), (1, 0)]);
    }

    #[test]
    fn what_was_seen_besides_does_not_part_them() {
        let with = |lost: u64| -> [Run; 1] {
            let result = serde_json::json!({"name": "x", "unit": "ns", "observed": {"lost": lost}});
            let run = serde_json::json!({"environment": {}, "results": [result]});
            [serde_json::from_value(run).unwrap()]
        };
        assert_eq!(counts(&with(0), &with(3)), [(1, 1)]);
    }

    #[test]
    fn yardsticks_tell_results_apart_where_there_are_several() {
        let beside = |yardstick| entry("segment", "cycles", &[1.0]).beside(yardstick, 1.0);
        let both = [run("x", [beside("smoltcp"), beside("lwIP")])];
        assert_eq!(counts(&both, &both), [(1, 1), (1, 1)]);
        // Without lwIP in the second run: only the first has its pair.
        let one = [run("x", [beside("smoltcp")])];
        assert_eq!(counts(&both, &one), [(1, 1), (1, 0)]);
        // The best path of the kernel was another one; or there was no yardstick.
        let (veth, loopback) = ([run("x", [beside("veth")])], [run("x", [beside("loopback")])]);
        assert_eq!(counts(&veth, &loopback), [(1, 1)]);
        assert_eq!(counts(&one, &[run("x", [entry("segment", "cycles", &[1.0])])]), [(1, 1)]);
        assert_eq!(counts(&both, &[run("x", [beside("none")])]), [(1, 0), (1, 0), (0, 1)]);
    }
}
