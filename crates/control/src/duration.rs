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
