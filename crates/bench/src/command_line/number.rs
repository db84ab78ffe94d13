//! Numbers as people write them: 500, 10k, 1M.

/// The largest number: twice the entries of `tables --full`.
const MOST: usize = 1 << 26;

/// The text is no number, or one out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a number from 1 to {most} is expected, such as 500, 10k or 1M", most = MOST)]
pub(crate) struct NotANumber;

/// A number that may end in k (thousand) or M (million).
pub(crate) fn number(text: &str) -> Result<usize, NotANumber> {
    let (digits, factor) = match text.strip_suffix(['k', 'K', 'M']) {
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let number: usize = digits.parse().map_err(|_| NotANumber)?;
    let number = number.checked_mul(factor).ok_or(NotANumber)?;
    if (1..=MOST).contains(&number) { Ok(number) } else { Err(NotANumber) }
}

/// The text is no number, or one out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a number from {least} to {most} is expected")]
pub(crate) struct NotWithin {
    least: f64,
    most: f64,
}

/// A number that may have a fraction, from `LEAST` to `MOST` hundredths.
pub(crate) fn decimal<const LEAST: u32, const MOST: u32>(text: &str) -> Result<f64, NotWithin> {
    let [least, most] = [LEAST, MOST].map(|hundredths| f64::from(hundredths) / 100.0);
    let number: Option<f64> = text.parse().ok();
    // A number that is none is out of all bounds.
    number.filter(|number| (least..=most).contains(number)).ok_or(NotWithin { least, most })
}

/// A number as [`number`] reads it.
pub(crate) fn short(number: usize) -> String {
    match number {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{}M", n / 1_000_000),
        n if n >= 1000 && n % 1000 == 0 => format!("{}k", n / 1000),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_suffixes() {
        for (text, value) in [("7", 7), ("10k", 10_000), ("1M", 1_000_000)] {
            assert_eq!(number(text), Ok(value));
            assert_eq!(short(value), text);
        }
        for wrong in ["", "0", "k", "-1", "1G", "99999999999", "18446744073709551615k"] {
            assert_eq!(number(wrong), Err(NotANumber), "{wrong}");
        }
    }

    #[test]
    fn decimals_are_within_their_bounds() {
        for (text, value) in [("0.02", 0.02), ("0.4", 0.4), ("60", 60.0)] {
            assert_eq!(decimal::<2, 6_000>(text), Ok(value));
        }
        for wrong in ["", "0", "0.01", "61", "-1", "NaN", "inf", "1s"] {
            let why = decimal::<2, 6_000>(wrong).unwrap_err().to_string();
            assert_eq!(why, "a number from 0.02 to 60 is expected", "{wrong}");
        }
    }

    #[test]
    fn the_limits_are_those_that_are_named() {
        let message = NotANumber.to_string();
        let limits: Vec<usize> = message.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [least, most] = limits[..] else { panic!("{message}") };
        assert_eq!(number(&least.to_string()), Ok(least));
        assert_eq!(number(&most.to_string()), Ok(most));
        assert_eq!(number(&(most + 1).to_string()), Err(NotANumber));
    }
}
