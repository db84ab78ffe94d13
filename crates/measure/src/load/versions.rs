//! Frames of both IP versions in one stream.

/// Parts of a share that can be told apart, and laps of a cycle after which both versions have had theirs.
const PARTS: usize = 10;
/// Has no divisor with `PARTS` in common: neighbours are of different versions where that is possible.
const STEP: usize = 3;

/// The sizes of a cycle, each with the version of its frame: `true` is IPv6, of which there are so many tenths. Each size of the
/// cycle has the same share of both.
#[must_use]
pub fn versions(cycle: &[u16], tenths: u8) -> Vec<(u16, bool)> {
    let tenths = usize::from(tenths).min(PARTS);
    if tenths % PARTS == 0 {
        return cycle.iter().map(|size| (*size, tenths > 0)).collect();
    }
    let lap = |lap: usize| {
        let places = cycle.iter().enumerate();
        places.map(move |(place, size)| (*size, (lap + place) * STEP % PARTS < tenths))
    };
    (0..PARTS).flat_map(lap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_its_share_of_both() {
        let cycle = [64, 594, 1518, 64];
        for tenths in 1..10 {
            let all = versions(&cycle, tenths);
            assert_eq!(all.len(), 40);
            for (place, size) in cycle.iter().enumerate() {
                let own: Vec<_> = all.iter().skip(place).step_by(cycle.len()).collect();
                assert!(own.iter().all(|(other, _)| other == size));
                let six = own.iter().filter(|(_, six)| *six).count();
                assert_eq!(six, usize::from(tenths), "{size}");
            }
        }
        assert_eq!(versions(&[64], 0), [(64, false)]);
        assert_eq!(versions(&[64, 128], 10), [(64, true), (128, true)]);
        // No version waits long for its turn.
        let half = versions(&[84], 5);
        assert!(half.windows(3).all(|three| three.iter().any(|(_, six)| *six)), "{half:?}");
    }
}
