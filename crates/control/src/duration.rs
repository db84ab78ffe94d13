//! Durations as people write them: `100us`, `1ms`, `30s`, `5m`, `2h`.

use std::time::Duration;

/// Units, longest first, with their nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a whole number with its unit; `None` when it is anything else.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.checked_mul(unit).map(Duration::from_nanos)
}

/// The shortest text that [`parse`] reads as the same duration.
#[must_use]
pub fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let whole = |unit: &&(&str, u64)| nanoseconds % u128::from(unit.1) == 0;
    let (name, unit) = UNITS.iter().find(whole).copied().unwrap_or(("ns", 1));
    format!("{}{name}", nanoseconds / u128::from(unit))
}

/// For serde: writes a duration as text.
pub(crate) fn serialize<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units() {
        assert_eq!(parse("100us"), Some(Duration::from_micros(100)));
        assert_eq!(parse("5 m"), Some(Duration::from_secs(300)));
        for wrong in ["", "5", "us", "-1s", "1.5s", "1d", "99999999999999999999s", "9999999999h"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(format(Duration::from_secs(7_200)), "2h");
        assert_eq!(format(Duration::from_millis(1_500)), "1500ms");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(nanoseconds in any::<u64>()) {
            let duration = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(parse(&format(duration)), Some(duration));
        }
    }
}
