//! The known word that a mistyped one is nearest to.

/// The nearest of `known`, when it is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(far, candidate)| *far <= most && *far < candidate.chars().count())
        .min_by_key(|(far, _)| *far)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between the two (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    /// Beyond that no two words are near.
    const LONGEST: usize = 64;
    let b: Vec<char> = b.chars().take(LONGEST).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(LONGEST).enumerate() {
        let mut before = i;
        let mut left = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(LONGEST);
            let cost = (before + usize::from(x != *y)).min(above + 1).min(left + 1);
            before = above;
            if let Some(cell) = row.get_mut(j) {
                *cell = left;
            }
            left = cost;
        }
        if let Some(cell) = row.last_mut() {
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("mtu", "mtu"), 0);
        assert_eq!(distance("mut", "mtu"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }

    #[test]
    fn near_enough_only() {
        assert_eq!(nearest("rx_queues", ["tx-queues", "rx-queues"]), Some("rx-queues"));
        assert_eq!(nearest("colour", ["mtu", "mac"]), None);
    }
}
