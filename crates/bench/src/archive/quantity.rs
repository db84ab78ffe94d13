//! Values and their units, as people write them.

/// Larger units, by how many of the smaller one they are, the largest first.
type Larger = &'static [(f64, &'static str)];

const NANOSECONDS: Larger = &[(1e9, "s"), (1e6, "ms"), (1e3, "us")];
const MICROSECONDS: Larger = &[(1e6, "s"), (1e3, "ms")];
const MILLISECONDS: Larger = &[(1e3, "s")];
const BYTES: Larger = &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];

fn larger(unit: &str) -> Larger {
    match unit {
        "ns" => NANOSECONDS,
        "us" => MICROSECONDS,
        "ms" => MILLISECONDS,
        "bytes" => BYTES,
        _ => &[],
    }
}

/// A value with four digits or so.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.3} G", value / 1e9),
        v if v >= 1e6 => format!("{:.3} M", value / 1e6),
        v if v >= 1e4 => format!("{:.2} k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".into(),
        v if v >= 1e-3 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// A value and its unit: `57.930 M packets/s`, `69.42 us`, `1.50 M/s`. A ratio has none.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    if let Some((size, unit)) = larger(unit).iter().find(|(size, _)| value.abs() >= *size) {
        return format!("{} {unit}", figure(value / size));
    }
    match unit {
        "" | "ratio" => figure(value),
        _ => match unit.strip_prefix("1/") {
            Some(time) => format!("{}/{time}", figure(value)),
            None => format!("{} {unit}", figure(value)),
        },
    }
}

/// A value that stands beside others in this unit: with the unit only where it may be another one than theirs.
pub(crate) fn beside(value: f64, unit: &str) -> String {
    if larger(unit).is_empty() { figure(value) } else { quantity(value, unit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_such_as_people_use() {
        for (value, unit, whole, short) in [
            (220.0, "ns", "220 ns", "220 ns"),
            (69_420.0, "ns", "69.42 us", "69.42 us"),
            (-2_381_000.0, "ns", "-2.38 ms", "-2.38 ms"),
            (1_500_000.0, "us", "1.50 s", "1.50 s"),
            (26_337_000.0, "bytes", "26.34 MB", "26.34 MB"),
            (5.0, "bytes", "5.00 bytes", "5.00 bytes"),
            (57.93e6, "packets/s", "57.930 M packets/s", "57.930 M"),
            (1.5e6, "1/s", "1.500 M/s", "1.500 M"),
            (28.44, "bytes/entry", "28.44 bytes/entry", "28.44"),
            (1.3, "ratio", "1.30", "1.30"),
            (0.0, "", "0", "0"),
        ] {
            assert_eq!((quantity(value, unit), beside(value, unit)), (whole.into(), short.into()));
        }
    }
}
