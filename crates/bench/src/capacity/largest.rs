//! The largest amount of work that can be done.

/// More is not asked for.
const MOST: u32 = 1 << 20;

/// The largest amount at which `passes` says so, to within a thirty-second of it; `None`: not even without work.
pub(super) fn largest<E>(mut passes: impl FnMut(u32) -> Result<bool, E>) -> Result<Option<u32>, E> {
    if !passes(0)? {
        return Ok(None);
    }
    let (mut holds, mut fails) = (0_u32, None);
    loop {
        let next = match fails {
            None if holds < MOST => (holds * 2).max(1),
            Some(fails) if fails - holds > (holds / 32).max(1) => u32::midpoint(holds, fails),
            _ => return Ok(Some(holds)),
        };
        if passes(next)? {
            holds = next;
        } else {
            fails = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_largest_is_found(limit in 0..100_000_u32) {
            let mut asked = 0;
            let found = largest(|n| { asked += 1; Ok::<_, Infallible>(n <= limit) }).unwrap().unwrap();
            prop_assert!(found <= limit && limit - found <= (found / 32).max(1), "{} {}", found, limit);
            prop_assert!(asked < 40);
        }
    }

    #[test]
    fn small_ones_are_exact_and_there_may_be_none() {
        for limit in 0..32 {
            assert_eq!(largest(|n| Ok::<_, Infallible>(n <= limit)), Ok(Some(limit)));
        }
        assert_eq!(largest(|_| Ok::<_, Infallible>(false)), Ok(None));
        assert_eq!(largest(|_| Ok::<_, Infallible>(true)), Ok(Some(MOST)));
        assert_eq!(largest(|n| if n > 3 { Err(n) } else { Ok(true) }), Err(4));
    }
}
